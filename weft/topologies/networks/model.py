"""What a network file says, whichever format it has. Times in picoseconds, rates in bits per second, sizes in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_RATE_BPS = 10**9
"""Of a link to which its file gives no bandwidth."""
PACKET_BYTES = 1518
"""What one packet of a queue's length stands for: a full Ethernet frame."""
DEFAULT_QUEUE_PACKETS = 1000
"""Of a port to which its file gives no queue: the limit of Linux's netem, which Mininet's links have by default."""


@dataclass(frozen=True)
class NetworkHost:
    """A host with one NIC. Addresses are text, as `FabricSpec.parameters` hold them.

    Attributes:
        name: the file's.
        ipv4: with its prefix length, `10.0.1.1/24`.
        mac: of its NIC.
        interface: of its NIC inside the host: `eth0` in the tutorials, `h1-eth0` in p4-utils.
        gateway: of its default route; None where the file names none outside its commands.
        neighbours: static ARP entries, pairs of IPv4 address and MAC.
        commands: that the file has run in the host, as it has them.

    """

    name: str
    ipv4: str
    mac: str
    interface: str
    gateway: str | None = None
    neighbours: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkSwitch:
    """A switch: its name, its P4Runtime device id, and the port that leads to a controller, if one does."""

    name: str
    device_id: int
    cpu_port: int | None = None


@dataclass(frozen=True)
class NetworkLink:
    """A link; `a` and `b` are nodes, and a host's port number is 0. The file's host, if there is one, is `a`."""

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
    """What a file says of a link for controllers alone: a rate, a weight of paths, addresses of its switches' ends."""

    bw_mbps: float | None = None
    weight: float | None = None
    a_ip: str | None = None
    b_ip: str | None = None


@dataclass(frozen=True)
class SwitchSetup:
    """What a file says of a switch beside its links; paths are as in the file, absolute.

    Attributes:
        grpc_port: where its P4Runtime server listens.
        program: P4 source, or compiled JSON; None for that of all switches.
        runtime_json: table entries in the tutorials' schema.
        commands: a file of simple_switch_CLI's commands.

    """

    grpc_port: int
    program: Path | None = None
    runtime_json: Path | None = None
    commands: Path | None = None


@dataclass(frozen=True)
class Network:
    """A network file's content.

    Attributes:
        path: the file.
        folder: that the file's paths start from.
        format: `tutorials` or `p4_utils`.
        program: P4 source, or compiled JSON, of switches that name none; None where the file names none.
        setups: by switch.
        notes: what the file asks for that is not done, in words.
        scripts: commands that run beside a lab, outside its hosts, once it is up.
        link_facts: of each link, in p4-utils' format; empty in the tutorials'.

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
