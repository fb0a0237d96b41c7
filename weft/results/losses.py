"""Packets that ended where nobody had planned it: in switches, for want of an entry, a port or a next hop."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.markup import escape

from weft.controller.counters import COUNTED_SOURCES, DROPS_TABLE, Count, SwitchCounters
from weft.quantities.readable import counted
from weft.results.packet_conservation import UNRESOLVED
from weft.switch.daemon.stats import SwitchesStats, SwitchLoss, SwitchStats
from weft.traffic.host_stats import HostStats

_PROGRAM = "program"
_ANSWERED = "ttl_expired"
_MOST_SHOWN = 8
ABSORBED = {
    "repeated_contributions": ("aggregation_duplicate", "aggregation_old_round"),
    "repeated_requests": ("service_duplicate", "service_old_sequence"),
}
"""Reasons of Weft's own program that are no drops, by what they are counted as."""


@dataclass(frozen=True)
class LossResult:
    """Packets that ended at a switch or a host for one reason. What queues and links drop is not among them."""

    node: str
    """The switch; or the host that could not send them."""
    port: int | None
    """By which they had come; null at a host, and where Weft's own program says why and they had come by several."""
    reason: str
    """As in `drops`."""
    packets: int
    """How many."""
    table: str = ""
    """The table that ran the action; empty where the program did so outside of tables, or did not drop them."""
    action: str = ""
    """The program's action that marked them to be dropped."""
    outcome: Literal["", "hit", "miss"] = ""
    """Whether an entry of the table had matched."""
    source: str = ""
    """Where the program marks them, `FILE:LINE`, if its compiler says so."""
    copies: bool = False
    """Whether they were copies of other packets, such as a flood's copy for the ingress port: then nothing is lost."""

    @property
    def is_of_a_switch(self) -> bool:
        """Return whether a switch has lost them, so that `weft trace` can show one."""
        return self.reason != UNRESOLVED and not self.copies

    @property
    def place(self) -> str:
        """Return where, in words."""
        return self.node if self.port is None else f"{self.node} port {self.port}"


def loss_results(
    counters: Mapping[str, SwitchCounters],
    switch_stats: SwitchesStats | None,
    endpoint_stats: Iterable[HostStats],
) -> list[LossResult]:
    """Return what ended at switches and hosts, in the order of their names; nothing of BMv2's ports."""
    found: list[LossResult] = []
    stats = switch_stats["switches"] if switch_stats is not None else {}
    for name in dict.fromkeys([*counters, *stats]):
        found += _of_switch(name, counters.get(name, SwitchCounters(name)), stats.get(name))
    for endpoint in endpoint_stats:
        unresolved = endpoint["ip"]["unresolved"]["packets"] if endpoint["ip"] is not None else 0
        if unresolved:
            found.append(LossResult(endpoint["name"], None, UNRESOLVED, unresolved))
    return found


def _of_switch(name: str, counters: SwitchCounters, stats: SwitchStats | None) -> Iterator[LossResult]:
    losses = stats["losses"] if stats is not None else []
    by_program = [each for each in losses if each["reason"].startswith(_PROGRAM)]
    own = {reason: count.packets for reason, count in counters.drops.items()}
    counted_packets = sum(own.values()) + sum(
        outcomes.get("absorb", Count()).packets for outcomes in (counters.aggregation, counters.synchronisation)
    )
    rest = sum(each["packets"] for each in by_program) - counted_packets
    if stats is not None and rest < 0 and _ANSWERED in own:
        # The program has counted them, and sent back in their place that their time was over.
        own[_ANSWERED] = max(0, own[_ANSWERED] + rest)
    for absorbed in ABSORBED.values():
        for reason in absorbed:
            own.pop(reason, None)
    # The program counts by reason, the switch by port: both are known together where there is one port.
    ports = {each["port"] for each in by_program if _file(each) == COUNTED_SOURCES[0]}
    port = ports.pop() if len(ports) == 1 else None
    yield from (LossResult(name, port, reason, packets) for reason, packets in own.items() if packets)
    if rest > 0:
        yield from _uncounted(name, by_program, rest, counts_itself=counted_packets > 0)
    for each in losses:
        if not each["reason"].startswith(_PROGRAM):
            yield LossResult(name, each["port"], f"switch {each['reason']}", each["packets"])


def _uncounted(name: str, by_program: Sequence[SwitchLoss], rest: int, *, counts_itself: bool) -> Iterator[LossResult]:
    """Yield what a program has dropped and not counted: all, unless parts of Weft's own program count for it."""
    if counts_itself:
        by_program = [each for each in by_program if _file(each) not in COUNTED_SOURCES]
    for each in by_program:
        packets = min(rest, each["packets"])
        rest -= packets
        if packets:
            yield _dropped_by_program(name, each, packets)


def _file(loss: SwitchLoss) -> str:
    return loss["source"].partition(":")[0]


def _dropped_by_program(name: str, loss: SwitchLoss, packets: int) -> LossResult:
    table, action, outcome, source = loss["table"], loss["action"], loss["outcome"], loss["source"]
    if table:
        what = f"{action} ({f'{outcome} in ' if outcome else ''}{table})"
    elif source:
        action, what = "", source
    else:
        what = action or loss["reason"].removeprefix(f"{_PROGRAM}_")
    reason = f"{_PROGRAM}: {what}"
    return LossResult(name, loss["port"], reason, packets, table, action, outcome, source, loss["is_copy"])


def sums_by_reason(losses: Iterable[LossResult]) -> Counter[str]:
    """Return packets by reason, over all places."""
    sums = Counter[str]()
    for each in losses:
        sums[each.reason] += each.packets
    return sums


def lost_in_switches(losses: Iterable[LossResult]) -> int:
    """Return how many packets ended in switches."""
    return sum(each.packets for each in losses if each.is_of_a_switch)


@dataclass(frozen=True)
class Traceable:
    """Arguments with which `weft trace` runs a scenario again: its file, and options that follow."""

    scenario: str
    options: tuple[str, ...] = ()


def trace_command(loss: LossResult, traced: Traceable) -> str:
    """Return the command that shows the first such packet in its switch, step by step."""
    port = [] if loss.port is None else ["--port", str(loss.port)]
    words = ["--switch", loss.node, *port, "--when", _condition(loss), *traced.options]
    return shlex.join(["weft", "trace", traced.scenario, *words])


def _condition(loss: LossResult) -> str:
    """Return what packets fulfil that were lost for the reason of a loss."""
    if loss.reason.startswith("switch "):
        return f"drop {loss.reason.removeprefix('switch ')}"
    if loss.reason.startswith(f"{_PROGRAM}:"):
        return "drop"
    # By its control, as other actions of the program may have the name of a reason.
    return f"drop and action {DROPS_TABLE}.{loss.reason}"


def print_losses(console: Console, losses: Sequence[LossResult], traceable: Traceable | None) -> None:
    """Print where packets ended in switches and hosts, those with the most first, and how to see one if it is known."""
    losses = [each for each in losses if not each.copies]
    if not losses:
        return
    worst = worst_of(losses)
    total = sum(each.packets for each in losses)
    console.print(f"\n[bold red]lost[/bold red]: {counted(total, 'packet')} in switches and hosts")
    for each in worst:
        console.print(escape(f"  {sentence(each)}"), soft_wrap=True)
        if traceable is not None and each.is_of_a_switch:
            console.print(escape(f"    {trace_command(each, traceable)}"), soft_wrap=True)
    if len(losses) > len(worst):
        console.print(f"  … and {len(losses) - len(worst)} more places; results.json has all")


def worst_of(losses: Sequence[LossResult]) -> list[LossResult]:
    """Return those with the most packets, as many as people read."""
    return sorted(losses, key=lambda each: -each.packets)[:_MOST_SHOWN]


def sentence(loss: LossResult) -> str:
    """Return where packets ended, how many, and why."""
    why = loss.reason
    if why == UNRESOLVED:
        why = "never sent: nobody answered for the next hop's MAC (ARP, neighbour discovery)"
    return f"{loss.place}: {counted(loss.packets, 'packet')}, {why}"
