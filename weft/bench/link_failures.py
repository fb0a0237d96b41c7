"""Links that fail while traffic runs: which ones, and what the results say of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.bench.measures import peers_of, port_bytes
from weft.bench.setup import Setup
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_MS
from weft.results.link_events import LinkEventResult
from weft.results.report_parts import Cell
from weft.trials import TrialRun

HEADINGS = ("convergence (ms)", "disruption (ms)", "packets lost", "recovered after (ms)")


def control_of(setup: Setup) -> str:
    """Return how fast switches and the controller are, as a sentence about the procedure."""
    control = setup.subject.spec.options.control
    return (
        f"switches know of a failure after {format_time(control.detection)} (control.detection), and the controller's "
        f"requests take {format_time(control.latency)} (control.latency): convergence is made of these"
    )


def down(link: str, at_ps: int) -> dict[str, Any]:
    """Return the event that a link fails."""
    return {"link": link, "state": "down", "at": f"{at_ps}ps"}


def up(link: str, at_ps: int) -> dict[str, Any]:
    """Return the event that a link comes back."""
    return {"link": link, "state": "up", "at": f"{at_ps}ps"}


def busiest_links(run: TrialRun, ports: Sequence[str], *, towards: bool = False) -> list[str]:
    """Return the links of some ports, those that carried most from there, or `towards` there, first."""
    sent, peers = port_bytes(run), peers_of(run)
    carried = {port: sent[peers[port] if towards else port] for port in ports}
    return [f"{port}<->{peers[port]}" for port in sorted(carried, key=lambda port: -carried[port])]


def is_idle(run: TrialRun, links: Sequence[str]) -> bool:
    """Return whether links have carried nothing either way."""
    sent = port_bytes(run)
    return not any(sent[port] for link in links for port in link.split("<->"))


def events_row(run: TrialRun) -> list[Cell]:
    """Return figures of a run's failures in the order of `HEADINGS`."""
    failed = failures(run)
    return [
        _longest_ms([event.recovery_ps for event in failed]),
        disruption_ms(run),
        lost_packets(failed),
        recovery_ms(run),
    ]


def failures(run: TrialRun) -> list[LinkEventResult]:
    """Return the links of a run that failed."""
    return [event for event in run.results.link_events if event.state == "down" and event.happened_ps is not None]


def disruption_ms(run: TrialRun) -> float:
    """Return from when a link failed until the last data were lost on it; 0 if none were."""
    return _longest_ms(
        [
            event.last_data_loss_ps - event.happened_ps
            for event in failures(run)
            if event.last_data_loss_ps is not None and event.happened_ps is not None
        ]
    )


def recovery_ms(run: TrialRun) -> float:
    """Return from when a link failed until hosts had acknowledgements of all that they sent again; 0: nothing was."""
    return _longest_ms([event.repaired_ps for event in failures(run)])


def lost_packets(events: Sequence[LinkEventResult]) -> int:
    """Return the packets lost on links, in their queues and at ports that were down."""
    return sum(
        part.packets for each in events for part in (each.in_flight, each.queued, each.refused) if part is not None
    )


def _longest_ms(times_ps: Sequence[int | None]) -> float:
    return round(max((each or 0 for each in times_ps), default=0) / PS_PER_MS, 5)


def ports_up_from(setup: Setup, ranks: Sequence[int]) -> list[str]:
    """Return the ports that lead away from hosts, of the switches of some ranks."""
    fabric = setup.subject.fabric
    switches = {nic.switch for rank in ranks for nic in fabric.hosts[rank].nics}
    return [port for group in setup.subject.uplinks if group.switch in switches for port in group.ports]
