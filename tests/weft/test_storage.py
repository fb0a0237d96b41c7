"""Storage behind a fabric: throughput and latency against closed forms, checkpoints, batches of samples, refusals."""

import io

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.refusals import refused
from weft import Fabric, topologies
from weft.cli import weft
from weft.errors import BadInputError
from weft.jobs.formulas.parameters import model_parameters
from weft.jobs.models import MODELS
from weft.jobs.parallelism import Parallelism
from weft.jobs.storage.commands import SECTOR_BYTES
from weft.jobs.storage.devices import DEVICES
from weft.jobs.storage.loads import block_sizes, restored_bytes, shard_bytes
from weft.jobs.training_plan import TrainingPlan
from weft.paths import ROOT
from weft.recording.ideal_times import WRITE, IdealTimes
from weft.results.remote_memory import REMOTE_MEMORY
from weft.results.storage import STORAGE
from weft.results.training_jobs import TRAINING_JOBS
from weft.run.message_times import HostTimes, MessageTimes
from weft.run.runner import run_scenario
from weft.run.storage_bounds import CommandLoad, round_trip_ps
from weft.run.traffic_kinds.remote_memory import RemoteMemoryTraffic
from weft.run.traffic_kinds.storage import StorageTraffic
from weft.scenario import parse_scenario
from weft.topologies import ScaleUpSpec
from weft.traffic.jobs.native_job import STRIPE_BYTES
from weft.traffic.transports.registry import carriers_of

US = 10**6
MODEL = {"layers": 2, "hidden": 64, "heads": 4, "feed_forward": 128, "vocabulary": 500, "sequence": 64}
QUICK = {
    "read": {"latency": "2us", "bandwidth": "800Gb/s", "channels": 64},
    "write": {"latency": "1us", "bandwidth": "800Gb/s", "channels": 64},
}
"""A device that bounds nothing."""
FABRIC = {
    "leaves": 1,
    "spines": 0,
    "hosts_per_leaf": 4,
    "planes": 1,
    "host_rate": "100Gb/s",
    "queue_capacity": "4MiB",
}
HOSTS = FABRIC | {"leaves": 2, "spines": 1, "ranks_per_host": 2, "rail_optimised": False}


@pytest.fixture(scope="module")
def fabric():
    with Fabric(
        topologies.leaf_spine(
            planes=1, leaves=1, spines=0, hosts_per_leaf=4, host_rate_bps=100e9, queue_capacity_bytes=4 << 20
        ),
        clock="virtual",
    ) as running:
        yield running


def device(**given):
    accesses = {"latency": "2us", "bandwidth": "800Gb/s", "channels": 64} | given
    return {"read": accesses, "write": accesses}


def item(**given):
    return StorageTraffic.model_validate({"storage": [3], "clients": [0], "device": QUICK} | given)


def run(fabric, **given):
    """Return the result of clients 0, or those given, and of storage on rank 3, or those given."""
    (found,) = fabric.run_together([item(**given).prepare_task(4, 1)(fabric)])
    return found


def blocks(count=1, reads=1.0, **given):
    return {"blocks": count, "reads": reads} | given


KINDS = [
    {"reads": 1.0},
    {"reads": 0.0},
    {"reads": 0.0, "in_capsule_data": "8KiB"},
    {"reads": 1.0, "host_copy": {"bandwidth": "100Gb/s", "latency": "3us"}},
    {"reads": 0.0, "host_copy": {"bandwidth": "100Gb/s", "latency": "3us"}},
]


@pytest.mark.parametrize("block", [512, 8192])
@pytest.mark.parametrize("kind", KINDS)
def test_a_command_alone_takes_what_its_parts_take(fabric, kind, block):
    """To the picosecond on links of one rate: capsules, data, access, transfer, copy."""
    options = {key: value for key, value in kind.items() if key != "reads"}
    found = run(fabric, block=block, access=blocks(reads=kind["reads"]), **options)
    storage = item(block=block, access=blocks(), **options)
    network = MessageTimes(fabric.topology, fabric.options, 0, 3)
    load = CommandLoad(1, 1, block, kind["reads"] == 1.0)
    assert found.latency_ps.largest == round_trip_ps(load, storage._nodes, network)
    assert sum(found.parts_ps.values()) == found.latency_ps.largest == found.time_ps
    assert found.parts_ps["device queue"] == 0


@pytest.mark.parametrize("reads", [1.0, 0.0])
@pytest.mark.parametrize(
    ("bound", "options"),
    [
        ("queue depth", {"queue_depth": 3, "block": "4KiB", "device": device(latency="50us")}),
        ("device", {"queue_depth": 64, "block": "4KiB", "device": device(latency="50us", channels=4)}),
        ("device", {"queue_depth": 32, "block": "32KiB", "device": device(bandwidth="20Gb/s")}),
        ("link", {"queue_depth": 16, "block": "32KiB"}),
        ("host copy", {"queue_depth": 16, "block": "32KiB", "host_copy": {"bandwidth": "20Gb/s"}}),
    ],
)
def test_throughput_is_the_least_of_what_queues_links_devices_and_copies_allow(fabric, bound, options, reads):
    found = run(fabric, access=blocks(400, reads), in_capsule_data=0, **options)
    least = min(found.bounds_bytes_per_s, key=found.bounds_bytes_per_s.__getitem__)
    assert least == bound
    assert found.bytes_per_s == pytest.approx(found.bounds_bytes_per_s[bound], rel=0.06)
    assert found.bytes_per_s <= 1.001 * found.bounds_bytes_per_s[bound]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_command_alone_within_a_host_takes_the_scale_up_links(kind):
    """Their rate is above that of the NIC, which bounds nothing there."""
    options = {key: value for key, value in kind.items() if key != "reads"}
    given = {"storage": [3], "clients": [2], "block": "8KiB", "device": QUICK} | options
    fabric_of = HOSTS | {"scale_up": {"rate": "1.6Tb/s", "latency": "500ns"}}
    traffic = [
        given | {"access": blocks(1, kind["reads"])},
        given | {"access": blocks(500, kind["reads"]), "queue_depth": 64, "devices": 4},
    ]
    result = run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric_of, "traffic": traffic}))
    one, many = result.traffic[STORAGE.key]
    within = HostTimes(ScaleUpSpec(2, 1, 1600 * 10**9, 500_000))
    load = CommandLoad(1, 1, 8192, kind["reads"] == 1.0)
    assert one.latency_ps.largest == round_trip_ps(load, item(access=blocks(), **options)._nodes, within)
    assert "link" not in many.bounds_bytes_per_s
    assert 12.5e9 < many.bytes_per_s <= 1.001 * min(many.bounds_bytes_per_s.values())


def test_bounds_of_round_trips_are_left_out_with_cut_through_switching():
    made = {"clock": "virtual", "fabric": FABRIC, "switching": {"mode": "cut-through"}}
    storage = {"storage": [3], "clients": [0], "access": blocks(20, 0.0)}
    memory = {"remote_memory": [3], "clients": [0], "reads": 20, "outstanding": 1}
    result = run_scenario(parse_scenario(made | {"traffic": [storage, memory]}))
    assert result.traffic[STORAGE.key][0].bounds_bytes_per_s.keys() == {"link", "device"}
    [reads] = result.traffic[REMOTE_MEMORY.key]
    assert reads.unloaded_ps is None
    assert reads.bounds_bytes_per_s.keys() == {"link"}
    printed = io.StringIO()
    REMOTE_MEMORY.show(Console(file=printed, width=120), [reads])
    assert "of a read" in printed.getvalue()
    assert "alone" not in printed.getvalue()


@pytest.mark.parametrize("limit", [4, 16])
def test_reads_under_way_bound_what_nodes_fetch(limit):
    """Commands enough are under way, but a node fetches blocks by no more READs at once than a queue pair has."""
    with Fabric(
        topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=400e9, delay_ps=20 * US),
        clock="virtual",
        transport={"max_outstanding_reads": limit},
    ) as slow:
        given = {"block": "8KiB", "queue_depth": 200, "access": blocks(600, 0.0)}
        found = run(slow, storage=[1], **given)
    bounds = found.bounds_bytes_per_s
    assert min(bounds, key=bounds.__getitem__) == "reads under way"
    assert 0.85 * bounds["reads under way"] < found.bytes_per_s <= 1.001 * bounds["reads under way"]


def test_messages_alone_take_what_flows_do_where_links_differ(fabric):
    """A frame waits at the slow link for those before it, whatever faster ones come behind."""
    spec = topologies.leaf_spine(
        planes=2, leaves=2, spines=1, hosts_per_leaf=1, host_rate_bps=100e9, fabric_rate_bps=25e9
    )
    ideal = IdealTimes.of_fabric(spec, fabric.options)
    for size in (1, 1024, 5000, STRIPE_BYTES - 1, STRIPE_BYTES, 10**6):
        own = size if size < STRIPE_BYTES else size // 2
        column = [np.array([value]) for value in (0, 1, 0, own)]
        assert MessageTimes(spec, fabric.options, 0, 1).one_way_ps(size, WRITE) == ideal.arrivals(*column)[0]


def test_clients_share_the_link_of_a_node(fabric):
    given = {"block": "32KiB", "queue_depth": 8, "access": blocks(100)}
    alone, three = run(fabric, **given), run(fabric, clients=[0, 1, 2], **given)
    assert three.clients == 3
    assert three.commands == 300
    assert three.bytes_per_s == pytest.approx(alone.bytes_per_s, rel=0.05)
    assert three.latency_ps.mean > 2 * alone.latency_ps.mean
    assert three.parts_ps["network"] > 2 * alone.parts_ps["network"]


def test_nodes_and_devices_share_blocks_in_turn(fabric):
    slow = device(latency="100us", channels=1)
    given = {"block": "4KiB", "queue_depth": 16, "access": blocks(96), "device": slow}
    one = run(fabric, **given)
    two_nodes, two_devices = run(fabric, storage=[2, 3], **given), run(fabric, devices=2, **given)
    assert two_nodes.bytes_per_s == pytest.approx(2 * one.bytes_per_s, rel=0.05)
    assert two_devices.bytes_per_s == pytest.approx(2 * one.bytes_per_s, rel=0.05)
    assert one.parts_ps["device queue"] > one.parts_ps["device"]


def test_random_addresses_leave_channels_idle_and_are_drawn_from_the_seed(fabric):
    given = {"block": "4KiB", "queue_depth": 8, "device": device(latency="50us", channels=8)}
    in_order = run(fabric, access=blocks(200), **given)
    at_random = run(fabric, access=blocks(200, order="random"), **given)
    again = run(fabric, access=blocks(200, order="random"), **given)
    assert at_random.bytes_per_s < 0.9 * in_order.bytes_per_s
    assert at_random == again
    assert at_random.latency_ps.percentiles[2] > at_random.latency_ps.percentiles[0]


@pytest.mark.slow
def test_the_page_says_what_presets_reach_at_random_addresses():
    rows = []
    spec = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=1600e9)
    with Fabric(spec, clock="virtual") as wide:
        for name, per_s in (("9200", 840e3), ("9550", 3300e3)):
            given = {"storage": [1], "device": name, "block": "4KiB"}
            found = [
                run(wide, access=blocks(20_000, order="random"), queue_depth=depth, **given)
                for depth in (128, 512, 2048)
            ]
            cells = [f"{100 * each.commands_per_s / per_s:.0f} %" for each in found]
            rows.append(f"| {name} | {' | '.join(cells)} |")
            in_order = run(wide, access=blocks(10_000), queue_depth=512, **given)
            assert 0.97 < in_order.commands_per_s / per_s < 1.01
    page = (ROOT / "docs" / "storage.md").read_text(encoding="utf-8")
    assert "\n".join(rows) in page, rows


def test_a_share_of_commands_reads(fabric):
    found = run(fabric, block="4KiB", access=blocks(300, 0.25))
    assert found.read_bytes + found.written_bytes == 300 * 4096
    assert 0.15 < found.read_bytes / (300 * 4096) < 0.35
    assert found.bounds_bytes_per_s == {}


def loading(**given):
    return {"steps": 5, "samples": 4, "sample": "64KiB", "compute": "1ms", "prefetch": 1} | given


def test_prefetch_hides_loading_behind_computation(fabric):
    hidden = run(fabric, block="64KiB", loading=loading())
    exposed = run(fabric, block="64KiB", loading=loading(prefetch=0))
    one_load_ps = hidden.waiting_ps
    assert hidden.time_ps == 5 * 10**9 + one_load_ps
    assert exposed.time_ps == 5 * 10**9 + exposed.waiting_ps
    assert exposed.waiting_ps == pytest.approx(5 * one_load_ps, rel=0.05)
    assert hidden.compute_ps == exposed.compute_ps == 5 * 10**9


def test_a_loader_that_is_slower_than_steps_bounds_them(fabric):
    slow = device(latency="500us", channels=1)
    found = run(fabric, block="64KiB", loading=loading(compute="100us", prefetch=2), device=slow)
    assert found.time_ps == pytest.approx(5 * 4 * 500 * US, rel=0.1)
    assert found.waiting_ps == found.time_ps - 5 * 100 * US


def test_a_checkpoint_writes_every_ranks_shard(fabric):
    parallel = {"tensor": 1, "data": 3, "zero": 1}
    found = run(
        fabric,
        clients=[0, 1, 2],
        checkpoint={"model": MODEL, "parallel": parallel},
        block="4KiB",
        queue_depth=4,
    )
    checkpoint = item(checkpoint={"model": MODEL, "parallel": parallel}).checkpoint
    sizes = [shard_bytes(checkpoint.plan, rank) for rank in range(3)]
    assert sizes[0] > sizes[1] == sizes[2]
    assert found.written_bytes == sum(sum(block_sizes(size, 4096)) for size in sizes)
    assert found.read_bytes == 0


def test_a_checkpoint_is_restored_from_the_files_that_hold_it(fabric):
    parallel = {"tensor": 1, "data": 3, "zero": 1}
    checkpoint = {"model": MODEL, "parallel": parallel, "operation": "restore"}
    found = run(fabric, clients=[0, 1, 2], checkpoint=checkpoint, block="4KiB", queue_depth=4)
    plan = item(checkpoint=checkpoint).checkpoint.plan
    files = [restored_bytes(plan, rank) for rank in range(3)]
    assert [set(each) for each in files] == [{0}, {0, 1}, {0, 2}]  # weights of the first, each one's optimizer's state
    assert files[1][1] == shard_bytes(plan, 1)
    read = [sum(block_sizes(size, 4096)) for each in files for size in each.values()]
    assert (found.read_bytes, found.written_bytes) == (sum(read), 0)


@pytest.mark.parametrize("operation", ["save", "restore"])
def test_a_share_of_a_checkpoint_has_that_share_of_its_bytes(fabric, operation):
    whole = {"model": MODEL, "parallel": {"data": 3}, "operation": operation}
    all_of_it = item(checkpoint=whole).checkpoint.command_count(1)
    found = run(fabric, clients=[0, 1, 2], checkpoint=whole | {"share": 0.25}, block="4KiB")
    assert found.read_bytes + found.written_bytes == pytest.approx(all_of_it / 4, rel=1e-3)
    assert "0.25 of it" in found.name


@given(st.sampled_from([0, 1, 2, 3]), st.integers(1, 4), st.sampled_from([1, 2, 4]))
def test_every_rank_restores_its_whole_state(zero, data, tensor):
    plan = TrainingPlan(MODELS["7B"], Parallelism(data=data, tensor=tensor, zero=zero))
    whole = model_parameters(MODELS["7B"]) * 14
    sizes = [sum(restored_bytes(plan, rank).values()) for rank in range(plan.parallel.rank_count)]
    owners = {owner for rank in range(plan.parallel.rank_count) for owner in restored_bytes(plan, rank)}
    assert all(shard_bytes(plan, owner) for owner in owners)
    if zero == 0:
        assert sum(sizes) == pytest.approx(whole * data, rel=0.01)  # norms are on every tensor rank
    if zero == 3:
        assert sum(sizes) == pytest.approx(whole, rel=0.01)


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_shards_of_replicas_are_a_whole_model(zero):
    """2 B of a weight and 12 B of Adam's state for each parameter, whatever replicas share."""
    plan = TrainingPlan(MODELS["7B"], Parallelism(data=8, zero=zero))
    sizes = [shard_bytes(plan, rank) for rank in range(8)]
    assert sum(sizes) == pytest.approx(14 * model_parameters(MODELS["7B"]), rel=1e-6)
    assert len(set(sizes[1:])) == 1
    assert (sizes[1] == 0) == (zero == 0)
    assert (sizes[0] == sizes[1]) == (zero == 3)


def test_the_last_block_of_a_file_is_rounded_up_to_sectors():
    assert block_sizes(10_000, 4096) == [4096, 4096, 2048]
    assert block_sizes(1, 4096) == [SECTOR_BYTES]
    assert block_sizes(0, 4096) == []


def scenario(**given):
    base = {"storage": [3], "access": blocks()}
    return parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [base | given]})


@pytest.mark.parametrize("name", ["9200", "9550"])
def test_files_may_name_a_device_though_its_times_have_no_units(name):
    """As docs/storage.md writes it; files must give rates and times with their units, presets keep numbers."""

    def item(device):
        text = yaml.safe_dump({"traffic": [{"storage": [3], "access": blocks(), "device": device}]})
        tree = yaml.safe_load(text) | {"clock": "virtual", "fabric": {"hosts_per_leaf": 1}}
        return parse_scenario(tree, units_required=True).traffic[0]

    assert item(name).device == DEVICES[name]
    slower = item({"preset": name, "read": {"latency": "200us"}}).device
    assert slower.read.latency == 200_000_000
    assert slower.read.channels == DEVICES[name].read.channels
    assert slower.write == DEVICES[name].write


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"access": None}, {"place": "scenario: traffic[0]", "problem": "needs exactly one of access"}),
        ({"loading": loading()}, {"place": "scenario: traffic[0]", "problem": "has access, loading"}),
        ({"storage": [4]}, {"place": "scenario: traffic[0].storage", "valid": "0 to 3"}),
        ({"storage": [3, 3]}, {"place": "scenario: traffic[0].storage", "valid": "each once"}),
        ({"clients": [1, 3]}, {"place": "scenario: traffic[0].clients", "valid": "other ranks"}),
        ({"storage": [0, 1, 2, 3]}, {"place": "scenario: traffic[0].storage", "valid": "up to 3 of them"}),
        ({"block": 1000}, {"place": "scenario: traffic[0].block", "valid": "a multiple of 512"}),
        ({"device": "99"}, {"place": "scenario: traffic[0].device", "problem": "no device '99'"}),
        (
            {"device": device(channels=1024), "devices": 4},
            {"place": "scenario: traffic[0].devices", "valid": "4096 of a node"},
        ),
        ({"access": blocks(100_000), "loading": None, "storage": [1]}, None),
        (
            {"access": None, "loading": loading(steps=10_000, samples=100)},
            {"place": "scenario: traffic[0].loading", "valid": "up to 500,000"},
        ),
        (
            {"access": None, "checkpoint": {"model": MODEL, "parallel": {"data": 2}}, "clients": [0]},
            {"place": "scenario: traffic[0].clients", "valid": "2"},
        ),
        (
            {"access": None, "checkpoint": {"model": MODEL, "parallel": {"data": 8}}},
            {"place": "scenario: traffic[0].checkpoint.parallel", "valid": "up to 3"},
        ),
        (
            {"classes": {"write": 5}},
            {"place": "scenario: traffic[0].classes", "problem": "no kind of traffic 'write'"},
        ),
        (
            {"access": None, "checkpoint": {"model": MODEL, "parallel": {"tensor": 3}}},
            {"place": "scenario: traffic[0].checkpoint.parallel.tensor", "problem": "3 does not divide"},
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(given, message):
    if message is None:
        assert scenario(**given).traffic
        return
    with refused(BadInputError, **message):
        scenario(**given)


@pytest.mark.parametrize(
    ("fabric_of", "given", "message"),
    [
        (
            {"kind": "rail_only", "ranks_per_host": 2, "hosts_per_leaf": 2},
            {"clients": [0]},
            {"place": "scenario: traffic[0].clients", "valid": "ranks with a path to it"},
        ),
    ],
)
def test_pairs_of_ranks_without_a_way_are_refused_with_their_key(fabric_of, given, message):
    item = {"storage": [3], "access": blocks()} | given
    made = parse_scenario({"clock": "virtual", "fabric": fabric_of, "traffic": [item]})
    with refused(BadInputError, **message):
        run_scenario(made)


def test_reads_and_writes_in_capsules_go_within_hosts():
    given = {"storage": [3], "clients": [2], "block": "4KiB"}
    traffic = [given | {"access": blocks(10, reads)} for reads in (1.0, 0.0)]
    result = run_scenario(parse_scenario({"clock": "virtual", "fabric": HOSTS, "traffic": traffic}))
    assert [each.commands for each in result.traffic[STORAGE.key]] == [10, 10]


def test_the_time_limit_counts_what_a_disk_takes(fabric):
    disk = device(latency="8ms", channels=1)
    given = {"access": blocks(60_000), "block": "4KiB", "device": disk}
    assert item(**given).time_limit_s(fabric) > 3600 + 480
    assert 7 < item(timeout=7, access=blocks()).time_limit_s(fabric) < 7.1


def test_commands_travel_in_classes_of_their_own():
    """What a read sends in class 5 does not wait behind bulk on the links that both pass."""
    reading = {"storage": [3], "clients": [0], "block": "16KiB", "access": blocks(50), "device": QUICK}
    beside = {"incast": "h0", "bytes_per_sender": "2MiB"}
    means = []
    for classes in ({}, {"read": 5, "response": 5, "command": 5}):
        traffic = [{"together": [reading | {"classes": classes}, beside]}]
        made = {"clock": "virtual", "fabric": FABRIC, "scheduling": {"classes": [5]}, "traffic": traffic}
        [found] = run_scenario(parse_scenario(made)).traffic[STORAGE.key]
        means.append(found.latency_ps.mean)
    assert means[1] < 0.8 * means[0]


def test_storage_runs_beside_other_traffic():
    reading = {"storage": [3], "clients": [0], "block": "16KiB", "access": blocks(50), "device": QUICK}
    beside = {"incast": "h0", "bytes_per_sender": "2MiB"}
    found = [
        run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": traffic})).traffic[STORAGE.key][0]
        for traffic in ([reading], [{"together": [reading, beside]}])
    ]
    assert found[1].latency_ps.mean > 1.2 * found[0].latency_ps.mean
    assert found[1].parts_ps["device"] == found[0].parts_ps["device"]


def test_a_checkpoint_beside_a_training_step_slows_it():
    """Both leave their ranks by the same links. The node's link bounds the checkpoint, which so takes what it did."""
    model = MODEL | {"layers": 4, "hidden": 256, "feed_forward": 512}
    training = {
        "model": model,
        "parallel": {"data": 3},
        "accelerator": {"preset": "A100", "efficiency": 0.05},
    }
    saving = {
        "storage": [3],
        "device": QUICK,
        "checkpoint": {"model": model, "parallel": {"data": 3, "zero": 1}},
    }
    fabric = FABRIC | {"host_rate": "25Gb/s"}
    traffic = [training, saving, {"together": [training, saving]}]
    found = run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": traffic})).traffic
    saved_alone, saved_beside = found[STORAGE.key]
    trained_alone, trained_beside = found[TRAINING_JOBS.key]
    assert saved_beside.written_bytes == saved_alone.written_bytes
    assert saved_beside.time_ps == pytest.approx(saved_alone.time_ps, rel=0.1)
    assert trained_beside.step_ps > 1.02 * trained_alone.step_ps


@pytest.mark.mininet
def test_both_clocks_have_the_same_latencies():
    """Between processes, with operations from files: hosts' software adds a little under the real clock."""
    spec = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=3, host_rate_bps=1e9)
    given = {"storage": [2], "block": "16KiB", "queue_depth": 4, "access": blocks(20, 0.5)}
    storage = item(**given, clients=[0, 1])
    memory = RemoteMemoryTraffic.model_validate({"remote_memory": [2], "size": "1KiB", "reads": 30, "outstanding": 2})
    found = {}
    for clock in ("virtual", "real"):
        with Fabric(spec, clock=clock, dilation=100) as running:
            found[clock] = [running.run_together([each.prepare_task(3, 1)(running)])[0] for each in (storage, memory)]
            lateness = running.summary().lateness
    if lateness is not None and not lateness.valid:
        pytest.skip(f"this machine was too late for its times: {lateness}")
    for real, virtual in zip(found["real"], found["virtual"], strict=True):
        assert real.bytes_per_s == pytest.approx(virtual.bytes_per_s, rel=0.2)
        assert real.latency_ps.mean == pytest.approx(virtual.latency_ps.mean, rel=0.2)


EXAMPLE = ROOT / "examples" / "storage.yaml"


def test_the_page_shows_what_the_example_prints(tmp_path):
    done = CliRunner().invoke(weft, ["run", "--out", str(tmp_path), str(EXAMPLE)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("storage:"))
    end = next(number for number, line in enumerate(lines) if line == "planes")
    page = (ROOT / "docs" / "storage.md").read_text(encoding="utf-8")
    loads, memory = "\n".join(lines[begin:end]).strip().split("\n\nremote memory: ", 1)
    assert loads in page
    assert f"remote memory: {memory}" in page
    assert (tmp_path / "storage-1-operations.csv").exists()
    assert yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["name"] == "storage"


def over(protocol, **given):
    """Run a scenario's storage over a transport."""
    load = {"storage": [3], "clients": [0, 1], "device": QUICK, "access": {"blocks": 64, "reads": 1.0}, **given}
    tree = {"clock": "virtual", "int": False, "fabric": FABRIC, "transport": {"protocol": protocol}, "traffic": [load]}
    return run_scenario(parse_scenario(tree)).of(STORAGE)[0]


@pytest.mark.parametrize("protocol", ["rc", "mrc", "uet"])
def test_what_needs_no_reads_of_memory_runs_over_each_transport(protocol):
    assert over(protocol).commands == 2 * 64
    assert over(protocol, access={"blocks": 64, "reads": 0.5}, block=4096).commands == 2 * 64


def test_writes_beyond_capsules_need_reads_of_memory():
    carriers = ", ".join(carriers_of(("WRITE", "READ")))
    with refused(BadInputError, place="scenario: traffic[0]", valid=carriers, problem="posts READs"):
        over("mrc", access={"blocks": 64, "reads": 0.5})
