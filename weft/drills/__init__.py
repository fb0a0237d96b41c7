"""Drills: many runs of a scenario with faults drawn at random, judged by an objective."""

from weft.drills.drill import Drill, Judgement
from weft.drills.faults import Fault
from weft.drills.running import DrillReport, run_drills

__all__ = ["Drill", "DrillReport", "Fault", "Judgement", "run_drills"]
