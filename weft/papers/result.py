"""The result of a study: every claim judged, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from weft.papers.study import Findings, Scale, Study, Verdict
from weft.results.json_files import read_whole, write_object
from weft.results.report_parts import BarFigure, Cell, CurveFigure, ReportTable
from weft.trials import TrialFailedError

PAPER_FILE = "paper.json"
_MOST_BYTES = 64 << 20
_NOT_JUDGED = "–"


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of a paper and what Weft found.

    `published` and `measured` are None of shapes, and `measured` also where a run had no such value. `holds` is None
    where the claim was not judged at this scale. `explanation` is "" unless the claim missed.
    """

    title: str
    place: str
    unit: str = ""
    published: float | None = None
    measured: float | None = None
    tolerance: float | None = None
    holds: bool | None = None
    explanation: str = ""

    @property
    def is_shape(self) -> bool:
        """Return whether the claim is an order or a course rather than a number."""
        return self.published is None

    @property
    def ratio(self) -> float | None:
        """Return the measured value over the published one, if both are there."""
        if self.measured is None or not self.published:
            return None
        return self.measured / self.published

    @property
    def outcome(self) -> str:
        """Return whether the claim held, in a word."""
        if self.holds is None:
            return "not judged"
        return "holds" if self.holds else "missed"


@dataclass(frozen=True)
class PaperResult:
    """A study's outcome, as paper.json has it."""

    name: str
    citation: str
    scale: Scale
    verdict: Verdict
    measured_by_authors: str
    run_here: str
    claims: Sequence[JudgedClaim]
    notes: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    figures: Sequence[CurveFigure | BarFigure] = ()
    measured: Mapping[str, float] = field(default_factory=dict)
    """Everything measured, by the keys of the study: shapes may compare values that the paper gives no number for."""

    @property
    def claims_table(self) -> ReportTable:
        """Return measured next to published, a row per number."""
        rows: list[list[Cell]] = [
            [
                claim.title,
                f"{_number(claim.published)} {claim.unit}".strip(),
                f"{_number(claim.measured)} {claim.unit}".strip(),
                _NOT_JUDGED if claim.ratio is None else f"{claim.ratio:.2f}",
                f"{claim.tolerance:.0%}",
                claim.outcome,
            ]
            for claim in self.claims
            if not claim.is_shape
        ]
        return ReportTable(
            "Published and measured",
            ["claim", "published", "Weft", "ratio", "tolerance", "verdict"],
            rows,
        )

    @property
    def shapes_table(self) -> ReportTable:
        """Return the orders and courses that the paper reports."""
        rows: list[list[Cell]] = [[claim.title, claim.place, claim.outcome] for claim in self.claims if claim.is_shape]
        return ReportTable("Orders and courses", ["claim", "where", "verdict"], rows)

    @property
    def explanations(self) -> list[str]:
        """Return why claims missed, each explanation once with the claims that it is for."""
        by_text: dict[str, list[str]] = {}
        for claim in self.claims:
            if claim.explanation:
                by_text.setdefault(claim.explanation, []).append(claim.title)
        return [f"{'; '.join(titles)}: {text}" for text, titles in by_text.items()]

    @property
    def unjudged(self) -> int:
        """Return how many claims were not judged at this scale."""
        return sum(claim.holds is None for claim in self.claims)

    def write(self, directory: Path) -> Path:
        """Write paper.json; EnvironmentLacksError: it cannot be written."""
        return write_object(_ADAPTER, directory / PAPER_FILE, self)


_ADAPTER = TypeAdapter(PaperResult)


def _number(value: float | None) -> str:
    """Return a number with three significant digits, and all before the point."""
    if value is None:
        return _NOT_JUDGED
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def read_paper(directory: Path) -> PaperResult:
    """Return what `weft paper` has written to a directory. Raises BadInputError if it is not there."""
    return read_whole(_ADAPTER, directory / PAPER_FILE, _MOST_BYTES, "not written by weft paper")


def result_of(study: Study, scale: Scale, findings: Findings) -> PaperResult:
    """Judge a study's claims by what was measured.

    Raises TrialFailedError if a value or shape that is judged at this scale has not been measured.
    """
    claims = [*_values(study, scale, findings.measured), *_shapes(study, scale, findings.measured)]
    return PaperResult(
        name=study.name,
        citation=study.citation,
        scale=scale,
        verdict=verdict_of(claims),
        measured_by_authors=study.measured,
        run_here=study.run if scale is Scale.FULL else f"{study.run} Reduced: {study.reduced}",
        claims=claims,
        notes=list(findings.notes),
        tables=list(findings.tables),
        figures=list(findings.figures),
        measured=dict(findings.measured),
    )


def verdict_of(claims: Sequence[JudgedClaim]) -> Verdict:
    """Return the verdict that follows from claims.

    Reproduced: there are values, all were judged and hold, and so do all shapes. In shape: the shapes hold, and there
    are some.
    """
    shapes = [claim for claim in claims if claim.is_shape and claim.holds is not None]
    values = [claim for claim in claims if not claim.is_shape]
    if not all(claim.holds for claim in shapes):
        return Verdict.NOT_REPRODUCED
    if values and all(claim.holds for claim in values):
        return Verdict.REPRODUCED
    return Verdict.IN_SHAPE if shapes else Verdict.NOT_REPRODUCED


def _values(study: Study, scale: Scale, measured: Mapping[str, float]) -> Iterable[JudgedClaim]:
    for value in study.values:
        is_judged = scale in value.when
        found = measured.get(value.key)
        if found is None and is_judged:
            raise TrialFailedError(f"{study.name}: nothing measured for {value.key}")
        holds = value.holds(found) if is_judged and found is not None else None
        yield JudgedClaim(
            value.title,
            value.place,
            value.unit,
            value.published,
            found,
            value.tolerance,
            holds,
            value.explanation if holds is False else "",
        )


def _shapes(study: Study, scale: Scale, measured: Mapping[str, float]) -> Iterable[JudgedClaim]:
    for shape in study.shapes:
        holds = None
        if scale in shape.when:
            try:
                holds = bool(shape.holds(measured))
            except KeyError as error:
                raise TrialFailedError(f"{study.name}: nothing measured for {error.args[0]}") from None
        yield JudgedClaim(
            shape.title, shape.place, holds=holds, explanation=shape.explanation if holds is False else ""
        )
