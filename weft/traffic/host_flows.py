"""A host's part in a workload of many flows: what it sends and receives, and the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.engine import _core
from weft.traffic.host import Host
from weft.traffic.messages import AS_BYTES, AS_LENGTHS, Message, MessageError, take, take_list

FLOW_FIELDS = (
    "flow",
    "start_ps",
    "plane",
    "size_bytes",
    "peer",
    "peer_ip",
    "queue_pair",
    "remote_queue_pair",
)
"""Of an item of `sent` or `received`, a list of these in order; `peer` is the rank of the other end."""


class HostFlows:
    """The flows of one run, carried out natively: a queue pair for each, from its start to its end."""

    def __init__(self, host: Host, message: Message) -> None:
        """Read `sent` and `received`. Raises MessageError for items that are none."""
        self._host = host
        self._run = take(message, "run", int)
        self._telemetry = take(message, "telemetry", bool, False)
        self._as_lengths = take(message, "payload", str, AS_BYTES) == AS_LENGTHS
        self._sent = [_checked(item) for item in take_list(message, "sent", list)]
        self._received = [_checked(item) for item in take_list(message, "received", list)]
        largest = max((item[3] for item in self._received), default=0)
        self._sink = host.nic.register_sink(largest) if largest else None
        self._generator: _core.FlowGenerator | None = None

    def memory(self) -> dict[str, dict[str, int]]:
        """Return where peers write to."""
        sink = self._sink
        if sink is None:
            return {}
        return {"sink": {"virtual_address": sink.virtual_address, "rkey": sink.rkey}}

    def start(self, message: Message) -> None:
        """Start at `start_ps`, given `peers`' memory by rank. Raises MessageError if a peer's is missing."""
        if self._generator is not None:
            raise ValueError("the flows have been started already")
        peers = take(message, "peers", dict, {})
        generator = self._host.make_flow_generator(self._telemetry, self._as_lengths)
        for flow, start_ps, plane, size_bytes, peer, peer_ip, queue_pair, remote in self._sent:
            sink = take(take(peers, str(peer), dict), "sink", dict)
            generator.add_sent(
                flow,
                start_ps,
                plane,
                peer_ip,
                queue_pair,
                remote,
                size_bytes,
                take(sink, "virtual_address", int),
                take(sink, "rkey", int),
                observed=self._host.observed_flow(peer, plane),
            )
        for flow, start_ps, plane, size_bytes, _, peer_ip, queue_pair, remote in self._received:
            generator.add_received(flow, start_ps, plane, peer_ip, queue_pair, remote, size_bytes)
        generator.start(take(message, "start_ps", int, 0), run=self._run)
        self._generator = generator

    def status(self) -> dict[str, Any]:
        """Return the state as a schedule's run has it; its nodes are flows, sent and received."""
        if self._generator is None:
            return {"state": "prepared"}
        return dict(self._generator.status())

    def records(self) -> dict[str, list[int]]:
        """Return columns of the flows that this host sent and that have ended."""
        if self._generator is None:
            return {}
        columns: Mapping[str, Any] = dict(self._generator.records())
        return {name: column.tolist() for name, column in columns.items()}

    def release(self) -> None:
        """End the run if it has not ended, and release its memory."""
        if self._generator is not None:
            self._host.close_flow_generator(self._generator)
        if self._sink is not None:
            self._sink.deregister()


def _checked(item: list[Any]) -> list[Any]:
    kinds = (int, int, int, int, int, str, int, int)
    if len(item) != len(kinds) or any(
        type(value) is not kind for value, kind in zip(item, kinds, strict=True)
    ):
        raise MessageError(f"flow {item!r} (valid: {', '.join(FLOW_FIELDS)})")
    return item
