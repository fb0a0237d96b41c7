"""The same program, controller and hosts on the reference switch, with either compiler's files."""

import shutil

import numpy as np
import pytest

from end_to_end_data import ALGORITHMS, buffers
from weft import topologies
from weft.controller.elements import link_element
from weft.run.collectives import CollectiveRequest, random_elements
from weft.run.fabric import Fabric
from weft.scenario import AggregationSection
from weft.scenario.tenants import TenantSection
from weft.traffic.data_types import DataType

pytestmark = [
    pytest.mark.reference,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH"),
]


@pytest.mark.parametrize(
    "compiler",
    [
        "embedded",
        pytest.param(
            "p4c",
            marks=pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on PATH"),
        ),
    ],
)
@pytest.mark.parametrize("ip_version", [4, 6])
def test_both_algorithms_are_exact_on_bmv2(compiler, ip_version):
    topology = topologies.leaf_spine(
        planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=20_000_000, delay_ps=0
    )
    tenants = {"blue": TenantSection(bandwidth=0.5)}
    with Fabric(
        topology, target="bmv2", compiler=compiler, ip_version=ip_version, dilation=1, tenants=tenants
    ) as fabric:
        # Hosts keep to the promise, and BMv2's meters let that pass; it gives back their rates as they were written.
        promised = fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 2000, 4), "in-network", tenant="blue"))
        assert promised.result.ok
        control = fabric.lab.controller
        assert "aggregation_over_rate" not in str(control.read_counters())
        assert control.recover().lost == {}
        default_actions = len(topology.switches)  # which are not read
        assert control.apply().entries == default_actions
        for algorithm in ALGORITHMS:
            for dtype in (np.int32, np.float32):
                assert fabric.run(CollectiveRequest("allreduce", buffers(dtype, 2000, 4), algorithm)).result.ok
        summary = fabric.summary()
        assert summary.planes[0].packets_aggregated > 0
        hops = [hop.switch for hop in summary.int_paths[0].hops]
        assert hops in (["p0l0", "p0s0", "p0l1"], ["p0l1", "p0s0", "p0l0"])


@pytest.mark.parametrize("lanes", [128, 256, 1024])
def test_packets_of_every_width_are_reduced_on_bmv2(lanes):
    topology = topologies.leaf_spine(
        planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=10_000_000, delay_ps=0
    )
    with Fabric(topology, target="bmv2", dilation=1, aggregation=AggregationSection(lanes=lanes)) as fabric:
        for dtype in (np.int32, np.float32):
            assert fabric.run(CollectiveRequest("allreduce", buffers(dtype, 5000, 2), "in-network")).result.ok


def test_narrow_types_and_every_operation_are_right_on_bmv2():
    topology = topologies.leaf_spine(
        planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=10_000_000, delay_ps=0
    )
    with Fabric(topology, target="bmv2", dilation=1) as fabric:
        for dtype, operation in (
            (DataType.INT8, "sum"), (DataType.INT16, "max"), (DataType.INT8, "min"), (DataType.INT8, "and"),
            (DataType.INT16, "or"), (DataType.INT32, "xor"), (DataType.BFLOAT16, "average"),
            (DataType.FLOAT16, "max"),
        ):  # fmt: skip
            inputs = [random_elements(np.random.default_rng(rank), dtype, 1000) for rank in range(2)]
            result = fabric.run(CollectiveRequest("allreduce", inputs, "in-network", operation=operation)).result
            assert result.ok, (dtype, operation)
            assert result.packets_aggregated > 0
            assert (result.overflowed_packets > 0) == (operation == "sum")


def test_a_link_is_cordoned_and_restored_on_bmv2():
    """Groups of three next hops lose one and get it back."""
    topology = topologies.leaf_spine(
        planes=1, leaves=2, spines=3, hosts_per_leaf=1, host_rate_bps=10_000_000, delay_ps=0
    )
    link = link_element(topology, topology.link_between("p0l0", "p0s1"))
    with Fabric(topology, target="bmv2", dilation=1) as fabric:
        operations, control = fabric.lab.operations, fabric.lab.controller
        for change, expected in ((operations.cordon, ("p0l0<->p0s1",)), (operations.restore, ())):
            control.call(change(link))
            assert operations.cordoned == expected
            assert fabric.permutation(20_000).bytes_delivered == 2 * 20_000
