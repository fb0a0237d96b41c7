"""One drill: a run with drawn faults, judged by the objective; where it breaks that, the fewest faults that do."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from weft.drills.faults import Fault, Stage, draw_faults, kinds_for
from weft.errors import BadInputError
from weft.quantities.readable import format_time
from weft.scenario.drill import DrillSection, ObjectiveSection
from weft.topologies import FabricSpec
from weft.trials import Procedure, Trial, TrialRun


@dataclass(frozen=True)
class Judgement:
    """Outcome of a run with faults.

    Attributes:
        broken: what of the objective does not hold, in words; empty if all holds.
        slowdown: longest time of a run of the traffic over its time without faults; None if there are no results.
        recovery_ps: from when a link failed until all that was sent again had been acknowledged; None if nothing was.
    """

    broken: tuple[str, ...]
    slowdown: float | None = None
    recovery_ps: int | None = None


@dataclass(frozen=True)
class Drill:
    """A drill that has been run; `smallest` are faults that break the objective by themselves, none of which can go."""

    number: int
    faults: tuple[Fault, ...]
    judgement: Judgement
    smallest: tuple[Fault, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether the objective held."""
        return not self.judgement.broken


@dataclass(frozen=True)
class DrillPlan:
    """All that drills of a scenario share: its tree, its fabric, its section and its seed."""

    tree: Mapping[str, Any]
    fabric: FabricSpec
    settings: DrillSection
    pauses: bool
    seed: int

    def tree_with(self, faults: Sequence[Fault]) -> dict[str, Any]:
        """Return the scenario with some faults besides its own."""
        tree = copy.deepcopy(dict(self.tree))
        tree["events"] = [*(tree.get("events") or []), *(dict(event) for fault in faults for event in fault.events)]
        links = [dict(item) for fault in faults for item in fault.links]
        if links:
            own = dict(tree.get("faults") or {})
            tree["faults"] = {**own, "links": [*own.get("links", []), *links]}
        return tree

    def procedure(self, number: int) -> Procedure[Drill]:
        """Return the procedure of the drill of this number."""
        (steady,) = yield [Trial("without faults", self.tree_with([]))]
        if steady.failure:
            raise BadInputError(f"the scenario does not end well without faults: {steady.failure}")
        phases = steady.results.phases
        stage = Stage(self.fabric, min(p.start_ps for p in phases), max(p.end_ps for p in phases), self.pauses)
        random = Random(f"{self.seed}/{number}")
        faults = draw_faults(random, stage, kinds_for(stage, self.settings.kinds), self.settings.faults)
        (run,) = yield [self._trial(number, faults)]
        found = judge(run, steady, self.settings.objective)
        if not found.broken:
            return Drill(number, tuple(faults), found)
        smallest = list(faults)
        while len(smallest) > 1:
            fewer = [[*smallest[:place], *smallest[place + 1 :]] for place in range(len(smallest))]
            runs = yield [self._trial(number, each) for each in fewer]
            broken = (
                each
                for each, run in zip(fewer, runs, strict=True)
                if judge(run, steady, self.settings.objective).broken
            )
            left = next(broken, None)
            if left is None:
                break
            smallest = left
        return Drill(number, tuple(faults), found, tuple(smallest))

    def _trial(self, number: int, faults: Sequence[Fault]) -> Trial:
        return Trial(f"{number}: {'; '.join(fault.words for fault in faults)}", self.tree_with(faults))


def judge(run: TrialRun, steady: TrialRun, objective: ObjectiveSection) -> Judgement:
    """Return what a run with faults came to, by its run without them."""
    if run.error:
        return Judgement((f"it failed: {run.error.splitlines()[0]}",))
    broken = [] if run.results.ok else ["results are wrong, or missing"]
    times = [
        (phase.end_ps - phase.start_ps) / (before.end_ps - before.start_ps)
        for phase, before in zip(run.results.phases, steady.results.phases, strict=False)
        if before.end_ps > before.start_ps
    ]
    slowdown = max(times, default=None)
    if len(run.results.phases) != len(steady.results.phases):
        broken.append("not all of the traffic was run")
    if slowdown is not None and slowdown > objective.slowdown:
        broken.append(f"{slowdown:.2f} times as long (objective: {objective.slowdown:g})")
    recoveries = (event.repaired_ps for event in run.results.link_events)
    recovery_ps = max((each for each in recoveries if each is not None), default=None)
    if recovery_ps is not None and recovery_ps > objective.recovery:
        broken.append(f"recovered after {format_time(recovery_ps)} (objective: {format_time(objective.recovery)})")
    return Judgement(tuple(broken), slowdown, recovery_ps)
