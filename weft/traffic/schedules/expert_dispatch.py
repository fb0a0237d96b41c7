"""Dispatch of tokens to the experts of a mixture of experts: a token is a message of its own on each plane.

What comes lands in the scratch buffer, in its order, and is copied to the data when all of it is there and the rank's
own tokens are acknowledged.
"""

from __future__ import annotations

from collections import Counter

from weft.traffic.expert_choice import ExpertChoice, Landing
from weft.traffic.schedule_nodes import (
    DATA,
    SCRATCH,
    Copy,
    RankSchedule,
    Write,
    run_immediate,
)
from weft.traffic.schedules.plan import RankPlan
from weft.traffic.schedules.spec import CollectiveSpec


def direct_dispatch(choice: ExpertChoice, spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Write a token to every rank with an expert that it has chosen."""
    part = _Part(choice, spec, rank)
    for hop in part.dispatch.hops[rank]:
        token = part.dispatch.tokens[hop.token]
        for landing in part.dispatch.passed_on[hop.to][hop]:
            part.send(DATA, token, landing.to, landing.begin)
    for landing in part.dispatch.received[rank]:
        if landing.source != rank:
            part.receive(landing.source, landing)
    return part.finished()


def hierarchical_dispatch(choice: ExpertChoice, spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Write a token once to each host, to the rank of the sender's number; that one passes it on inside.

    So the network carries tokens between ranks of the same number alone (DeepSeek-V3, section 3.2.2).
    """
    part = _Part(choice, spec, rank)
    dispatch, behind_data = part.dispatch, spec.element_count
    for hop in dispatch.hops[rank]:
        if hop.to != rank:
            part.send(DATA, dispatch.tokens[hop.token], hop.to, behind_data + hop.begin)
    for hop, landings in dispatch.passed_on[rank].items():
        if hop.source == rank:
            buffer, token, after = DATA, dispatch.tokens[hop.token], []
        else:
            begin = behind_data + hop.begin
            buffer, token = SCRATCH, range(begin, begin + dispatch.length(hop))
            after = part.receive(hop.source, hop)
        for landing in landings:
            part.send(buffer, token, landing.to, landing.begin, after)
    host, own = divmod(spec.position(rank), spec.ranks_per_host)
    for local in (each for each in range(spec.ranks_per_host) if each != own):
        relay = spec.rank_at(host * spec.ranks_per_host + local)
        for landings in dispatch.passed_on[relay].values():
            for landing in landings:
                if landing.to == rank:
                    part.receive(relay, landing)
    return part.finished()


class _Part:
    """One rank's transfers, to and from each other rank, numbered in their order."""

    def __init__(self, choice: ExpertChoice, spec: CollectiveSpec, rank: int) -> None:
        self.dispatch, self.spec, self.rank = choice.dispatch(spec), spec, rank
        data_bytes = spec.size_bytes
        relayed = sum(self.dispatch.length(hop) for hop in self.dispatch.passed_on[rank] if hop.source != rank)
        self.schedule = RankSchedule(rank, {DATA: data_bytes, SCRATCH: data_bytes + relayed * spec.element_bytes})
        self.plans = [RankPlan(spec, rank, self.schedule, plane) for plane in range(len(spec.plane_rates_bps))]
        self._sent: Counter[int] = Counter()
        self._received: Counter[int] = Counter()
        self._steps: list[int] = []

    def send(self, buffer: str, token: range, to: int, begin: int, after: list[int] | None = None) -> None:
        """Write elements of a buffer to a rank's scratch buffer at `begin`; copy them there if that rank is this."""
        if to == self.rank:
            landing = range(begin, begin + len(token))
            self._steps.append(
                self.schedule.add(Copy(self.spec.span(SCRATCH, landing), self.spec.span(buffer, token)), after or ())
            )
            return
        number = self._sent[to]
        self._sent[to] += 1
        immediate = run_immediate(self.spec.run_tag, number)
        for plan in self.plans:
            part = self.spec.stripe_of(token, plan.plane)
            if part:
                first = begin + part.start - token.start
                target = self.spec.span(SCRATCH, range(first, first + len(part)))
                write = Write(plan.channel_to(to), self.spec.span(buffer, part), target, immediate)
                self._steps.append(self.schedule.add(write, after or ()))

    def receive(self, source: int, landing: Landing) -> list[int]:
        """Wait for a rank's next token; returns the steps, one a plane."""
        number = self._received[source]
        self._received[source] += 1
        token = self.dispatch.tokens[landing.token]
        waits = [plan.wait(source, number) for plan in self.plans if self.spec.stripe_of(token, plan.plane)]
        self._steps.extend(waits)
        return waits

    def finished(self) -> RankSchedule:
        """Copy the result to its place, after everything else; returns the schedule."""
        result = self.dispatch.result(self.rank)
        if result:
            self.schedule.add(Copy(self.spec.span(DATA, result), self.spec.span(SCRATCH, result)), self._steps)
        return self.schedule
