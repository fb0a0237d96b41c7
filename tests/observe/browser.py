"""A browser without a window, to open pages in."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest

from weft.doctor.capabilities.programs import BROWSERS


@dataclass(frozen=True)
class Opened:
    """A page after its scripts have run: the document, and what was written to the console."""

    dom: str
    console: list[str]


def command_of_browser(directory: Path, scheme: str = "light") -> list[str]:
    """Return what starts Chromium with a profile in a directory; skips the test where there is none."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    return [
        browser,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--user-data-dir={directory / ('browser-' + scheme)}",
        f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
    ]


def open_page(page: Path, scheme: str = "light") -> Opened:
    """Open a page in Chromium; skips the test where there is none."""
    done = subprocess.run(
        [
            *command_of_browser(page.parent, scheme),
            "--enable-logging=stderr",
            "--window-size=1400,3000",
            "--virtual-time-budget=10000",
            "--dump-dom",
            page.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return Opened(done.stdout, re.findall(r"CONSOLE.*", done.stderr))


class Elements(HTMLParser):
    """Counts a document's elements by tag, by id and by class; scripts' contents do not count."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.ids: dict[str, dict[str, str]] = {}
        self.classes: dict[str, int] = {}
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if "id" in found:
            self.ids[found["id"]] = found
        for name in found.get("class", "").split():
            self.classes[name] = self.classes.get(name, 0) + 1
