"""A tenant's share of links: its hosts keep to it, switches hold those to it that do not, and nobody takes it away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scapy.packet import raw

from tests.weft.test_forged_aggregation import drops, entrance
from weft import Fabric
from weft.controller.memberships import JobMembership
from weft.run import aggregation_job
from weft.run.collectives import CollectiveRequest
from weft.scenario import EcnSection
from weft.scenario.tenants import TenantSection
from weft.topologies import FabricSpec, leaf_spine
from weft.traffic.commands.aggregation import Membership
from weft.traffic.layers import aggregation_frame

RATE_BPS = 100 * 10**9
# Hosts 0 to 3 below one leaf, 4 to 7 below the other; one link joins each leaf to the spine, at a host's rate.
TOPOLOGY = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=RATE_BPS, delay_ps=10**6)
TENANTS = {"blue": TenantSection(bandwidth=0.25), "red": TenantSection(bandwidth=0.5)}
FRAME_BYTES, LANES = 342, 64
ELEMENTS = 200_000


def lab_fabric(topology: FabricSpec = TOPOLOGY, **options: Any) -> Fabric:
    ecn = EcnSection(kmin=20_000, kmax=80_000, pmax=0.2)
    return Fabric(topology, clock="virtual", ecn=ecn, slots=256, tenants=TENANTS, **options)


def inputs(elements: int = ELEMENTS) -> list[NDArray[np.int32]]:
    return [np.random.default_rng(rank).integers(-99, 99, elements, np.int32) for rank in range(2)]


def share_of_link(elements: int, time_ps: int, frame_bytes: int = FRAME_BYTES) -> float:
    """What contributions of a reduction had of a host's link."""
    return elements / LANES * frame_bytes * 8 * 10**12 / RATE_BPS / time_ps


@pytest.mark.parametrize(("version", "frame_bytes"), [(4, FRAME_BYTES), (6, FRAME_BYTES + 20)])
def test_a_tenant_alone_has_its_share_and_no_more(version, frame_bytes) -> None:
    with lab_fabric(ip_version=version) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 4], tenant="blue")).result
        assert run.ok
        assert share_of_link(ELEMENTS, run.time_ps, frame_bytes) == pytest.approx(0.25, abs=0.02)
        free = fabric.run(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 4])).result
        assert share_of_link(ELEMENTS, free.time_ps, frame_bytes) > 0.9
        assert not fabric.summary().drops


@pytest.mark.parametrize("greedy_ranks", [[1, 5], [0, 4]], ids=["on the uplink", "on the same hosts"])
def test_a_tenant_has_its_share_beside_greedy_reductions(greedy_ranks: Sequence[int]) -> None:
    with lab_fabric() as fabric:
        blue = fabric.tasks.collective(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 4])).of("blue")
        others = [
            fabric.tasks.collective(
                CollectiveRequest("allreduce", inputs(2 * ELEMENTS), "in-network", ranks=greedy_ranks)
            )
            for _ in range(4)
        ]
        mine, *theirs = fabric.run_together([blue, *others])
        assert all(each.ok for each in (mine, *theirs))
        assert min(each.time_ps for each in theirs) > mine.time_ps  # they are there all the time
        assert share_of_link(ELEMENTS, mine.time_ps) == pytest.approx(0.25, abs=0.02)
        assert not fabric.summary().drops


def test_hosts_that_send_faster_than_promised_lose_what_exceeds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red's hosts do not keep to its rate. Its sums are exact nevertheless, and blue has its share."""
    honest = aggregation_job.host_membership

    def dishonest(membership: JobMembership, *arguments: int) -> Membership:
        member = honest(membership, *arguments)
        is_red = membership.host in ("h1", "h5")
        return replace(member, rate_bps=0) if is_red else member

    monkeypatch.setattr(aggregation_job, "host_membership", dishonest)
    with lab_fabric() as fabric:
        blue = fabric.tasks.collective(CollectiveRequest("allreduce", inputs(), "in-network", ranks=[0, 4])).of("blue")
        red = fabric.tasks.collective(
            CollectiveRequest("allreduce", inputs(2 * ELEMENTS), "in-network", ranks=[1, 5])
        ).of("red")
        mine, theirs = fabric.run_together([blue, red])
        assert mine.ok
        assert theirs.ok
        assert share_of_link(ELEMENTS, mine.time_ps) == pytest.approx(0.25, abs=0.02)
        assert share_of_link(2 * ELEMENTS, theirs.time_ps) < 0.52
        assert drops(fabric)["p0l0", "aggregation_over_rate"] > 0
        fabric.summary()


@pytest.mark.parametrize("is_promised", [True, False])
def test_a_flood_of_a_job_s_own_packets_goes_no_faster_than_promised(is_promised: bool) -> None:
    """A member repeats a contribution that its leaf hands up each time, because the other member is silent."""
    frames = 8000
    with lab_fabric() as fabric:
        tenant = "red" if is_promised else ""
        member = fabric.lab.controller.add_job(9, ["h1", "h5"], 16, tenant=tenant)["h1"][0]
        assert member.rate_bps == (RATE_BPS // 2 if is_promised else 0)
        nic = TOPOLOGY.host("h1").nic(0)
        frame = raw(aggregation_frame(
            source_mac=nic.mac, destination_mac=nic.gateway_mac, source_ip=str(nic.ipv4.ip),
            destination_ip=str(member.aggregation_address), qkey=member.q_key, job_id=9, epoch=member.epoch,
            rank=member.rank, lanes=[1] * LANES,
        ))  # fmt: skip
        engine, switch, port = entrance(fabric, TOPOLOGY.host("h1"))
        start_ps, gap_ps = fabric.lab.partitions.now_ps, FRAME_BYTES * 8 * 10**12 // RATE_BPS
        for number in range(frames):
            engine.inject(switch, port, frame, start_ps + number * gap_ps)
        run = fabric.run(
            CollectiveRequest("allreduce", inputs(50_000), "in-network", ranks=[0, 4], tenant="blue")
        ).result
        assert fabric.lab.partitions.now_ps < start_ps + frames * gap_ps  # the flood outlasts it
        assert run.ok
        fabric.permutation(200_000)
        counted = drops(fabric)
        share = share_of_link(50_000, run.time_ps)
        # Its leaf passes the burst at once, then half of the link's rate; the spine knows all but one already.
        passed = frames - counted["p0l0", "aggregation_over_rate"]
        assert counted["p0s0", "aggregation_duplicate"] == passed - 1
        if is_promised:
            assert share == pytest.approx(0.25, abs=0.02)
            assert passed == pytest.approx(frames / 2 + 32, abs=16)
        else:
            assert share < 0.22
            assert passed == frames


def test_the_rate_is_that_of_the_tree_s_slowest_link() -> None:
    topology = leaf_spine(
        planes=1, leaves=2, spines=1, hosts_per_leaf=4, host_rate_bps=RATE_BPS, fabric_rate_bps=RATE_BPS // 4
    )
    with lab_fabric(topology) as fabric:
        blocking = fabric.lab.controller
        far = blocking.add_job(1, ["h0", "h4"], 16, tenant="blue")
        near = blocking.add_job(2, ["h0", "h1"], 16, tenant="red")
        assert far["h0"][0].rate_bps == RATE_BPS // 16
        assert near["h0"][0].rate_bps == RATE_BPS // 2
        fabric.summary()
