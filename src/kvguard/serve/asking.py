"""Ask vLLM itself in a thread of its own: an answer may take seconds, and neither log nor probe waits for it."""

import threading
from collections.abc import Callable

from kvguard.sources.vllm.answers import VllmAnswer
from kvguard.sources.vllm.witness import KEPT_S, VllmWitness

OUTDATED_S = 60.0
"""Far more than a round of questions takes: whoever sends his answers letter by letter holds one up without an end."""


class Asking:
    """Keep the newest answer of a vLLM server."""

    def __init__(self, url: str, steady: Callable[[], float]) -> None:
        self._witness, self._steady = VllmWitness(url), steady
        self.name = self._witness.name
        self._answer: VllmAnswer | None = None
        self._thread = threading.Thread(target=self._run, name="asking", daemon=True)

    @property
    def answer(self) -> VllmAnswer | None:
        """The newest answer, the same object each time; that there is none any more where it is too old."""
        newest, now = self._answer, self._steady()
        if newest is not None and now - newest.asked_at > OUTDATED_S:
            self._answer = newest = VllmAnswer(now, problems=(f"no answer has been whole for {OUTDATED_S:.0f} s",))
        return newest

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def _run(self) -> None:
        rest = threading.Event()  # never set: the thread ends with the process
        try:
            while True:
                self._answer = self._witness.ask(self._steady())
                rest.wait(KEPT_S)
        finally:  # it has met an error that nobody foresaw: its last answer must not be taken for vLLM's for ever
            self._answer = VllmAnswer(self._steady(), problems=("it is not asked any more: see the log of kvguard",))
