"""vLLM is asked in a thread of its own, and what it said once is not taken for what it says for ever."""

import pytest

from kvguard.serve.asking import Asking
from kvguard.sources.vllm.witness import VllmWitness


def test_a_thread_that_has_met_what_nobody_foresaw_takes_its_answer_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def strike(witness: VllmWitness, now: float) -> None:
        raise MemoryError

    monkeypatch.setattr(VllmWitness, "ask", strike)
    asking = Asking("http://127.0.0.1:1", lambda: 5.0)
    with pytest.raises(MemoryError):
        asking._run()

    assert asking.answer is not None
    assert (asking.answer.asked_at, asking.answer.healthy) == (5.0, None)
    assert asking.answer.problems == ("it is not asked any more: see the log of kvguard",)
