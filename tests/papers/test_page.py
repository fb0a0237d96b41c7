"""The page of verdicts follows from the studies and the recorded values, and explains every claim that misses."""

from __future__ import annotations

import papers_page
import pytest

from weft.papers import STUDIES, PaperResult, Scale
from weft.papers.recorded import Recorded, judged, read_recorded, verdict_lines

RECORDED = read_recorded(papers_page.VALUES)


def result(name: str) -> PaperResult:
    return judged(name, RECORDED[name])


def test_every_paper_is_recorded() -> None:
    assert set(RECORDED) == set(STUDIES)


@pytest.mark.parametrize("name", RECORDED)
def test_a_missed_claim_is_explained(name: str) -> None:
    missed = [claim for claim in result(name).claims if claim.holds is False]
    assert [claim.title for claim in missed if not claim.explanation] == []


def test_the_committed_page_is_current() -> None:
    assert papers_page.PAGE.read_text(encoding="utf-8") == papers_page.page()


def test_a_reduced_run_is_named_as_such() -> None:
    name = next(iter(RECORDED))
    reduced = Recorded(Scale.REDUCED, RECORDED[name].measured)
    assert "at reduced size" in "\n".join(verdict_lines({name: reduced}))
