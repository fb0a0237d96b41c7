"""Reads of remote memory against closed forms: alone, with many under way, and under load."""

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.results.remote_memory import REMOTE_MEMORY
from weft.run.runner import run_scenario
from weft.run.traffic_kinds.remote_memory import RemoteMemoryTraffic
from weft.scenario import parse_scenario

NS = 1000
FABRIC = {"leaves": 1, "spines": 0, "hosts_per_leaf": 4, "planes": 1, "host_rate": "100Gb/s"}


@pytest.fixture(scope="module")
def fabric():
    with Fabric(
        topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=8, host_rate_bps=100e9, delay_ps=100 * NS),
        clock="virtual",
    ) as running:
        yield running


def run(fabric, **given):
    item = RemoteMemoryTraffic.model_validate({"remote_memory": [7], "clients": [0]} | given)
    (found,) = fabric.run_together([item.prepare_task(8, 1)(fabric)])
    return found


@pytest.mark.parametrize("size", [1, 64, 1024, 5000])
def test_a_read_alone_takes_its_request_its_response_and_the_memorys_time(fabric, size):
    """To the picosecond, and no other read of a client that has one under way takes longer."""
    found = run(fabric, size=size, reads=5, outstanding=1, access_latency="150ns")
    assert found.latency_ps.least == found.latency_ps.largest == found.unloaded_ps
    assert found.time_ps == 5 * found.unloaded_ps
    assert found.bytes_per_s == pytest.approx(found.bounds_bytes_per_s["outstanding"])


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        ({"outstanding": 4}, "outstanding"),
        ({"outstanding": 64}, "outstanding"),
        ({"outstanding": 16, "access_latency": "2us"}, "outstanding"),
        ({"outstanding": 16, "size": 1024, "clients": [0, 1, 2, 3, 4]}, "link"),
    ],
)
def test_throughput_is_the_least_of_what_reads_under_way_and_links_allow(fabric, given, bound):
    found = run(fabric, reads=400, **given)
    bounds = found.bounds_bytes_per_s
    assert min(bounds, key=bounds.__getitem__) == bound
    assert 0.9 * bounds[bound] < found.bytes_per_s <= 1.001 * bounds[bound]


def test_beyond_16_reads_of_a_pair_of_ranks_others_wait(fabric):
    few, many = (run(fabric, reads=300, outstanding=outstanding) for outstanding in (16, 64))
    assert many.bytes_per_s == pytest.approx(few.bytes_per_s, rel=0.05)
    assert many.latency_ps.mean > 3 * few.latency_ps.mean


def test_how_many_reads_of_a_pair_of_ranks_wait_is_an_option():
    spec = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=8, host_rate_bps=100e9)
    with Fabric(spec, clock="virtual", transport={"max_outstanding_reads": 2}) as held_back:
        found = run(held_back, reads=300, outstanding=64)
    bound = found.bounds_bytes_per_s["outstanding"]
    assert 0.95 * bound < found.bytes_per_s <= 1.001 * bound
    assert bound == pytest.approx(2 * 64 * 10**12 / found.unloaded_ps)


def test_several_memories_share_reads(fabric):
    given = {"clients": [0, 1, 2, 3], "size": 1024, "outstanding": 32, "reads": 200}
    one, two = run(fabric, **given), run(fabric, **given | {"remote_memory": [6, 7]})
    assert two.bytes_per_s == pytest.approx(2 * one.bytes_per_s, rel=0.1)


@pytest.mark.parametrize(("load", "tolerance"), [(0.3, 0.1), (0.6, 0.1), (0.8, 0.2)])
def test_under_load_reads_wait_as_long_as_in_an_md1_queue(fabric, load, tolerance):
    found = run(fabric, clients=list(range(6)), size=512, reads=1500, load=load)
    waited_ps = found.latency_ps.mean - found.unloaded_ps
    expected_ps = found.expected_mean_ps - found.unloaded_ps
    assert waited_ps == pytest.approx(expected_ps, rel=tolerance)
    assert found.latency_ps.least >= found.unloaded_ps
    assert found.latency_ps.percentiles[2] > found.latency_ps.percentiles[0] >= found.unloaded_ps
    assert found.bytes_per_s == pytest.approx(load * found.bounds_bytes_per_s["link"], rel=0.1)


def test_the_closed_form_of_queues_is_left_out_where_it_does_not_hold(fabric):
    assert run(fabric, size=2000, reads=5, load=0.5).expected_mean_ps is None
    assert run(fabric, reads=5).expected_mean_ps is None
    crowded = run(fabric, size=64, reads=100, load=0.9)
    assert crowded.expected_mean_ps is None
    assert crowded.bytes_per_s < crowded.bounds_bytes_per_s["outstanding"] < crowded.bounds_bytes_per_s["link"]


@pytest.mark.parametrize(
    "given",
    [
        {"remote_memory": [6, 7], "clients": [0, 1], "size": 512},
        {"size": 8, "clients": [0, 1, 2]},
        {"size": 64, "clients": [0, 1, 2]},
    ],
    ids=["responses queue at clients, too", "requests take longer", "requests with acknowledgements do"],
)
def test_the_closed_form_of_queues_is_of_one_memory_whose_responses_are_the_slowest(fabric, given):
    found = run(fabric, reads=200, load=0.5, **given)
    assert found.expected_mean_ps is None
    assert found.latency_ps.mean > found.unloaded_ps


def test_the_closed_form_of_queues_is_left_out_where_links_between_switches_are_slower():
    slow = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "planes": 1, "host_rate": "100Gb/s"}
    item = {"remote_memory": [3], "clients": [0, 1], "size": 512, "reads": 50, "load": 0.05}
    means = []
    for rate in ("100Gb/s", "40Gb/s"):
        scenario = {"clock": "virtual", "fabric": slow | {"fabric_rate": rate}, "traffic": [item]}
        [found] = run_scenario(parse_scenario(scenario)).traffic[REMOTE_MEMORY.key]
        means.append(found.expected_mean_ps)
    assert means[0] is not None
    assert means[1] is None


def test_reads_that_begin_too_late_for_any_clock_are_refused(fabric):
    with refused(BadInputError, place="remote_memory.load", problem="1e-12: client 0 begins its last"):
        run(fabric, load=1e-12)
    with refused(BadInputError, place="remote_memory.load", problem="load"):
        run(fabric, load=5e-324)


@pytest.mark.parametrize(
    ("given", "least_s"),
    [
        ({}, 3600),
        ({"timeout": 7}, 7),
        ({"access_latency": "1ms", "reads": 2000}, 3602),
        ({"load": 1e-8, "reads": 1000}, 3600 + 800),
    ],
)
def test_the_time_limit_counts_the_memorys_time_and_arrivals(fabric, given, least_s):
    item = RemoteMemoryTraffic.model_validate({"remote_memory": [7], "clients": [0]} | given)
    assert least_s <= item.time_limit_s(fabric) < 1.6 * least_s


HOSTS = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "planes": 1, "ranks_per_host": 2}


@pytest.mark.parametrize(
    ("fabric_of", "item", "message"),
    [
        (
            {"kind": "rail_only", "ranks_per_host": 2, "hosts_per_leaf": 2},
            {"remote_memory": [0], "clients": [3]},
            {"place": "scenario: traffic[0].clients", "valid": "ranks with a path to it"},
        ),
    ],
)
def test_pairs_of_ranks_that_cannot_read_are_refused_with_their_key(fabric_of, item, message):
    scenario = parse_scenario({"clock": "virtual", "fabric": fabric_of, "traffic": [item]})
    with refused(BadInputError, **message):
        run_scenario(scenario)


def reads_on_hosts(item, **scale_up):
    fabric_of = HOSTS | {"rail_optimised": False, "host_rate": "100Gb/s"}
    scenario = {"clock": "virtual", "fabric": fabric_of | {"scale_up": scale_up}, "traffic": [item]}
    [found] = run_scenario(parse_scenario(scenario)).traffic[REMOTE_MEMORY.key]
    return found


def test_a_read_of_a_rank_of_the_host_takes_its_links():
    """Two latencies and the bytes at the links' rate, to the picosecond; as many are under way as are asked for."""
    item = {"remote_memory": [3], "clients": [2], "size": 1000, "reads": 2000, "access_latency": "50ns"}
    links = {"rate": "800Gb/s", "latency": "300ns"}
    alone = reads_on_hosts(item | {"outstanding": 1}, **links)
    assert alone.latency_ps.least == alone.latency_ps.largest == alone.unloaded_ps == 660 * NS
    assert alone.bounds_bytes_per_s == {"outstanding": pytest.approx(alone.bytes_per_s)}
    many = reads_on_hosts(item | {"outstanding": 40}, **links)
    assert many.bytes_per_s == pytest.approx(40 * alone.bytes_per_s, rel=0.1)


def test_a_load_is_that_of_the_memorys_busiest_links():
    """One client shares the memory's host, two do not; all read as often."""
    item = {"remote_memory": [3], "clients": [0, 1, 2], "size": 512, "reads": 2000, "load": 0.4}
    slow = reads_on_hosts(item, rate="10Gb/s", latency="100ns")
    assert slow.bytes_per_s == pytest.approx(3 * 0.4 * 10e9 / 8, rel=0.1)
    assert (slow.expected_mean_ps, slow.bounds_bytes_per_s) == (None, {})
    fast = reads_on_hosts(item, rate="1Tb/s", latency="100ns")
    others = reads_on_hosts(item | {"clients": [0, 1]}, rate="1Tb/s", latency="100ns")
    assert others.bytes_per_s == pytest.approx(0.4 * others.bounds_bytes_per_s["link"], rel=0.1)
    assert fast.bytes_per_s == pytest.approx(1.5 * others.bytes_per_s, rel=0.1)


def test_a_load_beyond_what_a_clients_links_carry_is_refused():
    """Both memories' links to the fabric could be as busy as that, the client's could not."""
    item = {"remote_memory": [0, 1], "clients": [2], "load": 0.6}
    with refused(BadInputError, place="remote_memory.load", valid="up to 0.5"):
        reads_on_hosts(item, rate="1Tb/s", latency="100ns")
    # One memory on its host takes nothing of its links to the fabric.
    assert reads_on_hosts(item | {"remote_memory": [0, 3], "reads": 10}, rate="1Tb/s").reads == 10


def test_reads_travel_in_a_class_of_their_own():
    """Strictly before the bulk beside them they wait for a packet of it at most at each port."""
    reading = {"remote_memory": [3], "clients": [0], "reads": 50, "outstanding": 1}
    beside = {"incast": "h0", "bytes_per_sender": "256KiB"}
    waits = []
    for classes in ({}, {"read": 5}):
        traffic = [{"together": [reading | {"classes": classes}, beside]}]
        scenario = {"clock": "virtual", "fabric": FABRIC, "scheduling": {"classes": [5]}, "traffic": traffic}
        [found] = run_scenario(parse_scenario(scenario)).traffic[REMOTE_MEMORY.key]
        waits.append(found.latency_ps.mean - found.unloaded_ps)
    assert 0 < waits[1] < 0.2 * waits[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"classes": {"write": 5}},
            {"place": "scenario: traffic[0].classes", "problem": "no kind of traffic 'write'"},
        ),
        (
            {"remote_memory": [1, 2, 3], "load": 0.5},
            {"place": "scenario: traffic[0].load", "valid": "up to 0.333"},
        ),
        (
            {"load": 0.5, "outstanding": 4},
            {"place": "scenario: traffic[0].outstanding", "valid": "one of them"},
        ),
        ({"load": 0}, {"place": "scenario: traffic[0].load", "valid": "above 0 to 1"}),
        ({"clients": [3]}, {"place": "scenario: traffic[0].clients", "valid": "other ranks"}),
        ({"clients": [4]}, {"place": "scenario: traffic[0].clients", "valid": "0 to 3"}),
        ({"size": "2MiB"}, {"place": "scenario: traffic[0].size", "valid": "1B to 1MiB"}),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(given, message):
    item = {"remote_memory": [3]} | given
    with refused(BadInputError, **message):
        parse_scenario({"fabric": FABRIC, "traffic": [item]})


def test_bulk_traffic_beside_them_makes_reads_slower():
    reading = {"remote_memory": [3], "clients": [0], "reads": 50, "outstanding": 1, "access_latency": "50ns"}
    beside = {"incast": "h0", "bytes_per_sender": "256KiB"}
    traffic = [reading, {"together": [reading, beside]}]
    found = run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": traffic}))
    alone, loaded = found.traffic[REMOTE_MEMORY.key]
    assert alone.latency_ps.largest == alone.unloaded_ps
    assert loaded.latency_ps.percentiles[2] > 2 * alone.latency_ps.percentiles[2]
