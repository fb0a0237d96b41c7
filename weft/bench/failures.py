"""Failures of links and switches while a collective runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.bench.collectives import collective_item, members, segments_for
from weft.bench.link_failures import busiest_links, failures, is_idle, lost_packets
from weft.bench.setup import Setup
from weft.bench.subject import Subject
from weft.quantities.units import PS_PER_US
from weft.trials import Trial, TrialRun


@dataclass(frozen=True)
class Failure:
    """A failure by name, as an event of a scenario without its time.

    Attributes:
        is_idle: the links that fail carry nothing of the AllReduce, so that their failure costs it nothing.
    """

    element: str
    event: Mapping[str, Any]
    is_idle: bool

    @property
    def name(self) -> str:
        """The element that fails, and whether it is idle."""
        return f"{self.element} (idle)" if self.is_idle else self.element


@dataclass(frozen=True)
class Impact:
    """Effects of a failure on a collective.

    Attributes:
        loss_ps: from the failure to the last packet with data that was lost; 0 if none was.
        lost_packets: on the links that failed, and in their queues.
        redistribution_ps: from the failure until the controller's last table entry was written; None if never.
        recovery_ps: from the failure until hosts had the last acknowledgement of what they sent again; None if nothing.
        time_ps: of the collective.
        retransmissions: packets sent again.
    """

    loss_ps: int
    lost_packets: int
    redistribution_ps: int | None
    recovery_ps: int | None
    time_ps: int
    retransmissions: int


SUPERSPINE = "superspine link"


def failures_of(subject: Subject, steady: TrialRun) -> list[Failure]:
    """Return the failures that a fabric with a choice of paths can have: an uplink, a spine, a core's link.

    Each is the one that carried most in a steady trial with the same way of balancing load.
    """
    links = subject.fabric.training_links
    found: list[Failure] = []
    groups = [group for group in subject.uplinks if len(group.ports) > 1]
    if not groups:
        return found
    uplink = busiest_links(steady, groups[0].ports)[0]
    upper = uplink.split("<->")[1].split(":")[0]
    found.append(Failure("leaf uplink", {"link": uplink, "state": "down"}, is_idle(steady, [uplink])))
    of_upper = [f"{link.a}<->{link.b}" for link in links if upper in (link.a.node, link.b.node)]
    if len(of_upper) > 1:
        found.append(Failure("spine switch", {"link": f"{upper}<->*", "state": "down"}, is_idle(steady, of_upper)))
    tiers = {switch.name: switch.tier for switch in subject.fabric.switches}
    between = [link for link in links if {tiers[end.node] for end in link.ends} == {1, 2}]
    if between:
        link = busiest_links(steady, [str(each.a) for each in between])[0]
        found.append(Failure(SUPERSPINE, {"link": link, "state": "down"}, is_idle(steady, [link])))
    return found


IDLE_CAUSE = "(idle): the links that fail carry nothing of the AllReduce, and their failure costs it nothing"
"""An anomaly of tests in which an idle element fails, behind its name."""


def steady_trial(setup: Setup, size_bytes: int, repetitions: int) -> Trial:
    """Return a trial of AllReduces of all ranks without a failure."""
    ranks = members(setup, setup.subject.ranks)
    return setup.trial(
        f"steady state{_of(setup)}",
        [collective_item(setup.subject, "allreduce", size_bytes, ranks, repetitions)],
        segments_for(setup, size_bytes),
    )


def failing_trial(setup: Setup, size_bytes: int, failure: Failure, at_ps: int) -> Trial:
    """Return a trial of one AllReduce with a failure at a time of the fabric's clock."""
    ranks = members(setup, setup.subject.ranks)
    return setup.trial(
        f"{failure.name} fails{_of(setup)}",
        [collective_item(setup.subject, "allreduce", size_bytes, ranks)],
        segments_for(setup, size_bytes),
        events=[{**failure.event, "at": f"{at_ps}ps"}],
    )


def _of(setup: Setup) -> str:
    return f", {setup.variant.title}" if setup.variant.title else ""


def middle_ps(steady: TrialRun) -> int:
    """Return the time in the middle of the first AllReduce of a steady trial."""
    phase = steady.results.phases[0]
    return (phase.start_ps + phase.end_ps) // 2


def impact_of(run: TrialRun) -> Impact:
    """Return what the failure in a trial did."""
    events = failures(run)
    begins = [each.happened_ps for each in events if each.happened_ps is not None]
    begin = min(begins, default=0)
    losses = [each.last_data_loss_ps for each in events if each.last_data_loss_ps is not None]
    written = [each.reprogrammed_ps for each in events if each.reprogrammed_ps is not None]
    recovered = [each.last_recovery_ps for each in events if each.last_recovery_ps is not None]
    return Impact(
        max(losses, default=begin) - begin,
        lost_packets(events),
        max(written) - begin if written else None,
        max(recovered) - begin if recovered else None,
        run.results_of("collectives")[0].time_ps,
        run.results.retransmissions,
    )


def in_us(time_ps: int | None) -> float | str:
    """Return a time as a cell of microseconds."""
    return "none" if time_ps is None else round(time_ps / PS_PER_US, 3)
