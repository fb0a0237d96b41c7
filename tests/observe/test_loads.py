"""Bytes that ports send of each kind of traffic: the analytic traffic matrix, and the ports' own totals."""

import pytest

from tests.refusals import refused
from weft import EnvironmentLacksError, Fabric, topologies
from weft.clocks.environment import require_for
from weft.recording.tables import names_of
from weft.report.page import report_page
from weft.report.run_directory import RunDirectory
from weft.run.runner import run_scenario
from weft.scenario import FabricOptions, ObserveSection, parse_scenario
from weft.traffic.header_sizes import IMMEDIATE, RETH, overhead_bytes
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart

MTU = 1024
SIZE = 256 << 10
PIECE = 16 << 10
MESSAGE = 100_000
PLAIN = overhead_bytes(4, int_telemetry=False)


def written(size_bytes):
    """Return the bytes on the wire of a WRITE with immediate."""
    return size_bytes + -(-size_bytes // MTU) * PLAIN + RETH + IMMEDIATE


# Of the ring, each rank sends 3 chunks of a quarter to be added and 3 that are sums, in pieces.
RING = 6 * (SIZE // 4 // PIECE) * written(PIECE)


def job():
    """Return an all-reduce of four ranks, beside a message from rank 0 to rank 2 and a READ by rank 3 from rank 1."""
    parts = []
    for rank in range(4):
        builder = OperationsBuilder()
        builder.collective(0, 0, category="data")
        if rank == 0:
            builder.send(0, MESSAGE, category="pipeline")
        if rank == 2:
            builder.receive(0, MESSAGE, category="pipeline")
        if rank == 3:
            builder.read(0, MESSAGE)
        peers = {0: (2,), 2: (0,), 3: (1,)}.get(rank, ())
        parts.append(RankPart(builder.build(), peers, (0,)))
    calls = (CollectiveCall("allreduce", SIZE, "ring"),)
    return Job("a step", tuple(parts), (Group("all", (0, 1, 2, 3)),), calls)


def loads_of(result):
    """Return the bytes of each port by kind."""
    table = result.observations.tables["loads"]
    columns = names_of(table, "port").texts(), names_of(table, "kind").texts(), table["transmitted_bytes"]
    found = {}
    for port, kind, size in zip(*columns, strict=True):
        found.setdefault(port, {})[kind] = int(size)
    return found


@pytest.fixture(scope="module")
def result():
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10**11)
    observe = ObserveSection(loads=True)
    with Fabric(fabric, clock="virtual", int_telemetry=False, observe=observe) as running:
        running.run_job(job())
        yield running.summary()


def test_bytes_by_kind_are_the_traffic_matrix(result):
    loads = loads_of(result)
    # Hosts 0 and 1 are on the first leaf: the ring crosses from 1 to 2 and from 3 to 0, the message from 0 to 2.
    data = {"h0:0": 1, "h1:0": 1, "h2:0": 1, "h3:0": 1, "p0l0:1": 1, "p0l0:2": 1, "p0l1:1": 1, "p0l1:2": 1}
    crossing = {"p0l0:3": 1, "p0l1:3": 1, "p0s0:1": 1, "p0s0:2": 1}
    assert {port: found["data"] for port, found in loads.items()} == {
        port: times * RING for port, times in (data | crossing).items()
    }
    on_its_way = {"h0:0", "p0l0:3", "p0s0:2", "p0l1:1"}
    pipeline = {port: found["pipeline"] for port, found in loads.items() if "pipeline" in found}
    assert pipeline == dict.fromkeys(on_its_way, written(MESSAGE))


def test_responses_of_reads_are_of_the_kind_of_their_requests(result):
    read = {port: found["messages"] for port, found in loads_of(result).items() if "messages" in found}
    requests, responses = {"h3:0", "p0l1:3", "p0s0:1", "p0l0:2"}, {"h1:0", "p0l0:3", "p0s0:2", "p0l1:2"}
    assert read.keys() == requests | responses
    assert all(read[port] == PLAIN + RETH for port in requests)
    assert all(read[port] > MESSAGE + MESSAGE // MTU * PLAIN for port in responses)


def test_kinds_add_up_to_what_ports_have_sent(result):
    ports = result.observations.tables["ports"]
    sent = dict(zip(names_of(ports, "port").texts(), ports["transmitted_bytes"].tolist(), strict=True))
    assert {port: sum(found.values()) for port, found in loads_of(result).items()} == sent
    assert all("acknowledgements" in found for found in loads_of(result).values())


def test_results_have_sums_by_tier_and_the_busiest_port(result):
    up = {each.kind: each for each in result.link_loads if each.links == "leaf to spine"}
    assert up["data"].transmitted_bytes == 2 * RING
    assert up["pipeline"].busiest_port == "p0l0:3"
    [phase] = result.phases
    could = 10**11 / 8 * (phase.end_ps - phase.start_ps) / 1e12
    assert up["pipeline"].busiest_share == pytest.approx(written(MESSAGE) / could)
    assert up["data"].share == pytest.approx(RING / could)
    assert [each.links for each in result.link_loads if each.kind == "data"] == [
        "host to leaf",
        "leaf to host",
        "leaf to spine",
        "spine to leaf",
    ]


def test_counting_changes_nothing(result):
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10**11)
    with Fabric(fabric, clock="virtual", int_telemetry=False) as running:
        running.run_job(job())
        without = running.summary()
    assert without.phases == result.phases
    assert without.link_loads == []
    assert "loads" not in without.observations.tables


def test_a_scenario_has_them_in_files_and_on_its_page(tmp_path):
    scenario = parse_scenario(
        {
            "clock": "virtual",
            "fabric": {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "planes": 1},
            "pfc": {"classes": [3]},
            "buffer": {"capacity": "256KiB"},
            "observe": {"loads": True},
            "traffic": [
                {
                    "together": [
                        {
                            "model": {
                                "layers": 2,
                                "hidden": 256,
                                "heads": 4,
                                "feed_forward": 512,
                                "vocabulary": 500,
                                "sequence": 128,
                            },
                            "parallel": {"tensor": 2, "pipeline": 2},
                        },
                        {"incast": "h0"},
                    ]
                }
            ],
        }
    )
    result = run_scenario(scenario, directory=tmp_path)
    result.save(tmp_path)
    run = RunDirectory.read(tmp_path)
    assert run.results.link_loads == result.link_loads
    kinds = {each.kind for each in result.link_loads}
    assert kinds == {"tensor", "pipeline", "others", "acknowledgements"}
    page = report_page(run)
    assert "Load of links by kind of traffic" in page
    assert "Busiest links by kind of traffic" in page


def test_the_real_clock_cannot_count_them():
    fabric = topologies.leaf_spine(leaves=1, spines=0, hosts_per_leaf=2)
    options = FabricOptions(clock="real", observe=ObserveSection(loads=True))
    with refused(EnvironmentLacksError, problem="observe: loads are recorded"):
        require_for(fabric, options)
