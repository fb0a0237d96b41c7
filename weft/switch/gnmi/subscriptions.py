"""Subscriptions of one Subscribe call: which leaves are due when, and which of them have changed.

A stream keeps at most one value of each leaf, whatever its client reads: changes that come meanwhile are merged, and
a sample that is late is not made up for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import grpc
from finsy.proto import gnmi

from weft.quantities.units import NS_PER_S
from weft.switch.gnmi.errors import GnmiError
from weft.switch.gnmi.leaves import Kind, Value
from weft.switch.gnmi.notifications import Place, Read
from weft.switch.gnmi.paths import Selection, select

MAX_SUBSCRIPTIONS = 1024
"""In a call; finsy subscribes to each port, and a switch has up to 512."""
MAX_SCHEDULES = 16
"""Different intervals and ways to sample in a call; each keeps values of its own."""
MIN_INTERVAL_NS = NS_PER_S // 10
"""Shortest sample or heartbeat interval: a reading holds up the emulated switch."""
DEFAULT_INTERVAL_NS = 10 * NS_PER_S
"""For counters of TARGET_DEFINED subscriptions."""
MAX_INTERVAL_NS = 10**7 * NS_PER_S
"""Longer intervals, which fit into gNMI's 64 bits, but not into a wait of the system's, end there."""
LOOK_INTERVAL_NS = NS_PER_S
"""How often the states of ports are compared besides changes that are noticed: nothing reports admin-status."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When leaves are sent: at an interval (None: as they change), and at the latest after a heartbeat (0: none)."""

    interval_ns: int | None
    suppress_redundant: bool = False
    heartbeat_ns: int = 0


@dataclass(slots=True)
class Schedule:
    """Leaves of one rule, when they are due, and the values sent last, by switch."""

    rule: Rule
    selections: dict[Selection, None]
    due_ns: int = 0
    beat_ns: int = 0
    sent: dict[str, dict[Place, Value]] = field(default_factory=dict)

    def begin(self, now_ns: int) -> None:
        """Start to count time."""
        self.due_ns = now_ns + self._interval_ns
        self.beat_ns = now_ns + self.rule.heartbeat_ns

    @property
    def _interval_ns(self) -> int:
        return LOOK_INTERVAL_NS if self.rule.interval_ns is None else self.rule.interval_ns

    @property
    def _compares(self) -> bool:
        return self.rule.interval_ns is None or self.rule.suppress_redundant

    @property
    def next_ns(self) -> int:
        """When it is due next."""
        return min(self.due_ns, self.beat_ns) if self.rule.heartbeat_ns else self.due_ns

    def is_due(self, now_ns: int, has_news: bool) -> bool:
        """Return whether to read now; `has_news`: the state of a port has changed."""
        return now_ns >= self.next_ns or (has_news and self.rule.interval_ns is None)

    def starts_beat(self, now_ns: int) -> bool:
        """Plan the next time; return whether all values are to be sent, whether they have changed or not."""
        if now_ns >= self.due_ns:
            self.due_ns = now_ns + self._interval_ns
        is_beat = bool(self.rule.heartbeat_ns) and now_ns >= self.beat_ns
        if is_beat:
            self.beat_ns = now_ns + self.rule.heartbeat_ns
        return is_beat

    def changed(self, switch: str, reads: Iterable[Read]) -> list[Read]:
        """Return the values to send of those read of a switch, and keep them for the next time."""
        if not self._compares:
            return list(reads)
        before = self.sent.setdefault(switch, {})
        news = []
        for selection, keys, value in reads:
            if before.get((selection.leaf, keys)) != value:
                before[selection.leaf, keys] = value
                news.append((selection, keys, value))
        return news


def schedules(subscriptions: Sequence[gnmi.Subscription], prefix: gnmi.Path, is_stream: bool) -> list[Schedule]:
    """Return the leaves of a subscription list by rule; ONCE and POLL have one rule.

    Raises GnmiError if a path is wrong, or a mode does not suit its leaves.
    """
    if not subscriptions:
        raise GnmiError("the list has no subscriptions")
    if len(subscriptions) > MAX_SUBSCRIPTIONS:
        raise GnmiError(
            f"{len(subscriptions)} subscriptions in a call",
            code=grpc.StatusCode.RESOURCE_EXHAUSTED,
            valid=f"at most {MAX_SUBSCRIPTIONS}; wildcards name many leaves at once",
        )
    found: dict[Rule, Schedule] = {}
    for each in subscriptions:
        for selection in select(each.path, prefix):
            rule = _rule(each, selection) if is_stream else Rule(None)
            found.setdefault(rule, Schedule(rule, {})).selections[selection] = None
        if len(found) > MAX_SCHEDULES:
            raise GnmiError(
                f"more than {MAX_SCHEDULES} combinations of mode and intervals in a call",
                code=grpc.StatusCode.RESOURCE_EXHAUSTED,
            )
    return list(found.values())


def _rule(subscription: gnmi.Subscription, selection: Selection) -> Rule:
    mode, leaf = subscription.mode, selection.leaf
    heartbeat_ns = _interval_ns("heartbeat_interval", subscription.heartbeat_interval, 0)
    if mode == gnmi.TARGET_DEFINED:
        if leaf.kind is Kind.COUNTER:
            return Rule(DEFAULT_INTERVAL_NS, heartbeat_ns=heartbeat_ns)
        return Rule(None, heartbeat_ns=heartbeat_ns)
    if mode == gnmi.ON_CHANGE:
        if leaf.kind is Kind.COUNTER:
            raise GnmiError(f"{leaf} changes with packets: subscribe by SAMPLE or TARGET_DEFINED, not ON_CHANGE")
        return Rule(None, heartbeat_ns=heartbeat_ns)
    if mode == gnmi.SAMPLE:
        interval_ns = _interval_ns("sample_interval", subscription.sample_interval, MIN_INTERVAL_NS)
        return Rule(
            interval_ns, subscription.suppress_redundant, heartbeat_ns if subscription.suppress_redundant else 0
        )
    raise GnmiError(f"unknown subscription mode {mode}", valid=gnmi.SubscriptionMode.keys())


def _interval_ns(name: str, given_ns: int, default_ns: int) -> int:
    if given_ns == 0:
        return default_ns
    if given_ns < MIN_INTERVAL_NS:
        raise GnmiError(f"{name} is {given_ns} ns", valid=f"0, or at least {MIN_INTERVAL_NS} ns")
    return min(given_ns, MAX_INTERVAL_NS)
