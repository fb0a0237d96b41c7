"""A port of a host's NIC: its transmit port, its MAC where there is flow control, its way into the fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from weft.engine import Engine, PortMac, TransmitPort, _core
from weft.traffic.attachment import Attachment
from weft.traffic.host_config import NicConfig


@dataclass
class HostPlane:
    """The port by which a host is in a plane; `port` is its number at the NIC."""

    config: NicConfig
    port: int
    attachment: Attachment
    transmit_port: TransmitPort
    mac: PortMac | None = None


NO_WAYS: tuple[Sequence[int], Sequence[int]] = ((), ())
"""Payload is in memory at once."""


def open_plane(
    engine: Engine,
    nic: _core.Nic,
    config: NicConfig,
    attachment: Attachment,
    links: _core.HostLinks | None = None,
    ways: tuple[Sequence[int], Sequence[int]] = NO_WAYS,
) -> HostPlane:
    """Return a new port of a NIC, joined to its fabric. Raises ValueError for invalid addresses.

    `ways`: the host's links that its payload crosses, to be sent and when received.
    """
    transmit_port = TransmitPort(
        engine,
        attachment.link,
        rate_bps=config.rate_bps if config.paced else 0,
        quantum_bytes=config.quantum_bytes,
    )
    addresses = [config.ipv4] + ([config.ipv6] if config.ipv6 else [])
    port = nic.add_port(
        transmit_port,
        mac=config.mac,
        addresses=addresses,
        host_links=links,
        fetched_over=list(ways[0]),
        placed_over=list(ways[1]),
    )
    mac = _make_mac(engine, nic, config, transmit_port, port)
    if mac is not None:
        attachment.connect(mac, 0)
    else:
        attachment.connect(nic, port)
    return HostPlane(config, port, attachment, transmit_port, mac)


def _make_mac(
    engine: Engine, nic: _core.Nic, config: NicConfig, transmit_port: TransmitPort, port: int
) -> PortMac | None:
    """Return the MAC of a port with flow control."""
    if not config.pfc_quanta and config.credits is None:
        return None
    mac = PortMac(engine, transmit_port, nic, port)
    if config.class_of_dscp:
        mac.classify_by_dscp(dict(config.class_of_dscp))
    if config.pfc_quanta:
        mac.enable_pfc(source_mac=config.mac, pause_quanta=config.pfc_quanta)
    if config.credits is not None:
        mac.enable_credits(source_mac=config.mac, **asdict(config.credits))
    return mac
