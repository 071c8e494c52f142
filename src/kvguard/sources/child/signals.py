"""Hand the signals that kvguard gets on to the command that it runs."""

import signal
from types import FrameType, TracebackType
from typing import Protocol, Self

# Not handed on: what cannot be caught, what stops and continues (the command's pipes make it wait for us anyway), what
# the terminal's size or a broken pipe of our own causes, and faults of our own process.
_KEPT = {
    *("SIGKILL", "SIGSTOP", "SIGCHLD", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU"),
    *("SIGWINCH", "SIGURG", "SIGPIPE", "SIGXFSZ"),
    *("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL"),
}
FORWARDED = {number for number in signal.valid_signals() if getattr(number, "name", "") not in _KEPT}


class Receiver(Protocol):
    """Whoever gets the signals."""

    def send(self, number: int) -> None:
        """Take a signal."""


class ForwardedSignals:
    """While this context lasts, every signal that would end us goes to the command instead.

    It is entered before the command is started, so that none is missed; `to` names the receiver, which gets what came
    in between. A signal that is ignored when we start stays ignored, for the command as well (`nohup`).
    """

    def __init__(self) -> None:
        self._receiver: Receiver | None = None
        self._waiting: list[int] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned

    def to(self, receiver: Receiver) -> None:
        """Hand on to this one from now on."""
        self._receiver = receiver
        for number in self._waiting:
            receiver.send(number)
        self._waiting.clear()

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._receiver is None:
            self._waiting.append(number)
        else:
            self._receiver.send(number)
