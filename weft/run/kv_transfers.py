"""How long KV caches take from a prefill to a decode instance on an otherwise idle fabric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.prefill import PrefillSchedule, prefill_times
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_S
from weft.recording.ideal_times import IdealTimes
from weft.run.jobs import JobRun
from weft.topologies import ScaleUpSpec
from weft.traffic.jobs.native_job import STRIPE_BYTES
from weft.traffic.jobs.rank_job import SHARE_UNIT, shares_of_planes

_SCALE_UP = -1
"""Plane number of messages within a host."""


@dataclass(frozen=True)
class _Message:
    """Part of a message: how long it occupies the slowest link, and when it has arrived, since it was sent."""

    plane: int
    busy_ps: int
    arrival_ps: int


class IdealTransfers:
    """How long requests wait for their caches if only the ports at both ends limit the transfer.

    A rank's messages for a request are serialised at its port and at the receiver's; there are no messages of other
    requests. Switches store and forward frames, as in `IdealTimes`.
    """

    def __init__(self, plan: InferencePlan, ran: JobRun, ideal: IdealTimes, scale_up: ScaleUpSpec | None) -> None:
        self._plan, self._ran, self._ideal, self._scale_up = plan, ran, ideal, scale_up
        self._prefill = prefill_times(plan)
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, schedule: PrefillSchedule) -> Integers:
        """Return for each request the time in ps from the end of its prefill to the arrival of its cache."""
        rows = zip(
            schedule.prefill.tolist(),
            schedule.decode.tolist(),
            (self._plan.requests.prompt_tokens - schedule.cached_tokens).tolist(),
            schedule.cached_tokens.tolist(),
            (self._plan.requests.prompt_tokens - schedule.held_tokens).tolist(),
            strict=True,
        )
        return np.array([self._waiting_ps(*row) for row in rows], np.int64)

    def _waiting_ps(self, prefill: int, decode: int, computed: int, cached: int, sent: int) -> int:
        key = (prefill, decode, computed, cached, sent)
        if key not in self._known:
            end_ps = self._prefill.prefill_ps(computed, cached)
            self._known[key] = max(0, self._arrival_ps(*key) - end_ps)
        return self._known[key]

    def _arrival_ps(self, prefill: int, decode: int, computed: int, cached: int, sent: int) -> int:
        """Return when the last port has sent or received all of a cache, since the start of its prefill.

        So many tokens are computed behind so many cached ones, and caches of so many are sent.
        """
        layers_ps = self._prefill.layers_ps(computed, cached)
        ready_ps = np.cumsum(layers_ps) if self._plan.is_by_layer else [self._prefill.prefill_ps(computed, cached)]
        latest_ps = 0
        for messages, in_turn in self._by_port(prefill, decode, sent):
            busy_ps = sum(each.busy_ps for each in messages)
            # If messages take planes in turn, only one in `in_turn` earlier messages uses the same plane.
            behind = np.arange(len(ready_ps))[::-1] // in_turn
            begin_ps = int(np.max(np.asarray(ready_ps) + behind * busy_ps))
            latency_ps = min(each.arrival_ps - each.busy_ps for each in messages)
            latest_ps = max(latest_ps, begin_ps + busy_ps + latency_ps)
        return latest_ps

    def _by_port(self, prefill: int, decode: int, prompt: int) -> Iterator[tuple[list[_Message], int]]:
        """Yield each port's messages for a layer, or for all layers if the cache is sent whole.

        Each comes with the number of planes over which whole messages rotate.
        """
        ports: dict[tuple[int, int], list[_Message]] = defaultdict(list)
        in_turn: dict[tuple[int, int], int] = {}
        for share in self._plan.shares:
            source = self._plan.prefill.ranks_of(prefill)[share.source]
            destination = self._plan.decode.ranks_of(decode, self._plan.prefill.rank_count)[share.destination]
            messages, turns = self._messages(
                self._ran.ranks[source],
                self._ran.ranks[destination],
                self._plan.message_bytes(share.heads, prompt),
            )
            for message in messages:
                for rank in (source, destination):
                    ports[rank, message.plane].append(message)
                    in_turn[rank, message.plane] = turns
        yield from ((messages, in_turn[port]) for port, messages in ports.items())

    def _messages(self, source: int, destination: int, size_bytes: int) -> tuple[list[_Message], int]:
        """Return the parts of a message between two of the fabric's ranks, and over how many planes messages rotate."""
        hosts = self._ran.places.hosts
        if self._scale_up is not None and hosts[source] == hosts[destination]:
            busy_ps = -(-size_bytes * 8 * PS_PER_S // self._scale_up.rate_bps)
            return [_Message(_SCALE_UP, busy_ps, busy_ps + self._scale_up.latency_ps)], 1
        planes, shares = self._planes
        if size_bytes < STRIPE_BYTES:
            whole = self._over(source, destination, planes, np.full(len(planes), size_bytes))
            return [min(whole, key=lambda each: each.arrival_ps)], len(planes)
        sizes = np.array([size_bytes * share // SHARE_UNIT for share in (0, *shares)], np.int64)
        return self._over(source, destination, planes, sizes[1:] - sizes[:-1]), 1

    @cached_property
    def _planes(self) -> tuple[list[int], tuple[int, ...]]:
        """Planes in use, and where each plane's part of a message ends, in 1/65536."""
        return shares_of_planes(self._ran.places.plane_rates_bps)

    def _over(self, source: int, destination: int, planes: list[int], sizes: Integers) -> list[_Message]:
        count = len(planes)
        ends = np.full(count, source), np.full(count, destination), np.array(planes, np.int64)
        busy = self._ideal.occupancies(*ends, sizes).tolist()
        arrivals = self._ideal.arrivals(*ends, sizes).tolist()
        return [_Message(*each) for each in zip(planes, busy, arrivals, strict=True)]
