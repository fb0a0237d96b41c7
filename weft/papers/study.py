"""A paper's study: what its authors published, what Weft runs for it, and how both are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from weft.results.report_parts import BarFigure, CurveFigure, ReportTable
from weft.trials import Procedure


class Scale(StrEnum):
    """Size of a study: the paper's own set-up, or a smaller one that takes seconds to a minute."""

    FULL = "full"
    REDUCED = "reduced"


class Verdict(StrEnum):
    """How a paper's claims and the runs compare."""

    REPRODUCED = "reproduced"
    IN_SHAPE = "reproduced in shape"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True)
class Value:
    """A published number, and how near a measured one has to be.

    Attributes:
        key: names the measured value in `Findings.measured`.
        title: says what was measured.
        published: the number, in `unit`.
        place: figure, table or section of the paper, or where its authors published the number.
        tolerance: largest difference from `published`, as a share of it, for which it counts as reproduced.
        bound: `near` judges differences both ways; with `least` a larger, with `most` a smaller value is as good.
        explanation: why Weft's value differs; shown only if it does.
        when: scales at which the value can be judged. A reduced run shows the others without judging them; with none
            the value is for orientation alone, and the paper at most reproduced in shape.

    """

    key: str
    title: str
    published: float
    unit: str
    place: str
    tolerance: float = 0.25
    bound: str = "near"
    explanation: str = ""
    when: tuple[Scale, ...] = (Scale.FULL,)

    def holds(self, measured: float) -> bool:
        """Return whether a measured value counts as reproduced."""
        allowed = self.tolerance * abs(self.published)
        difference = measured - self.published
        too_low = difference < -allowed and self.bound != "most"
        too_high = difference > allowed and self.bound != "least"
        return not (too_low or too_high)


@dataclass(frozen=True)
class Shape:
    """An order or a course that the paper reports: `holds` judges it from measured values by key.

    `place`, `explanation` and `when` as of values. A shape is judged at both scales by default, so that a reduced run
    can fail.
    """

    title: str
    place: str
    holds: Callable[[Mapping[str, float]], bool]
    explanation: str = ""
    when: tuple[Scale, ...] = (Scale.FULL, Scale.REDUCED)


@dataclass(frozen=True)
class Setting:
    """How a procedure is run: its scale, and a user's list of flows if the study takes one."""

    scale: Scale
    flows: Path | None = None

    @property
    def is_full(self) -> bool:
        """Return whether this is the paper's own set-up."""
        return self.scale is Scale.FULL


@dataclass(frozen=True)
class Findings:
    """Results of a procedure: values by the keys of claims, and what a page shows.

    `notes` are sentences on the run itself, such as where its flows come from.
    """

    measured: Mapping[str, float]
    tables: Sequence[ReportTable] = ()
    figures: Sequence[CurveFigure | BarFigure] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Study:
    """A paper and its reproduction.

    Attributes:
        name: of the command `weft paper NAME`.
        authors, venue, year, title: of the paper.
        measured: what its authors did.
        run: what Weft runs, and at which size if that is not the authors'.
        reduced: how a reduced run differs from the full one.
        values, shapes: the claims.
        procedure: makes the generator of trials that ends with findings.
        takes_flows: says what `--flows FILE` may name; "" if the study takes none.

    """

    name: str
    title: str
    authors: str
    venue: str
    year: int
    measured: str
    run: str
    reduced: str
    procedure: Callable[[Setting], Procedure[Findings]]
    values: Sequence[Value] = ()
    shapes: Sequence[Shape] = ()
    takes_flows: str = ""

    @property
    def citation(self) -> str:
        """Return authors, title, venue and year."""
        return f'{self.authors}, "{self.title}", {self.venue} {self.year}'
