"""Goldens: whole expected outputs beside the cases, compared as text and rewritten by `--update-goldens`."""

import difflib
import signal
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

FIXTURES = Path(__file__).parent.parent / "fixtures"

hypothesis.settings.register_profile("alike", deadline=None, derandomize=True)
hypothesis.settings.load_profile("alike")  # the same on every machine; `--hypothesis-profile=default` goes and searches

Golden = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write what the program gives, and show the diff")


def pytest_configure() -> None:
    """Children get the signals that tests send them, also where the suite runs under nohup or in the background."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the width or the wishes of the terminal that it runs in."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare an output with the file that holds the expected one, to the last character."""
    update = bool(request.config.getoption("--update-goldens"))

    def compare(path: Path, actual: str) -> None:
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        if expected == actual:
            return
        name = str(path.relative_to(FIXTURES.parent))
        lines = (expected.splitlines(keepends=True), actual.splitlines(keepends=True))
        diff = "".join(difflib.unified_diff(*lines, fromfile=f"{name} (expected)", tofile=f"{name} (actual)"))
        if not update:
            pytest.fail(f"{diff}\nif that is right: pytest --update-goldens", pytrace=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8")
        print(diff)

    return compare
