"""Effects of a part's failure on a job's traffic, measured with packets, for failures with the effect `measured`.

The traffic is run twice in a row, in a run without failures and in one in which the part fails in the middle of the
first time. The second time without the part says how fast the job is from then on; what the first time took beyond
that is what the failure itself cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.bench.link_failures import busiest_links
from weft.drills.checkpoint_times import without_checkpoints
from weft.drills.running import measured_tree, virtual_scenario
from weft.errors import BadInputError, WeftError
from weft.goodput import MeasuredFailure
from weft.quantities.units import PS_PER_S
from weft.scenario import Change
from weft.scenario.cluster import ClusterSection, FailureSection, Part
from weft.topologies import FabricSpec
from weft.trials import Procedure, Trial, TrialProgress, TrialRun, TrialRunner

_AS_FAST = 0.999
"""Speeds above it count as the full one: rings meet differently in every run."""


def settled(settings: FailureSection, failure: MeasuredFailure, count: int | None) -> FailureSection:
    """Return failures with the effect that was measured; `count` parts unless the scenario says how many."""
    found: dict[str, Any] = {"count": settings.count or count}
    if failure.error and settings.part == "nic":
        found |= {"effect": "replace"}  # its host has no other
    elif failure.error:
        found |= {"effect": "restart", "repair": None}
    elif failure.speed < _AS_FAST:
        found |= {"effect": "slow", "speed": failure.speed}
    else:
        found |= {"effect": "stall", "stall": failure.stall_s, "repair": None}
    return settings.model_copy(update=found)


def measured_section(
    settings: ClusterSection,
    scenario: Path,
    changes: Sequence[Change],
    fabric: FabricSpec,
    directory: Path,
    workers: int | None = None,
    progress: TrialProgress | None = None,
) -> tuple[ClusterSection, list[MeasuredFailure]]:
    """Return a section in which every `measured` effect is what packets show, and what they showed.

    Args:
        settings: the section.
        scenario: its file, the traffic of which is run under the virtual clock.
        changes: of the scenario.
        fabric: its fabric.
        directory: of the runs; those that have ended there before are not repeated.
        workers: runs at a time.
        progress: is told of runs.

    Raises:
        BadInputError: the scenario has no traffic, its traffic fails without failures, or the fabric lacks a part.
        WeftError: a run could not be made.
    """
    numbers = [number for number, each in enumerate(settings.failures) if each.effect == "measured"]
    if not numbers:
        return settings, []
    tree, parsed = virtual_scenario(scenario, changes)
    if not parsed.traffic:
        raise BadInputError("the scenario has none to measure failures with", place=f"{scenario}: traffic")
    plan = _Plan(tree, fabric)
    procedures = {f"failures[{number}]": plan.procedure(settings.failures[number], number) for number in numbers}
    found = []
    for each in TrialRunner(directory, workers, progress).run(procedures).values():
        if isinstance(each, WeftError):
            raise each
        found.append(each)
    failures = list(settings.failures)
    for number, failure in zip(numbers, found, strict=True):
        count = _parts(fabric).get(failures[number].part) if settings.accelerators is None else None
        failures[number] = settled(failures[number], failure, count)
    return settings.model_copy(update={"failures": failures}), found


def _parts(fabric: FabricSpec) -> Mapping[Part, int]:
    """Return how many parts are like those that fail here: not links of hosts, which fail with NICs, nor leaves."""
    training = {switch.name for switch in fabric.switches if switch.plane != fabric.storage_plane}
    edges = {nic.switch for host in fabric.hosts for nic in host.nics}
    return {"link": len(fabric.training_links), "switch": len(training - edges)}


class _Plan:
    """Trials of a scenario's traffic, twice in a row."""

    def __init__(self, tree: Mapping[str, Any], fabric: FabricSpec) -> None:
        # A checkpoint is no part of the step that a failure disturbs.
        traffic = without_checkpoints(tree["traffic"]) or tree["traffic"]
        self._tree = {**measured_tree(tree), "traffic": [*traffic, *traffic]}
        self._fabric = fabric

    def _trial(self, label: str, event: Mapping[str, Any] | None = None) -> Trial:
        events = list(self._tree.get("events") or []) + ([dict(event)] if event else [])
        return Trial(label, {**self._tree, **({"events": events} if events else {})})

    def procedure(self, failure: FailureSection, number: int) -> Procedure[MeasuredFailure]:
        """Return the procedure that measures a kind of failures."""
        (steady,) = yield [self._trial("without failures")]
        if steady.failure:
            raise BadInputError(f"the traffic does not end well without failures: {steady.failure}", place="traffic")
        begin_ps, (first_ps, second_ps) = steady.results.phases[0].start_ps, _times_ps(steady)
        element, event = self._event(failure.part, steady, f"cluster.failures[{number}].part")
        at_ps = begin_ps + first_ps // 2
        (failed,) = yield [self._trial(f"{element} fails", {**event, "state": "down", "at": f"{at_ps}ps"})]
        if failed.error:
            return MeasuredFailure(failure.title, element, 0.0, 0.0, failed.error.splitlines()[0])
        disturbed_ps, without_ps = _times_ps(failed)
        speed = min(1.0, second_ps / without_ps)
        stall_ps = max(0.0, disturbed_ps - first_ps / 2 - first_ps / 2 / speed)
        return MeasuredFailure(failure.title, element, speed, stall_ps / PS_PER_S)

    def _event(self, part: Part, steady: TrialRun, place: str) -> tuple[str, dict[str, Any]]:
        """Return the name of the part that fails, the one that carried most, and the event without its time."""
        fabric = self._fabric
        if part == "nic":
            nic = fabric.hosts[0].nics[0]
            link = f"{fabric.hosts[0].name}<->{nic.switch}"
            return f"{fabric.hosts[0].name}'s first NIC", {"link": link}
        if part == "plane":
            return "plane 0", {"plane": 0}
        edges = {nic.switch for host in fabric.hosts for nic in host.nics}
        upwards = [str(end) for link in fabric.training_links for end in link.ends if end.node in edges]
        if not upwards:
            raise BadInputError(f"{part}: the fabric has no links between switches", place=place)
        link = busiest_links(steady, upwards)[0]
        if part == "link":
            return link, {"link": link}
        upper = link.split("<->")[1].split(":")[0]
        return f"switch {upper}", {"link": f"{upper}<->*"}


def _times_ps(run: TrialRun) -> Sequence[int]:
    """Return how long the traffic took, the first time and the second."""
    phases = run.results.phases
    half = len(phases) // 2
    return [part[-1].end_ps - part[0].start_ps for part in (phases[:half], phases[half:])]
