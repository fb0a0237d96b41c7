"""Formats of topology files: the page lists all, and files are recognised by suffix or beginning."""

from __future__ import annotations

import re

from weft.paths import ROOT
from weft.topologies.files import FORMATS

PAGE = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")


def test_the_page_lists_every_format() -> None:
    (section,) = re.findall(r"^\| `format` \| file \| guessed by \|$\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == set(FORMATS)
