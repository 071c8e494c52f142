"""Headless Chromium over its debugging pipe: no driver, no socket, one process for a module of tests."""

import itertools
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 30
MISSING = "chromium is missing: apt-get install -y chromium"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """One page of a browser, told what to do by Chromium's debugging protocol."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come before it are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return dict(answer["result"])

    def open(self, url: str, *, width: int = 1000, scheme: str = "light", script: bool = True) -> None:
        """Load a page and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def wait_for(self, method: str) -> None:
        """Wait for an event that has not been seen since the page was asked for."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press a key and let it go."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def complaints(self) -> list[str]:
        """What the browser found wrong with the page: violations of its policy, errors, failed loads."""
        return [
            event["params"]["entry"]["text"] for event in self.events if event.get("method") == "Log.entryAdded"
        ] + [
            event["params"]["exceptionDetails"]["text"]
            for event in self.events
            if event.get("method") == "Runtime.exceptionThrown"
        ]

    def requests(self) -> set[str]:
        """The addresses that the page has asked for."""
        return {
            event["params"]["request"]["url"].partition("#")[0]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        }

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._answers], [], [], PATIENCE_S)[0], "chromium says nothing"
            part = os.read(self._answers, 65536)
            assert part, "chromium has gone"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, ended with the block."""
    program = shutil.which("chromium")
    assert program, MISSING
    command_end, commands = os.pipe()
    answers, answer_end = os.pipe()

    def hand_over() -> None:  # Chromium reads from 3 and writes to 4
        copies = [os.dup(command_end), os.dup(answer_end)]
        for number, copy in zip((3, 4), copies, strict=True):
            os.dup2(copy, number)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}"],
        close_fds=False,
        preexec_fn=hand_over,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_end)
    os.close(answer_end)
    try:
        yield Browser(commands, answers)
    finally:
        process.kill()
        process.wait()
        os.close(commands)
        os.close(answers)
