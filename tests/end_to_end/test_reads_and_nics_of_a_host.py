"""In Mininet: ranks of a host read over its links, and both NICs of a host in one plane reduce in the network."""

from __future__ import annotations

import numpy as np
import pytest

from weft import topologies
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.topologies import FabricSpec, LinkSpec
from weft.topologies.builder import FabricBuilder
from weft.traffic.jobs import Job, OperationsBuilder, RankPart

pytestmark = pytest.mark.slow
US, MS = 10**6, 10**9
LINK = LinkSpec(10**9, US, 512 * 1024)


def test_ranks_of_a_host_read_over_its_links() -> None:
    """A rank that reads one of its host and one of another; the first takes the links' latency twice, or longer."""
    rate_bps, latency_ps, size_bytes = 10**10, 5 * US, 1 << 20
    spec = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=4, host_rate_bps=10**9)
    reader, nobody = OperationsBuilder(), OperationsBuilder()
    reader.read(0, size_bytes, category="near")
    reader.read(1, size_bytes, category="far")
    job = Job("reads", (RankPart(reader.build(), (1, 2)), *[RankPart(nobody.build())] * 3))
    with Fabric(topologies.with_scale_up(spec, 2, rate_bps, latency_ps), clock="real", dilation=1000) as fabric:
        run = fabric.run_job(job, range(4))
        stats = fabric.hosts.stats()
    near_ps, far_ps = (run.times[0].finished_ps - run.times[0].started_ps).tolist()
    assert near_ps >= size_bytes * 8 * 10**12 // rate_bps + 2 * latency_ps
    assert far_ps >= size_bytes * 8 * 10**12 // 10**9 > near_ps
    scale_up = [each["scale_up"] for each in stats]
    assert [each["sent_bytes"] for each in scale_up if each is not None] == [0, size_bytes, 0, 0]
    assert [each["received_bytes"] for each in scale_up if each is not None] == [size_bytes, 0, 0, 0]


def two_nics() -> FabricSpec:
    """Two hosts, each with two NICs at its leaf, and two spines."""
    builder = FabricBuilder()
    leaves = [builder.add_switch(0, "leaf") for _ in range(2)]
    for leaf in leaves:
        builder.add_host([leaf, leaf], LINK)
    for spine in [builder.add_switch(0, "spine") for _ in range(2)]:
        for leaf in leaves:
            builder.add_link(leaf, spine, LINK)
    return builder.build({})


def test_both_nics_of_a_host_reduce_and_outlive_an_uplink() -> None:
    elements = 1 << 19  # 8 ms at twice 1 Gb/s
    inputs = [np.random.default_rng(rank).integers(-(2**31), 2**31, elements, np.int32) for rank in range(2)]
    exact = np.add.reduce(inputs, dtype=np.int32)
    with Fabric(two_nics(), clock="real") as fabric:
        fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
        jobs = fabric.lab.controller.jobs
        assert [job.place for job in jobs] == [0, 1]
        (tree,) = (planned.tree for planned in jobs[1].trees)
        sent = [plane["transmit"]["transmitted"]["packets"] for plane in fabric.hosts.stats()[0]["planes"]]
        assert sent[0] == pytest.approx(sent[1], rel=0.2)
        fabric.schedule_link("p0l0", tree.root.switch, "down", 3 * MS)
        run = fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
        for sums in run.buffers:
            np.testing.assert_array_equal(sums, exact)
        (event,) = fabric.summary().link_events
        assert event.resumed_ps is not None
