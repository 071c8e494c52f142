"""Source files of vLLM that print what clients write: their records tell nothing, nor do the raw lines behind them."""

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
_USER_TEXT_STEMS = r"serving\w*+|\w*+(?:tool|reasoning)_parser|\w*+_engine_client"


def prints_user_text(file: str | None) -> bool:
    """Whether records of that file repeat text of a client."""
    return file is not None and (
        file in USER_TEXT_FILES or compiled(_USER_TEXT_STEMS).fullmatch(file.removesuffix(".py")) is not None
    )
