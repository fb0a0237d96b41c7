"""Runs a study in a directory, and writes its result: paper.json, paper.md and one page."""

from __future__ import annotations

from pathlib import Path

from weft.errors import BadInputError, WeftError
from weft.papers.markdown import markdown_of
from weft.papers.page import paper_page
from weft.papers.result import PaperResult, result_of
from weft.papers.study import Findings, Scale, Setting, Study
from weft.report.html import write_page
from weft.system.writing import written_whole
from weft.trials import Procedure, TrialProgress, TrialRunner

MARKDOWN_FILE = "paper.md"
PAGE_FILE = "paper.html"


def run_paper(
    study: Study,
    directory: Path,
    scale: Scale = Scale.FULL,
    workers: int | None = None,
    flows: Path | None = None,
    progress: TrialProgress | None = None,
) -> PaperResult:
    """Run a study's trials, judge its claims and write the result.

    Trials that have finished in the directory before are not repeated.

    Raises:
        BadInputError: `flows` for a study that takes none, or a file that cannot be used.
        TrialFailedError: a trial has no results.
        EnvironmentLacksError: a file cannot be written, or plotly is missing.
    """
    if flows is not None and not study.takes_flows:
        raise BadInputError(f"{study.name} takes no list of flows", place="--flows")
    procedure: Procedure[Findings] = study.procedure(Setting(scale, None if flows is None else flows.resolve()))
    found = TrialRunner(directory, workers, progress).run({study.name: procedure})[study.name]
    if isinstance(found, WeftError):
        raise found
    result = result_of(study, scale, found)
    result.write(directory)
    with written_whole(directory / MARKDOWN_FILE) as partial:
        partial.write_text(markdown_of(result), encoding="utf-8")
    write_page(paper_page(result), directory / PAGE_FILE)
    return result
