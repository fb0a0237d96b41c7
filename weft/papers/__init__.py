"""Papers, one command each: their published values, runs of what they measured, and a verdict (`weft paper`)."""

from weft.papers.result import JudgedClaim, PaperResult, read_paper
from weft.papers.running import run_paper
from weft.papers.studies import STUDIES
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value, Verdict

__all__ = [
    "STUDIES",
    "Findings",
    "JudgedClaim",
    "PaperResult",
    "Scale",
    "Setting",
    "Shape",
    "Study",
    "Value",
    "Verdict",
    "read_paper",
    "run_paper",
]
