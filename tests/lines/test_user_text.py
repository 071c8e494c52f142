"""Records of the source files that repeat a client's words tell nothing, whatever they say."""

import pytest

from kvguard.lines.user_text import prints_user_text
from tests.startup.lines import read

SIZED = "GPU KV cache size: 12,345 tokens"
REPEATING = (
    "async_llm_engine.py",
    "chat_utils.py",
    "deepseek_r1_reasoning_parser.py",
    "hermes_tool_parser.py",
    "logger.py",
    "mq_engine_client.py",
    "preprocess.py",
    "protocol.py",
    "request_logger.py",
    "sampling_params.py",
    "server_utils.py",
    "serving.py",
    "serving_chat.py",
)


@pytest.mark.parametrize("file", REPEATING)
def test_neither_a_record_that_repeats_a_clients_words_nor_its_next_lines_tell_a_figure(file: str) -> None:
    assert read(f"INFO 11-29 18:00:00 [{file}:39] {SIZED}\n{SIZED}\n").start is None


@pytest.mark.parametrize("file", ["kv_cache_utils.py", "core.py", "observing.py"])
def test_records_of_other_files_do(file: str) -> None:
    start = read(f"INFO 11-29 18:00:00 [{file}:39] {SIZED}\n").start

    assert start is not None
    assert start.capacity.weakest.kv_cache_tokens == 12345


def test_only_the_engines_end_is_believed_of_the_file_that_tells_both() -> None:
    levels = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", None)

    assert [level for level in levels if not prints_user_text("async_llm_engine.py", level)] == ["ERROR"]
    assert all(prints_user_text("preprocess.py", level) for level in levels)
