"""Requests to a parameter store as a task of a fabric; answers are compared with the blocks written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.results.latencies import latencies_of
from weft.results.parameter_stores import PARAMETER_STORES, ParameterStoreResult
from weft.run.spare_hosts import members
from weft.run.task import Ended, Task
from weft.topologies import serialisation_ps
from weft.traffic.answers import ParameterRecords, StoreCounts
from weft.traffic.commands.parameters import ParameterPart, ParameterRequests
from weft.traffic.mapped_data import RankBuffer
from weft.traffic.service_format import PARAMETER_FRAME_BYTES

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

FIRST_VERSION = 1
_NOBODY = 0xFFFFFFFF


@dataclass(frozen=True)
class StoreUse:
    """Ranks of the store and its clients, the number of blocks that its switch caches, and the requests."""

    store: int
    clients: tuple[int, ...]
    cached_blocks: int
    requests: ParameterRequests


def parameter_store_task(fabric: Fabric, use: StoreUse) -> Task[ParameterStoreResult]:
    """Return a task of all clients' requests."""

    def prepare(_buffers: Sequence[RankBuffer], _results: list[Path], _jobs: Sequence[int]) -> int:
        lab = fabric.lab
        names = members(lab.fabric, fabric.hosts)
        group = lab.controller.serve_parameters(
            names[use.store],
            [names[rank] for rank in use.clients],
            lab.operations.planes_in_use[0],
            use.cached_blocks,
            lab.options.ip_version,
        )
        number = lab.fabric.first_nics[group.plane]
        nic = lab.fabric.host(group.store).nic(number)
        address = str((nic.ipv4 if group.ip_version == 4 else nic.ipv6).ip)
        parts = {
            rank: ParameterPart(number, group.group_id, group.epoch, group.q_key, client, address)
            for client, rank in enumerate(use.clients)
        }
        parts[use.store] = ParameterPart(number, group.group_id, group.epoch, group.q_key, None, address)
        return fabric.hosts.prepare_parameters(parts, use.requests)

    def result(ended: Sequence[Ended]) -> ParameterStoreResult:
        (run,) = ended
        records = [each for each in run.answers if isinstance(each, ParameterRecords)]
        nic = fabric.topology.hosts[use.store].nic(fabric.topology.first_nics[0])
        return _result(use, records, run.counted.retransmissions, nic.link.rate_bps, fabric.options.ip_version)

    return Task(
        f"{use.requests.requests} requests of each client to a parameter store, {use.cached_blocks} blocks cached",
        PARAMETER_STORES,
        prepare,
        result,
        asks="parameters",
    )


def _result(
    use: StoreUse, records: Sequence[ParameterRecords], retransmissions: int, rate_bps: int, ip_version: int
) -> ParameterStoreResult:
    clients, store = records[:-1], records[-1].store
    answers = Answers(clients)
    pulls = ~answers.is_push
    latency_ps = answers.finished_ps - answers.started_ps
    time_ps = int(answers.finished_ps.max() - answers.started_ps.min())
    without, with_block = PARAMETER_FRAME_BYTES[ip_version]
    busy_ps = store.pulls * serialisation_ps(with_block, rate_bps) + (
        store.pushes + store.repeated_pushes
    ) * serialisation_ps(without, rate_bps)
    return ParameterStoreResult(
        clients=len(clients),
        blocks=use.requests.blocks,
        cached_blocks=use.cached_blocks,
        skew=use.requests.skew,
        outstanding=use.requests.window,
        pulls=int(pulls.sum()),
        pushes=int(answers.is_push.sum()),
        hits=int(answers.cached.sum()),
        store_pulls=store.pulls,
        store_pushes=store.pushes,
        store_link_load=busy_ps / time_ps,
        time_ps=time_ps,
        latency_ps=latencies_of(latency_ps[pulls] if pulls.any() else latency_ps),
        hit_ps=_mean(latency_ps[pulls & answers.cached]),
        miss_ps=_mean(latency_ps[pulls & ~answers.cached]),
        stale=answers.stale(),
        wrong=answers.wrong(store) + sum(each.spoilt_blocks for each in clients),
        retransmissions=retransmissions,
    )


def _mean(values: NDArray[np.int64]) -> int | None:
    return round(float(values.mean())) if values.size else None


class Answers:
    """The answers to all clients' requests, as columns."""

    def __init__(self, clients: Sequence[ParameterRecords]) -> None:
        def column(name: str, dtype: Any = np.int64) -> NDArray[Any]:
            return np.concatenate([np.array(getattr(each, name), dtype) for each in clients])

        self.block = column("block")
        self.is_push = column("is_push", np.bool_)
        self.started_ps = column("started_ps")
        self.finished_ps = column("finished_ps")
        self.version = column("block_version")
        self.cached = column("cached", np.bool_)
        self.writer = column("writer")
        self.writer_sequence = column("writer_sequence")

    def stale(self) -> int:
        """Return how many pulls got a block older than one in an answer that had arrived before they began."""
        stale = 0
        for block in np.unique(self.block):
            rows = np.flatnonzero(self.block == block)
            rows = rows[np.argsort(self.finished_ps[rows], kind="stable")]
            newest = np.concatenate([[0], np.maximum.accumulate(self.version[rows])])
            known = newest[np.searchsorted(self.finished_ps[rows], self.started_ps[rows], side="right")]
            stale += int((self.version[rows] < known)[~self.is_push[rows]].sum())
        return stale

    def wrong(self, store: StoreCounts) -> int:
        """Return how many pulls have the wrong writer for their version, plus pushes not applied exactly once."""
        written = {(block, version): writer for block, version, *writer in self._rows(self.is_push)}
        first = [_NOBODY, 0]
        pulled = sum(
            writer != (first if version == FIRST_VERSION else written.get((block, version)))
            for block, version, *writer in self._rows(~self.is_push)
        )
        pushes = int(self.is_push.sum())
        return pulled + abs(pushes - len(written)) + abs(pushes - store.pushes)

    def _rows(self, chosen: NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
        columns = (self.block, self.version, self.writer, self.writer_sequence)
        return list(zip(*(each[chosen].tolist() for each in columns), strict=True))
