"""Source files of vLLM that print what clients write: their records tell nothing, nor do the raw lines behind them.

Some of them, and others that are loaded by an API server alone, show that there is one.
"""

from kvguard.events import Role
from kvguard.lines.head import Head
from kvguard.lines.patterns import compiled

USER_TEXT_FILES = frozenset(
    {
        "async_llm_engine.py",
        "chat_utils.py",
        "logger.py",
        "preprocess.py",
        "protocol.py",
        "request_logger.py",
        "sampling_params.py",
        "server_utils.py",
    }
)
"""Source files whose records repeat prompts, model names or other text of a client."""
OF_REQUESTS_AND_OF_THE_ENGINE = "async_llm_engine.py"
"""Tells of requests at INFO, and at ERROR of its engine's end."""
_USER_TEXT_STEMS = r"serving\w*+|\w*(?:tool|reasoning)_parser|\w*_engine_client"


def prints_user_text(file: str | None, level: str | None) -> bool:
    """Whether records of that file, at that level, repeat text of a client."""
    if file == OF_REQUESTS_AND_OF_THE_ENGINE and level == "ERROR":
        return False
    return file is not None and (
        file in USER_TEXT_FILES or compiled(_USER_TEXT_STEMS).fullmatch(file.removesuffix(".py")) is not None
    )


_OF_SERVER = r"serving(?:_\w++)?+|api_server"


def shows_server(head: Head) -> bool:
    """Whether only an API server prints such a record, by its process tag or its source file."""
    return head.role is Role.API_SERVER or (
        head.file is not None
        and head.of_vllm
        and compiled(_OF_SERVER).fullmatch(head.file.removesuffix(".py")) is not None
    )
