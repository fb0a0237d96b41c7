"""The same fabric under both clocks: same tables, results and bytes, and the same counters where none is chance."""

from typing import Any

import numpy as np
import pytest
from finsy.proto import p4r
from google.protobuf import text_format

from end_to_end_data import ALGORITHMS, buffers
from weft import topologies
from weft.controller.pipeline import Pipeline
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric

CLOCKS = ("real", "virtual")
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
EVERYTHING = [
    "table_entry {}",
    "action_profile_member {}",
    "action_profile_group {}",
    "packet_replication_engine_entry { multicast_group_entry {} }",
    "packet_replication_engine_entry { clone_session_entry {} }",
    "register_entry {}",
    "meter_entry {}",
    "value_set_entry {}",
]
ZERO = b"\0"


def inputs(dtype) -> list[Any]:
    return buffers(dtype, 3000, len(TOPOLOGY.hosts))


def entities(fabric: Fabric) -> dict[str, list[str]]:
    """Every entity of every switch but counters, read back, and how many: of half a million cells most are 0.

    INT's count of bytes sent is one, too, though it is a register: how many acknowledgements a port sends depends on
    when the data comes. Keys of jobs are drawn at random where the clock is real.
    """
    p4info = Pipeline.load(fabric.lab.programs.distinct[0].p4info, fabric.lab.programs.distinct[0].json).p4info
    (tx_bytes,) = (each.preamble.id for each in p4info.registers if each.preamble.alias == "port_tx_bytes")
    (set_job,) = (each.preamble.id for each in p4info.actions if each.preamble.alias == "set_job")
    wanted = [text_format.Parse(text, p4r.Entity()) for text in EVERYTHING]
    controller = fabric.lab.controller

    async def read(switch: str) -> list[p4r.Entity]:
        found = await controller.controller.session(switch).read_raw(wanted)
        for entity in found:
            if entity.table_entry.action.action.action_id == set_job:
                queue_key = entity.table_entry.action.action.params[0]
                assert queue_key.param_id == 1
                queue_key.value = b""
        return found

    read_back = {switch.name: controller.call(read(switch.name)) for switch in TOPOLOGY.switches}
    return {
        switch: [
            f"{len(found)} entities",
            *sorted(
                str(entity)
                for entity in found
                if entity.register_entry.register_id != tx_bytes and entity.register_entry.data.bitstring != ZERO
            ),
        ]
        for switch, found in read_back.items()
    }


def outcome(clock: str) -> dict[str, Any]:
    with Fabric(TOPOLOGY, clock=clock, seed=5, dilation=1000) as fabric:
        found: dict[str, Any] = {"clock": fabric.options.clock, "runs": {}}
        fabric.lab.allow_any_packets()  # all routes, which under the virtual clock only some runs need
        for dtype in (np.int32, np.float32):
            for algorithm in ALGORITHMS:
                found["runs"][dtype.__name__, algorithm] = fabric.run(
                    CollectiveRequest("allreduce", inputs(dtype), algorithm)
                )
        found["flow"] = fabric.incast("h0", 1 << 17)
        found["entities"] = entities(fabric)
        found["summary"] = fabric.summary()
        found["hosts"] = fabric.hosts.stats()
        found["counters"] = fabric.lab.controller.read_counters()
    return found


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    return {clock: outcome(clock) for clock in CLOCKS}


def test_each_ran_under_its_clock(outcomes):
    assert [outcomes[clock]["clock"] for clock in CLOCKS] == list(CLOCKS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_reduced_values_are_the_same_bit_for_bit(outcomes, dtype, algorithm):
    real, virtual = (outcomes[clock]["runs"][dtype.__name__, algorithm] for clock in CLOCKS)
    assert real.result.ok
    assert virtual.result.ok
    for left, right in zip(real.buffers, virtual.buffers, strict=True):
        np.testing.assert_array_equal(left, right)


def test_every_entity_of_every_switch_is_the_same(outcomes):
    real, virtual = (outcomes[clock]["entities"] for clock in CLOCKS)
    assert all(len(each) > 20 for each in real.values())
    assert real == virtual


def test_the_same_bytes_are_delivered(outcomes):
    flows = [outcomes[clock]["flow"] for clock in CLOCKS]
    assert [flow.bytes_delivered for flow in flows] == [3 << 17] * 2


def test_counters_are_the_same_where_nothing_was_sent_twice(outcomes):
    """A real host that is delayed beyond a timeout retransmits, which is correct but is counted."""
    real, virtual = (outcomes[clock] for clock in CLOCKS)
    assert virtual["summary"].retransmissions == 0
    if real["summary"].retransmissions:
        pytest.skip(f"this machine was too late for its times: {real['summary'].lateness}")
    for name in ("data_packets_sent", "data_bytes_sent", "data_packets_received", "data_bytes_received"):
        sent = [[host["totals"][name] for host in found["hosts"]] for found in (real, virtual)]
        assert sent[0] == sent[1]
    for switch in TOPOLOGY.switches:
        aggregated = [found["counters"][switch.name].aggregated_packets for found in (real, virtual)]
        assert aggregated[0] == aggregated[1]
    assert real["summary"].drops == virtual["summary"].drops
    assert [found["summary"].planes[0].tail_drops for found in (real, virtual)] == [0, 0]


def test_times_agree_where_the_emulation_kept_its_time(outcomes):
    """Host software adds time under the real clock; half and double are far beyond a valid run's deviation."""
    real, virtual = (outcomes[clock]["flow"].time_ps for clock in CLOCKS)
    lateness = outcomes["real"]["summary"].lateness
    if not lateness.valid:
        pytest.skip(f"this machine was too late for its times: {lateness}")
    assert 0.5 < real / virtual < 2
