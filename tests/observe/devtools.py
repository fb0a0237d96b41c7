"""A page in Chromium that a test uses as its reader would: waits for what it shows, chooses, clicks, takes a picture.

Spoken is the DevTools protocol over a pipe (JSON, each message ended by a zero byte), which needs no WebSocket.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

from browser import command_of_browser

_WAIT = """new Promise((done) => {
  const look = () => { const found = (%s); if (found) done(found); else setTimeout(look, 50); };
  look();
})"""


class DevToolsError(AssertionError):
    """A script of a test's raised in the page, or the browser has gone."""


class Page:
    """An address, opened. Use as a context manager."""

    def __init__(self, url: str, directory: Path, width: int = 1200, height: int = 900) -> None:
        command = [
            *command_of_browser(directory),
            "--remote-debugging-pipe",
            f"--window-size={width},{height}",
        ]
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The protocol's descriptors are 3 and 4.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *command, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._answers = os.fdopen(self._read, "rb")
        self._left = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self._events: set[str] = set()
        self.console: list[str] = []
        """What the browser has reported: requests that failed, exceptions, what its policy forbade."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        self.open(url)

    def open(self, url: str) -> None:
        """Go to an address, and wait until it is loaded."""
        self._events.discard("Page.loadEventFired")
        self._ask("Page.navigate", url=url)
        while "Page.loadEventFired" not in self._events:
            self._note(self._next())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        self._answers.close()

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise DevToolsError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        self._events.add(event.get("method", ""))
        if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
            self.console.append(json.dumps(event["params"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._read, 1 << 20)
            if not more:
                raise DevToolsError("the browser has gone")
            self._left += more
        message, self._left = self._left.split(b"\0", 1)
        return dict(json.loads(message))

    def value(self, script: str) -> Any:
        """Return an expression's value, that of a promise when it has one."""
        found = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise DevToolsError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_for(self, condition: str) -> Any:
        """Wait until an expression is true, and return its value."""
        return self.value(_WAIT % condition)

    def become_a_phone(self, width: int = 390, height: int = 844) -> None:
        """Lay the page out for a phone's screen."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=True,
        )

    def picture(self, path: Path) -> None:
        """Write what is seen of the page as a PNG."""
        data = self._ask("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))
