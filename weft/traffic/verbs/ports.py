"""A host's ports as verbs show them, and queue pairs of the engine there."""

from __future__ import annotations

import errno
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_interface
from typing import TYPE_CHECKING, Any

from weft.engine import Link, TransmitPort, _core
from weft.traffic.commands.connections import Connection
from weft.traffic.extensions import congestion_needs
from weft.traffic.host_config import NicConfig
from weft.traffic.host_transport import HostTransport
from weft.traffic.verbs.mrc import MrcDevice
from weft.traffic.verbs.queue_pairs import Counterpart, Place, address_of, source_port_of
from weft.traffic.verbs.states import Kind
from weft.verbs.device import link_speed

if TYPE_CHECKING:
    from weft.traffic.host import Host

LABEL = "verbs"
HOP_LIMIT = 64
"""Unicast packets begin with it, whatever a program says, and multicast packets if it says none. Linux takes it from
the route, too (`ib_resolve_unicast_gid_dmac`), so that programs with the usual 1 are routed."""
_TIMEOUT_UNIT_NS = 4096
"""Timeouts of queue pairs are this times a power of two (InfiniBand specification volume 1, section 9.7.6.1.3)."""
_NO_TIMEOUT_NS = _TIMEOUT_UNIT_NS << 31
_RNR_CODES = range(32)
# Codes of widths and speeds in `ibv_port_attr`.
_WIDTHS = {1: 1, 4: 2, 8: 4, 12: 8, 2: 16}
_SPEEDS = {"SDR": 1, "DDR": 2, "QDR": 4, "FDR10": 8, "FDR": 16, "EDR": 32, "HDR": 64, "NDR": 128}
_ACTIVE, _DOWN = 4, 1
_LINK_UP, _DISABLED = 5, 3


class VerbsPorts:
    """The ports of a host's NIC, numbered from 1."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.mrc = MrcDevice(host)
        transport = host.config.transport
        # Other transports count other things.
        self._counts = transport.protocol == "rc"
        # Verbs' reliable connection is RoCEv2's, whatever the collectives of the lab run over.
        if transport.protocol != "rc" or transport.retransmission != "go-back-n" or transport.path != "flow":
            transport = type(transport)()
        self._transport = HostTransport(replace(host.config, transport=transport))
        # Data of a congestion control such as HPCC brings what switches say of their queues.
        self._needs_telemetry = congestion_needs(transport.congestion_control).telemetry
        self._groups: dict[int, _core.UdGroups] = {}
        self._loops: dict[int, _Loop] = {}

    @property
    def count(self) -> int:
        """Ports of the NIC."""
        return len(self._host.config.nics)

    def gids(self, port: int) -> list[IPv4Address | IPv6Address]:
        """Return the addresses of a port's GIDs, by index."""
        nic = self._host.config.nics[port - 1]
        return [ip_interface(each).ip for each in (nic.ipv4, nic.ipv6) if each is not None]

    def check_port(self, port: int) -> None:
        """Raise OSError (EINVAL) for a port that is not there."""
        if not 1 <= port <= self.count:
            raise OSError(errno.EINVAL, f"port {port} of {self.count}")

    def check_address(self, fields: dict[str, int]) -> None:
        """Raise OSError (EINVAL) for an address vector that names no way to a peer."""
        self.check_port(fields["address_port"])
        gids = self.gids(fields["address_port"])
        if not fields["is_global"]:
            raise OSError(errno.EINVAL, "RoCEv2 needs a global route")
        if fields["gid_index"] >= len(gids):
            raise OSError(errno.EINVAL, f"GID index {fields['gid_index']} of {len(gids)}")
        peer = address_of(fields["gid_high"], fields["gid_low"])
        if peer.version != gids[fields["gid_index"]].version:
            raise OSError(errno.EINVAL, f"{peer} is not of the IP version of GID index {fields['gid_index']}")

    def timeout_ps(self, port: int, exponent: int) -> int:
        """Return the emulated time of a timeout that programs give in time of the wall clock; 0 is none."""
        nic = self._host.config.nics[port - 1]
        wall_ns = _TIMEOUT_UNIT_NS << exponent if exponent else _NO_TIMEOUT_NS
        return max(self._transport.least_timeout_ps(nic), self._emulated_ps(wall_ns))

    def _emulated_ps(self, wall_ns: int) -> int:
        return int(wall_ns * 1000 / self._host.config.dilation)

    def _rnr_code(self, code: int) -> int:
        """Return the code of the emulated time that comes nearest to a code's of the wall clock."""
        wanted_ps = _core.rnr_timer_ps(code) / self._host.config.dilation
        return min(_RNR_CODES, key=lambda each: abs(_core.rnr_timer_ps(each) - wanted_ps))

    def native_port(self, port: int) -> int:
        """Return the number of a port at the engine's NIC."""
        return self._host.plane(port - 1).port

    def address_handle(self, fields: dict[str, int]) -> dict[str, Any]:
        """Return what the engine needs to know of an address. Raises OSError (EINVAL) for one that leads nowhere."""
        self.check_address(fields)
        port = fields["address_port"]
        ip = address_of(fields["gid_high"], fields["gid_low"])
        return {
            "port": self.native_port(port),
            "ip": str(ip),
            "mac": _group_mac(ip) if ip.is_multicast else self._next_mac(port, ip),
            "dscp": fields["traffic_class"] >> 2 or None,
            "hop_limit": (min(255, fields["hop_limit"]) if ip.is_multicast else 0) or HOP_LIMIT,
            "flow_label": fields["flow_label"],
        }

    def _next_mac(self, port: int, ip: IPv4Address | IPv6Address) -> str:
        """Return the MAC that packets for an address go to."""
        nic = self._host.config.nics[port - 1]
        return nic.mac if ip in self.gids(port) else nic.gateway_mac

    def _way(self, port: int, ip: IPv4Address | IPv6Address) -> tuple[int, NicConfig]:
        """Return the port of the engine's NIC by which a connection reaches an address, and its configuration.

        Adapters turn around what a port sends to itself, so it takes a link of its own, of the port's rate.
        """
        plane = self._host.plane(port - 1)
        if ip not in self.gids(port):
            return plane.port, plane.config
        config = replace(plane.config, gateway_mac=plane.config.mac, pfc_quanta=0, credits=None)
        if port not in self._loops:
            self._loops[port] = _Loop(self._host, config)
        return self._loops[port].port, config

    def open_datagrams(
        self, native: _core.VerbsQueuePair, attributes: dict[str, int], place: Place
    ) -> _core.UdQueuePair:
        """Return the engine's queue pair for one of type UD."""
        port = attributes["port"]
        if port not in self._groups:
            self._groups[port] = _core.UdGroups(self._host.nic, self.native_port(port))
        made = _core.UdQueuePair(
            self._host.nic,
            self.native_port(port),
            native,
            q_key=attributes["qkey"],
            queue_pair=native.number,
            path_mtu_bytes=128 << self.query(port)["active_mtu"],
            groups=self._groups[port],
            shared_receives=place.shared_receives,
        )
        self._host.device_counts.count(made)
        return made

    def open_queue_pair(
        self, kind: Kind, native: _core.VerbsQueuePair, attributes: dict[str, int], mtu_bytes: int, place: Place
    ) -> _core.RcQueuePair | _core.UcQueuePair:
        """Return the engine's queue pair for one of a client. Raises OSError (EINVAL) for what it cannot have."""
        number = attributes["address_port"] - 1
        destination = address_of(attributes["gid_high"], attributes["gid_low"])
        port, config = self._way(number + 1, destination)
        connection = Connection(
            plane=number,
            peer=self._host.config.rank,
            queue_pair=native.number,
            remote_queue_pair=attributes["remote_number"],
            destination_ip=str(destination),
            label=LABEL,
            source_udp_port=source_port_of(attributes["flow_label"]),
            remote_initial_psn=attributes["receive_psn"],
            telemetry=self._needs_telemetry and kind == Kind.RC and destination not in self.gids(number + 1),
        )
        try:
            made = self._transport.make_verbs_queue_pair(
                _core.RcQueuePair if kind == Kind.RC else _core.UcQueuePair,
                self._host.nic,
                port,
                config,
                native,
                connection,
                domain=place.domain,
                shared_receives=place.shared_receives,
                path_mtu_bytes=mtu_bytes,
                max_outstanding_reads=max(1, attributes["max_reads_answered"]),
                rnr_timer_code=self._rnr_code(attributes["rnr_timer"]),
                receive_for_immediate=True,
            )
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error
        if self._counts:
            self._host.count_queue_pair(made)
        self._host.device_counts.count(made)
        return made

    def count_no_more(self, queue_pair: Counterpart) -> None:
        """Keep what a queue pair that goes has counted, in the host's totals and its device's."""
        if not isinstance(queue_pair, _core.UdQueuePair) and (
            self._counts or isinstance(queue_pair, _core.MrcQueuePair)
        ):
            self._host.count_no_more(queue_pair)
        self._host.device_counts.count_no_more(queue_pair)

    def is_enabled(self, port: int) -> bool:
        """Return whether a port's administrator has it in use. Raises OSError (EINVAL)."""
        self.check_port(port)
        return self._host.is_port_enabled(port - 1)

    def enable(self, port: int, state: int) -> None:
        """Carry out `modify_port_admin`: 0 disables a port, 1 enables it. Raises OSError (EINVAL)."""
        self.check_port(port)
        if state not in (0, 1):
            raise OSError(errno.EINVAL, f"administrative state {state} of a port")
        self._host.enable_port(port - 1, enabled=bool(state))

    def query(self, port: int) -> dict[str, int]:
        """Carry out `query_port`."""
        self.check_port(port)
        nic = self._host.config.nics[port - 1]
        up = self._host.nic.is_port_up(self._host.plane(port - 1).port)
        speed = link_speed(nic.rate_bps)
        return {
            "state": _ACTIVE if up else _DOWN,
            "physical_state": _LINK_UP if up else _DISABLED,
            "active_mtu": max(code for code in range(1, 6) if 128 << code <= max(256, self._host.config.mtu_bytes)),
            "max_message_bytes": 1 << 31,
            "gid_count": len(self.gids(port)),
            "width": _WIDTHS[speed.lanes],
            "speed": _SPEEDS[speed.name],
        }


class _Loop:
    """A port of a host's NIC whose link leads back to it."""

    def __init__(self, host: Host, config: NicConfig) -> None:
        self._link = Link(host.engine, name=f"{config.interface}-loop")
        self._transmit = TransmitPort(host.engine, self._link, rate_bps=config.rate_bps)
        addresses = [config.ipv4] + ([config.ipv6] if config.ipv6 else [])
        self.port = host.nic.add_port(self._transmit, mac=config.mac, addresses=addresses)
        self._link.connect(host.nic, self.port)


def _group_mac(group: IPv4Address | IPv6Address) -> str:
    """Return the MAC of a multicast group (RFC 1112, section 6.4; RFC 2464, section 7)."""
    packed = group.packed
    if group.version == 4:
        return bytes([0x01, 0x00, 0x5E, packed[1] & 0x7F, *packed[2:]]).hex(":")
    return (b"\x33\x33" + packed[-4:]).hex(":")
