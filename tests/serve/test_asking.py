"""vLLM is asked in a thread of its own, and what it said once is not taken for what it says for ever."""

import pytest

from kvguard.serve.asking import OUTDATED_S, Asking
from kvguard.sources.vllm.answers import VllmAnswer
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


def test_an_answer_that_none_follows_is_not_believed_for_ever() -> None:
    """As where a server sends the head of its next one letter by letter."""
    now = 100.0
    asking = Asking("http://127.0.0.1:1", lambda: now)
    asking._answer = told = VllmAnswer(asked_at=now, healthy=True, version="0.32.0")

    now += OUTDATED_S
    assert asking.answer is told
    now += 1.0
    taken_back = asking.answer
    assert taken_back is asking.answer
    assert taken_back == VllmAnswer(161.0, problems=("no answer has been whole for 60 s",))
