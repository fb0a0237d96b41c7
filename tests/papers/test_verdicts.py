"""Verdicts follow from claims and measured values alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from weft.errors import BadInputError
from weft.papers import STUDIES, Findings, Scale, Setting, Shape, Study, Value, Verdict, read_paper, run_paper
from weft.papers.markdown import markdown_of
from weft.papers.result import result_of
from weft.trials import Procedure, Trial, TrialFailedError


def faster(measured: Mapping[str, float]) -> bool:
    return measured["a"] < measured["b"]


def procedure(setting: Setting) -> Procedure[Findings]:
    hosts = 4 if setting.is_full else 2
    tree = {
        "name": "trial",
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": hosts // 2, "host_rate": "100Gb/s"},
        "traffic": [{"permutation": "4KiB", "data": "lengths"}],
    }
    (run,) = yield [Trial("permutation", tree)]
    return Findings({"a": float(run.results_of("flows")[0].flows), "b": 3.0})


STUDY = Study(
    name="example-2020",
    title="An example",
    authors="Doe",
    venue="Somewhere",
    year=2020,
    measured="A and b.",
    run="A permutation.",
    reduced="two hosts.",
    procedure=procedure,
    values=[Value("a", "a of four hosts", 4, "flows", "table 1", 0.1, explanation="it is another fabric")],
    shapes=[Shape("a is less than b", "figure 2", faster, "the other way round")],
)


@pytest.mark.parametrize(
    ("measured", "verdict", "missed"),
    [
        ({"a": 4.3, "b": 5.0}, Verdict.REPRODUCED, 0),
        ({"a": 4.5, "b": 5.0}, Verdict.IN_SHAPE, 1),
        ({"a": 3.5, "b": 5.0}, Verdict.IN_SHAPE, 1),
        ({"a": 4.0, "b": 3.0}, Verdict.NOT_REPRODUCED, 1),
        ({"a": 9.0, "b": 3.0}, Verdict.NOT_REPRODUCED, 2),
    ],
)
def test_a_full_run_is_judged_by_values_and_shapes(measured: dict[str, float], verdict: Verdict, missed: int) -> None:
    found = result_of(STUDY, Scale.FULL, Findings(measured))
    assert found.verdict is verdict
    assert len(found.explanations) == missed
    assert [bool(claim.explanation) for claim in found.claims] == [claim.holds is False for claim in found.claims]


def test_a_reduced_run_judges_shapes_only() -> None:
    found = result_of(STUDY, Scale.REDUCED, Findings({"a": 2.0, "b": 3.0}))
    assert [claim.holds for claim in found.claims] == [None, True]
    assert (found.verdict, found.unjudged) == (Verdict.IN_SHAPE, 1)
    assert result_of(STUDY, Scale.REDUCED, Findings({"a": 3.0, "b": 2.0})).verdict is Verdict.NOT_REPRODUCED


def test_shapes_alone_are_reproduced_in_shape() -> None:
    study = replace(STUDY, values=[])
    assert result_of(study, Scale.FULL, Findings({"a": 4.0, "b": 5.0})).verdict is Verdict.IN_SHAPE


def test_without_shapes_a_missed_value_is_not_reproduced() -> None:
    study = replace(STUDY, shapes=[])
    assert result_of(study, Scale.FULL, Findings({"a": 4.0})).verdict is Verdict.REPRODUCED
    assert result_of(study, Scale.FULL, Findings({"a": 5.0})).verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize(
    ("bound", "holding"), [("near", [3.7, 4.3]), ("least", [3.7, 4.3, 9.0]), ("most", [0.1, 3.7, 4.3])]
)
def test_a_bound_judges_one_side(bound: str, holding: list[float]) -> None:
    value = replace(STUDY.values[0], bound=bound)
    assert [each for each in (0.1, 3.7, 4.3, 9.0) if value.holds(each)] == holding


@pytest.mark.parametrize("measured", [{"a": 4.0}, {"b": 4.0}])
def test_what_is_judged_must_have_been_measured(measured: dict[str, float]) -> None:
    with pytest.raises(TrialFailedError):
        result_of(STUDY, Scale.FULL, Findings(measured))


def test_a_study_runs_and_is_written(tmp_path: Path) -> None:
    found = run_paper(STUDY, tmp_path, Scale.REDUCED, 1)
    assert read_paper(tmp_path) == found
    assert found.claims[0].measured == 2
    assert (tmp_path / "paper.md").read_text(encoding="utf-8") == markdown_of(found)
    assert "<h2>Published and measured</h2>" in (tmp_path / "paper.html").read_text(encoding="utf-8")


def test_only_some_papers_take_flows(tmp_path: Path) -> None:
    with pytest.raises(BadInputError):
        run_paper(STUDY, tmp_path, flows=tmp_path / "flows.txt")
    with pytest.raises(BadInputError):
        read_paper(tmp_path)


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_a_study_says_what_it_claims(study: Study) -> None:
    assert study.values or study.shapes
    assert any(Scale.REDUCED in claim.when for claim in (*study.values, *study.shapes))
    keys = [value.key for value in study.values]
    assert len(set(keys)) == len(keys)
    assert all(value.place and value.title for value in study.values)
