"""Ask vLLM itself in a thread of its own: an answer may take seconds, and neither log nor probe waits for it."""

import threading
from collections.abc import Callable

from kvguard.sources.vllm.answers import VllmAnswer
from kvguard.sources.vllm.witness import KEPT_S, VllmWitness


class Asking:
    """Keep the newest answer of a vLLM server."""

    def __init__(self, url: str, steady: Callable[[], float]) -> None:
        self._witness, self._steady = VllmWitness(url), steady
        self.name = self._witness.name
        self.answer: VllmAnswer | None = None
        self._thread = threading.Thread(target=self._run, name="asking", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def _run(self) -> None:
        rest = threading.Event()  # never set: the thread ends with the process
        try:
            while True:
                self.answer = self._witness.ask(self._steady())
                rest.wait(KEPT_S)
        finally:  # it has met an error that nobody foresaw: its last answer must not be taken for vLLM's for ever
            self.answer = VllmAnswer(self._steady(), problems=("it is not asked any more: see the log of kvguard",))
