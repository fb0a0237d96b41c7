"""The links that a connection's packets take: found beforehand, without a trace, and where they go in the end."""

from __future__ import annotations

import pytest

from tests.weft.test_fast_forward import MEBIBYTE, fabric_of, sends
from weft import Fabric
from weft.clocks.virtual.flow_paths import FlowPaths
from weft.clocks.virtual.lab import VirtualLab
from weft.scenario import RoutingSection
from weft.traffic.jobs import Job, RankPart
from weft.traffic.schedule_nodes import Channel

COUNT = 4


def sent_packets(lab: VirtualLab) -> dict[tuple[str, int], int]:
    """Return the packets that each port between switches has sent."""
    ports = lab.switches.switches
    return {
        (switch.name, port.number): ports[switch.device_id]
        .ports[port.number]
        .transmit.stats()["transmitted"]["packets"]
        for switch in lab.fabric.switches
        for port in switch.fabric_ports
    }


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("mode", ["flow", "flow_and_queue_pair"])
@pytest.mark.parametrize("receiver", [1, 4, 5, 6, 7])
def test_packets_take_the_links_that_were_found(receiver: int, mode: str, ip_version: int) -> None:
    sent, received = sends(COUNT, MEBIBYTE)
    job = Job("pair", parts=(RankPart(sent, peers=(1,)), RankPart(received, peers=(0,))))
    options = {"routing": RoutingSection(load_balancing=mode), "ip_version": ip_version}
    with Fabric(fabric_of(), clock="virtual", mtu_bytes=4096, int_telemetry=False, **options) as fabric:
        fabric.run_job(job, ranks=(0, receiver))
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        before = sent_packets(lab)
        hosts = [endpoint.host for endpoint in lab._endpoints]
        channel = Channel(0, receiver, "job0")
        (path,) = FlowPaths(lab.fabric, lab.switches, hosts).of([(0, channel)])
        assert path is not None
        assert len(path) == (2 if receiver >= 4 else 0)
        # Acknowledgements of every eighth packet go back.
        most = {port for port, packets in before.items() if packets >= COUNT * MEBIBYTE / 4096}
        assert set(path) == most


def test_finding_a_path_counts_nowhere() -> None:
    sent, received = sends(COUNT, MEBIBYTE)
    job = Job("pair", parts=(RankPart(sent, peers=(1,)), RankPart(received, peers=(0,))))
    with Fabric(fabric_of(), clock="virtual", mtu_bytes=4096, int_telemetry=False) as fabric:
        fabric.run_job(job, ranks=(0, 4))
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        natives = [wired.switch.native for wired in lab.switches.switches.values()]
        names = [switch.name for switch in lab.fabric.switches]

        def counted() -> list[object]:
            return [
                [fabric.read_direct_counter(name, "ipv4_counter") for name in names],
                [fabric.read_counters(name, counter) for name in names for counter in ("port_received", "port_sent")],
                [native.received_packets for native in natives],
                [native.losses() for native in natives],
                lab.packet_conservation(),
            ]

        before = counted()
        hosts = [endpoint.host for endpoint in lab._endpoints]
        assert FlowPaths(lab.fabric, lab.switches, hosts).of([(0, Channel(0, 4, "job0"))]) != [None]
        assert counted() == before
