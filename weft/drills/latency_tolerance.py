"""How much latency a job tolerates: the extra latency of each message between hosts that makes it so much longer.

The closed form counts the messages between hosts that follow each other on the job's critical path (n) and lets the job
take n times the extra latency longer. Collectives that send large data in pieces hide latency behind transfers, so more
may be tolerated; where another path becomes the longest one, less. Without congestion and hiding, the job's time is
convex in the latency (Shen et al., "LLAMP: Assessing Network Latency Tolerance of HPC Applications with Linear
Programming", SC 2024). Runs find where the limit really is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.drills.running import virtual_scenario
from weft.errors import BadInputError, WeftError
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_S
from weft.scenario import Change
from weft.scenario.nic import NicSection
from weft.trials import Procedure, Trial, TrialProgress, TrialRun, TrialRunner

DEFAULT_LONGER = 0.05
_FIRST_SHARE = 0.01
"""Share of the job's time: the first extra latency that is tried where no critical path says more."""
_MOST_RUNS = 40
_NARROW = 1 / 16
"""The search ends when the bounds are this share of the upper one apart."""
MOST_PS = 2 * PS_PER_S
"""The most extra latency, half of it at each end."""


@dataclass(frozen=True)
class LatencyTolerance:
    """Latency that a job tolerates; times in ps.

    Attributes:
        longer: the limit: by what share of its time the job may take longer.
        time_ps: of the job without extra latency.
        latencies: messages between hosts that follow each other on its critical path; None: traffic without one.
        tolerated_ps: the largest extra latency of a message that has been run with which the limit holds.
        exceeded_ps: the least with which it does not; None: none was found.
        runs: how many runs that took.
    """

    longer: float
    time_ps: int
    latencies: float | None
    tolerated_ps: int
    exceeded_ps: int | None
    runs: int

    @property
    def formula_ps(self) -> float | None:
        """Return the closed form; None without messages on a critical path."""
        return self.longer * self.time_ps / self.latencies if self.latencies else None

    def lines(self) -> list[str]:
        """Return the outcome in sentences."""
        took = f"The traffic takes {format_time(self.time_ps)}"
        if self.exceeded_ps is None:
            found = f"{took}, and at most {self.longer:.1%} longer with {format_time(self.tolerated_ps)} more latency."
        else:
            found = (
                f"{took}. It takes at most {self.longer:.1%} longer with {format_time(self.tolerated_ps)} more latency "
                f"of each message between hosts, and more than that with {format_time(self.exceeded_ps)} ({self.runs} "
                "runs)."
            )
        if self.formula_ps is None:
            return [found]
        return [
            found,
            f"{self.latencies:,.0f} messages between hosts follow each other on the critical path: "
            f"{format_time(self.formula_ps)} by the closed form.",
        ]


def latency_tolerance(
    scenario: Path,
    changes: Sequence[Change],
    longer: float,
    directory: Path,
    workers: int | None = None,
    progress: TrialProgress | None = None,
) -> LatencyTolerance:
    """Return what the traffic of a scenario tolerates, by runs under the virtual clock.

    Args:
        scenario: its file.
        changes: of the scenario.
        longer: by what share of its time the traffic may take longer, above 0.
        directory: of the runs; those that have ended there before are not repeated.
        workers: runs at a time.
        progress: is told of runs.

    Raises:
        BadInputError: the scenario is not valid, has no traffic, or its traffic fails.
        WeftError: a run could not be made.
    """
    tree, parsed = virtual_scenario(scenario, changes)
    if not parsed.traffic:
        raise BadInputError("the scenario has none that could wait for messages", place=f"{scenario}: traffic")
    found = TrialRunner(directory, workers, progress).run({"latency": tolerance_procedure(tree, parsed.nic, longer)})
    (result,) = found.values()
    if isinstance(result, WeftError):
        raise result
    return result


def tolerance_procedure(tree: Mapping[str, Any], nic: NicSection, longer: float) -> Procedure[LatencyTolerance]:
    """Return the procedure that finds what a scenario's traffic tolerates; `nic` is the scenario's."""
    if not longer > 0:
        raise BadInputError(f"{longer:g} as the share by which a job may take longer", valid="above 0")
    (steady,) = yield [Trial("no extra latency", tree)]
    if steady.failure:
        raise BadInputError(f"the traffic does not end well: {steady.failure}", place="traffic")
    time_ps, latencies = _time_ps(steady), _latencies(steady)
    search = _Search((1 + longer) * time_ps, time_ps)
    next_ps = int(longer * time_ps / latencies) if latencies else int(_FIRST_SHARE * time_ps)
    for _ in range(_MOST_RUNS):
        next_ps = min(max(2, next_ps), MOST_PS)
        (run,) = yield [_trial(tree, nic, next_ps)]
        search.note(next_ps, None if run.failure else _time_ps(run))
        if search.is_over:
            break
        next_ps = search.next_ps()
    return LatencyTolerance(longer, time_ps, latencies, search.low_ps, search.high_ps, 1 + search.runs)


class _Search:
    """Closes in on the largest latency with which the traffic takes at most `most_ps`."""

    def __init__(self, most_ps: float, steady_ps: int) -> None:
        self._most_ps = most_ps
        self._low_took_ps, self._high_took_ps = steady_ps, steady_ps
        self.low_ps = 0
        self.high_ps: int | None = None
        self.runs = 0

    def note(self, extra_ps: int, took_ps: int | None) -> None:
        """Take what a run with this latency took; None: it failed."""
        self.runs += 1
        if took_ps is not None and took_ps <= self._most_ps:
            self.low_ps, self._low_took_ps = extra_ps, took_ps
        else:
            # A run that fails says only on which side the limit is: as much beyond it as the other bound is below.
            self.high_ps = extra_ps
            self._high_took_ps = took_ps if took_ps is not None else int(2 * self._most_ps) - self._low_took_ps

    @property
    def is_over(self) -> bool:
        """Whether the bounds are near, or the largest latency that is tried holds."""
        if self.high_ps is None:
            return self.low_ps >= MOST_PS
        return self.high_ps - self.low_ps <= max(2, _NARROW * self.high_ps)

    def next_ps(self) -> int:
        """Return the latency to try next: twice as much until one is too long, then where a line between both crosses.

        Of times that are convex in the latency the line's crossing is just below the limit. Each try is a step away
        from both bounds, so that times that are not convex end the search, too.
        """
        if self.high_ps is None:
            return 2 * self.low_ps
        step_ps = max(1, int(_NARROW * self.high_ps))
        share = (self._most_ps - self._low_took_ps) / max(1, self._high_took_ps - self._low_took_ps)
        crossing_ps = self.low_ps + int(share * (self.high_ps - self.low_ps))
        return min(max(crossing_ps, self.low_ps + step_ps), max(self.low_ps + 1, self.high_ps - step_ps))


def _trial(tree: Mapping[str, Any], nic: NicSection, extra_ps: int) -> Trial:
    """Return the scenario with a message's extra latency, half at the host that sends it and half at its receiver."""
    own = dict(tree.get("nic") or {})
    own["dma_latency"] = f"{nic.dma_latency + extra_ps // 2}ps"
    return Trial(f"{extra_ps} ps more", {**tree, "nic": own})


def _time_ps(run: TrialRun) -> int:
    phases = run.results.phases
    return max(each.end_ps for each in phases) - min(each.start_ps for each in phases)


def _latencies(run: TrialRun) -> float | None:
    """Return the messages in turn of all items of the traffic; None if one has no critical path, or none waits."""
    found = [each for results in run.results.traffic.values() for each in results]
    paths = [getattr(each, "critical_path", None) for each in found]
    known = [each for each in paths if each is not None]
    if not known or len(known) < len(paths):
        return None
    return float(sum(each.latencies for each in known)) or None
