"""What a run says before it makes machine code that the cache lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from weakref import WeakValueDictionary

import pytest

from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.switch.lowering import jit

SCENARIO = {
    "clock": "virtual",
    "fabric": {"planes": 1, "leaves": 1, "spines": 1, "hosts_per_leaf": 2},
    "p4": str(ROOT / "examples" / "debugging" / "router.p4"),
    "traffic": [],
}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    def lines() -> list[str]:
        monkeypatch.setattr(jit, "_compiled", WeakValueDictionary())  # as in a new process
        found: list[str] = []
        run_scenario(parse_scenario(SCENARIO), found.append)
        return [line for line in found if "machine code" in line]

    return lines


def test_it_is_said_once_and_where_the_code_is_kept(
    said: Callable[[], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    assert said() == [f"making machine code of router.p4 (once; kept in {tmp_path / 'cache'})"]
    assert said() == []


def test_without_a_cache_it_is_said_why_nothing_is_kept(
    said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", "")
    expected = "making machine code of router.p4 (not kept: WEFT_CACHE_DIR is empty, which turns caching off)"
    assert said() == [expected]
    assert said() == [expected]
