"""The reference of results.json is the classes', and the committed page is the reference."""

from __future__ import annotations

import pytest

from weft.cli import run_guarded, weft
from weft.paths import ROOT
from weft.results.kinds import ResultKind, result_kinds
from weft.results.model import Results, result_keys
from weft.results.reference import RESULTS_REFERENCE_FILE, keys_of, results_reference


def test_the_committed_reference_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / RESULTS_REFERENCE_FILE).read_text(encoding="utf-8")
    hint = f"write it anew: weft schema --results > docs/{RESULTS_REFERENCE_FILE}"
    assert page == results_reference(), hint
    assert run_guarded(lambda: weft.main(["schema", "--results"], standalone_mode=False)) == 0
    assert capsys.readouterr().out == page


def test_every_key_of_the_file_has_a_meaning() -> None:
    assert list(keys_of(Results)) == [*result_keys(), "ok"]
    for kind in result_kinds():
        assert all(keys_of(kind.model).values()), kind.key


def test_two_pages_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(lambda: weft.main(["schema", "--results", "--markdown"], standalone_mode=False)) == 2
    assert "two pages" in capsys.readouterr().err


def test_a_result_s_derived_figures_are_a_mapping() -> None:
    class Wrong:
        derived = ("ok",)

    with pytest.raises(TypeError, match=r"Wrong\.derived is a tuple \(valid: a mapping"):
        ResultKind(key="wrong", meaning="None.", model=Wrong)  # type: ignore[type-var]
