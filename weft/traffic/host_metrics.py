"""Metrics of a host process, read by monitors of its lab over a separate socket.

Commands use another socket: a scrape waits for no command, and no command for a scrape. The format is
`HostMetrics`, an object of JSON, after which the connection ends (docs/spec/endpoint-protocol.md).
"""

from __future__ import annotations

import json
import socket
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from weft.traffic.answering_socket import AnsweringSocket
from weft.traffic.host_stats import PortTraffic

if TYPE_CHECKING:
    from weft.engine.records import PathLatencies
    from weft.traffic.host import Host


class PauseMetrics(TypedDict):
    """How a class of a host's port is held by its switch."""

    plane: int
    priority_class: int
    paused_ps: int
    is_paused: bool


class SendingMetrics(TypedDict):
    """Sums over the queue pairs that have something to send. `paced` of them have a rate."""

    queue_pairs: int
    in_flight_bytes: int
    window_bytes: int
    paced: int
    pacing_rate_bps: int


class HostMetrics(TypedDict):
    """A host: `totals` and `device` as in `HostStats`, packets that its NICs dropped by reason, INT's view of paths.

    `ports` are those of its NIC, by number.
    """

    totals: dict[str, int]
    device: dict[str, int]
    ports: list[PortTraffic]
    dropped: dict[str, int]
    pauses: list[PauseMetrics]
    sending: SendingMetrics
    paths: list[PathLatencies]
    stacks_beyond_limit: int


def metrics_of(host: Host) -> HostMetrics:
    """Return what a host has counted so far, and what it does now."""
    dropped = Counter[str]()
    for nic in host.nic_stats():
        dropped.update(nic["dropped"])
    latencies = host.hop_latencies
    return {
        "totals": host.totals(),
        "device": host.device_counts.values(),
        "ports": host.port_traffic(),
        "dropped": dict(dropped),
        "pauses": _pauses(host),
        "sending": _sending(host),
        "paths": latencies.paths() if latencies is not None else [],
        "stacks_beyond_limit": latencies.stacks_beyond_limit() if latencies is not None else 0,
    }


def _pauses(host: Host) -> list[PauseMetrics]:
    return [
        {
            "plane": plane,
            "priority_class": priority_class,
            "paused_ps": pfc["paused_ps"],
            "is_paused": pfc["is_paused"],
        }
        for plane, mac in enumerate(host.mac_stats())
        for priority_class, pfc in enumerate((mac["pfc"] if mac is not None else None) or ())
    ]


def _sending(host: Host) -> SendingMetrics:
    found = SendingMetrics(queue_pairs=0, in_flight_bytes=0, window_bytes=0, paced=0, pacing_rate_bps=0)
    for queue_pair in host.queue_pairs():
        stats = queue_pair.stats()
        if not stats["outstanding_requests"]:
            continue
        rate_bps = queue_pair.pacing_rate_bps
        found["queue_pairs"] += 1
        found["in_flight_bytes"] += stats["in_flight_bytes"]
        found["window_bytes"] += queue_pair.window_bytes
        found["paced"] += rate_bps > 0
        found["pacing_rate_bps"] += rate_bps
    return found


class MetricsSocket(AnsweringSocket):
    """Answers each connection with the host's metrics."""

    def __init__(self, path: Path, host: Host) -> None:
        self._host = host
        super().__init__(path)

    def _answer(self, connection: socket.socket) -> bytes:
        try:
            return json.dumps(metrics_of(self._host)).encode()
        except Exception:
            # An engine that has stopped, a user's congestion control that raises: commands report these, and the host
            # goes on. Whoever watches finds no answer.
            return b""
