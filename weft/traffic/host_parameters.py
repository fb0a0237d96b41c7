"""A host's part in a parameter store: the store, or a client's requests, one run of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.engine import _core
from weft.engine.records import RunStatus
from weft.traffic.answers import Memory, ParameterRecords, StoreCounts
from weft.traffic.commands.parameters import ParameterRequests, PrepareParameters
from weft.traffic.commands.runs import Start
from weft.traffic.expert_choice import skewed_popularity
from weft.traffic.host import Host


def drawn_requests(asked: ParameterRequests, client: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Return the blocks of a client's requests, and which of them are pushes; block 0 is the most popular."""
    generator = np.random.default_rng([asked.seed, client])
    weights = skewed_popularity(asked.blocks, asked.skew)
    shares = np.cumsum(weights) / weights.sum()
    drawn = np.searchsorted(shares, generator.random(asked.requests), side="right")
    blocks = np.minimum(drawn, asked.blocks - 1).astype(np.uint32)
    return blocks, generator.random(asked.requests) < asked.push_share


class HostParameters:
    """The part of one run."""

    def __init__(self, host: Host, command: PrepareParameters) -> None:
        self._host = host
        self._run = command.run
        self._client: _core.ParameterClient | None = None
        self._store: _core.ParameterStore | None = None
        self._started_ps: int | None = None
        self._blocks, self._pushes = np.zeros(0, np.uint32), np.zeros(0, np.bool_)
        if command.part.client is None:
            self._store = _make_store(host, command)
        else:
            self._blocks, self._pushes = drawn_requests(command.requests, command.part.client)
            self._client = _make_client(host, command, self._blocks, self._pushes)

    def memory(self) -> Memory:
        """Return nothing: peers write nowhere."""
        return {}

    def start(self, command: Start) -> None:
        """Send the first request at the run's time; a store answers from when it was made."""
        self._started_ps = command.start_ps
        if self._client is not None:
            self._client.start(command.start_ps)

    def status(self) -> RunStatus | None:
        """Return the state; nodes are requests. A store has none, and its run ends as it begins."""
        if self._client is not None:
            return self._client.status()
        if self._started_ps is None:
            return None
        return {
            "state": "finished",
            "started_ps": self._started_ps,
            "finished_ps": self._started_ps,
            "nodes_done": 0,
            "node_count": 0,
            "error": "",
        }

    def records(self) -> ParameterRecords:
        """Return columns of all requests, or what the store has answered."""
        if self._client is None:
            assert self._store is not None
            counts = self._store.counters()
            return ParameterRecords(
                self._run, store=StoreCounts(counts["pulls"], counts["pushes"], counts["repeated_pushes"])
            )
        columns = self._client.records()
        return ParameterRecords(
            run=self._run,
            block=tuple(self._blocks.tolist()),
            is_push=tuple(self._pushes.tolist()),
            started_ps=tuple(columns["started_ps"].tolist()),
            finished_ps=tuple(columns["finished_ps"].tolist()),
            block_version=tuple(columns["block_version"].tolist()),
            writer=tuple(columns["writer"].tolist()),
            writer_sequence=tuple(columns["writer_sequence"].tolist()),
            cached=tuple(columns["cached"].tolist()),
            spoilt_blocks=self._client.spoilt_blocks(),
        )

    def release(self) -> None:
        """End the run if it has not ended, and leave the group."""
        if self._client is not None:
            self._client.cancel()
            self._host.remove_client(self._client)
        if self._store is not None:
            self._host.nic.detach(self._store)


def _make_client(
    host: Host, command: PrepareParameters, blocks: npt.NDArray[np.uint32], pushes: npt.NDArray[np.bool_]
) -> _core.ParameterClient:
    """Return a client of a parameter store. Raises ValueError for values out of range."""
    part, plane = command.part, host.plane(command.part.nic)
    assert part.client is not None
    return _core.ParameterClient(
        host.nic,
        plane.port,
        host.executor,
        blocks=blocks,
        pushes=pushes,
        window=command.requests.window,
        group_id=part.group_id,
        epoch=part.epoch,
        q_key=part.q_key,
        client=part.client,
        destination_mac=plane.config.gateway_mac,
        destination_ip=part.store_address,
        retransmission_timeout_ps=host.transport.least_timeout_ps(plane.config),
    )


def _make_store(host: Host, command: PrepareParameters) -> _core.ParameterStore:
    """Return a parameter store. Raises ValueError for values out of range."""
    part, plane = command.part, host.plane(command.part.nic)
    return _core.ParameterStore(
        host.nic,
        plane.port,
        blocks=command.requests.blocks,
        clients=command.clients,
        window=command.requests.window,
        group_id=part.group_id,
        epoch=part.epoch,
        q_key=part.q_key,
        destination_mac=plane.config.gateway_mac,
        own_ip=part.store_address,
    )
