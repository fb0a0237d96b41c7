"""Content of a network file, independent of its format: times in picoseconds, rates in b/s, sizes in bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_RATE_BPS = 10**9
"""Rate of a link if its file gives no bandwidth."""
PACKET_BYTES = 1518
"""Bytes counted for each packet of a queue's length: a full Ethernet frame."""
DEFAULT_QUEUE_PACKETS = 1000
"""Queue of a port if its file gives none: the limit of Linux's netem, Mininet's default."""


@dataclass(frozen=True)
class NetworkHost:
    """A host with one NIC. Addresses are text, as in `FabricSpec.parameters`.

    Attributes:
        name: the name in the file.
        ipv4: IPv4 address with its prefix length, `10.0.1.1/24`.
        mac: MAC of its NIC.
        interface: name of its NIC inside the host: `eth0` in the tutorials, `h1-eth0` in p4-utils.
        gateway: gateway of its default route; None if the file gives one only in commands, or none.
        neighbours: static ARP entries, pairs of IPv4 address and MAC.
        commands: commands to run in the host, as in the file.
        others: fields that controllers alone read.

    """

    name: str
    ipv4: str
    mac: str
    interface: str
    gateway: str | None = None
    neighbours: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class NetworkSwitch:
    """A switch: its name, its P4Runtime device id, and the port that leads to a controller, if any."""

    name: str
    device_id: int
    cpu_port: int | None = None


@dataclass(frozen=True)
class NetworkLink:
    """A link between nodes `a` and `b`; a host is always `a`, with port number 0."""

    a: str
    a_port: int
    b: str
    b_port: int
    rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int
    loss: float = 0.0


@dataclass(frozen=True)
class LinkFacts:
    """Values of a link that only controllers use: a rate, a weight for path costs, addresses of the switch ports.

    `others` are the file's further fields.
    """

    bw_mbps: float | None = None
    weight: float | None = None
    a_ip: str | None = None
    b_ip: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class SwitchSetup:
    """A file's settings of a switch, apart from links; paths are absolute.

    Attributes:
        grpc_port: port of its P4Runtime server.
        program: P4 source or compiled JSON; None for the network's program.
        runtime_json: table entries in the tutorials' schema.
        commands: a file of simple_switch_CLI commands.
        thrift_port: number by which simple_switch_CLI and p4-utils' controllers name the switch; None if they do not.
        priority_queues: whether the queue of each priority has memory of its own, as simple_switch's --priority-queues.
        others: fields that controllers alone read.

    """

    grpc_port: int
    program: Path | None = None
    runtime_json: Path | None = None
    commands: Path | None = None
    thrift_port: int | None = None
    priority_queues: bool = False
    others: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Network:
    """A network file's content.

    Attributes:
        path: the file.
        folder: base of the file's relative paths.
        format: `tutorials` or `p4_utils`.
        program: P4 source or compiled JSON for switches that name none; None if the file gives none.
        setups: settings by switch.
        notes: messages about requests in the file that Weft ignores.
        scripts: commands to run on the machine, outside the hosts, once a lab is up.
        link_facts: controllers' values of each link in p4-utils' format; empty for the tutorials' format.
        graph_file: where p4-utils' controllers look for the network as a graph; None for topology.json in the folder.

    """

    path: Path
    folder: Path
    format: str
    hosts: tuple[NetworkHost, ...]
    switches: tuple[NetworkSwitch, ...]
    links: tuple[NetworkLink, ...]
    setups: Mapping[str, SwitchSetup]
    program: Path | None = None
    notes: tuple[str, ...] = field(default=())
    scripts: tuple[str, ...] = ()
    link_facts: tuple[LinkFacts, ...] = ()
    graph_file: Path | None = None


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key for names: digits compare as numbers, the rest as text."""
    pieces = re.split("([0-9]{1,18})", name)
    return tuple((0, int(piece), "") if number % 2 else (1, 0, piece) for number, piece in enumerate(pieces))
