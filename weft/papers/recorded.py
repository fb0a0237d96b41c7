"""Measured values that are kept between runs, and the page of verdicts that follows from them and the studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from weft.papers.markdown import section_lines, verdict_sentence
from weft.papers.result import PaperResult, result_of
from weft.papers.studies import STUDIES
from weft.papers.study import Findings, Scale
from weft.results.json_files import read_whole, write_object

_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Recorded:
    """The measured values of one run of a study, its notes, and the size that it had."""

    scale: Scale
    measured: Mapping[str, float]
    notes: tuple[str, ...] = ()


_ADAPTER = TypeAdapter(dict[str, Recorded])


def read_recorded(path: Path) -> dict[str, Recorded]:
    """Return the recorded runs by the names of their studies. Raises BadInputError: the file cannot be read."""
    return read_whole(_ADAPTER, path, _MOST_BYTES, "not a file of recorded papers")


def write_recorded(path: Path, recorded: Mapping[str, Recorded]) -> None:
    """Write the runs in the order of their names. Raises EnvironmentLacksError: the file cannot be written."""
    write_object(_ADAPTER, path, dict(sorted(recorded.items())))


def judged(name: str, recorded: Recorded) -> PaperResult:
    """Judge a recorded run by today's claims of its study."""
    return result_of(STUDIES.named(name), recorded.scale, Findings(recorded.measured, notes=recorded.notes))


def verdict_lines(recorded: Mapping[str, Recorded]) -> Iterable[str]:
    """Return the table of all verdicts."""
    yield "| paper | published | claims that hold | verdict |"
    yield "|---|---|---|---|"
    for name in STUDIES:
        if name not in recorded:
            continue
        study, result = STUDIES[name], judged(name, recorded[name])
        judged_claims = [claim for claim in result.claims if claim.holds is not None]
        held = sum(bool(claim.holds) for claim in judged_claims)
        link = f"[{name}](#{name})"
        where = f"{study.authors}, {study.venue} {study.year}"
        yield f"| {link} | {where} | {held} of {len(judged_claims)} | {verdict_sentence(result).rstrip('.')} |"


def paper_lines(recorded: Mapping[str, Recorded]) -> Iterable[str]:
    """Return a section for each study."""
    for name in STUDIES:
        if name not in recorded:
            continue
        size = "" if recorded[name].scale is Scale.FULL else " --scale reduced"
        yield from (f"## {name}", "", "```", f"weft paper {name}{size} --out DIR", "```", "")
        yield from section_lines(judged(name, recorded[name]))
