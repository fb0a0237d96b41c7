"""Training with a parameter server, run: closed forms of steps, what results and pages have, what is refused."""

import json

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import BadInputError, CheckFailedError
from weft.jobs.digits_mlp import DigitsMlp
from weft.jobs.parameter_server import ParameterServerPlan, all_reduce_job, parameter_server_job
from weft.jobs.parameter_server.convergence import convergence
from weft.jobs.parameter_server.replay import replay
from weft.jobs.parameter_server.step_parts import step_parts
from weft.paths import ROOT
from weft.report.page import report_page
from weft.report.run_directory import RunDirectory
from weft.results.parameter_server_model import HistogramResult
from weft.results.parameter_servers import PARAMETER_SERVERS
from weft.results.results_file import read_results
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.traffic.header_sizes import IMMEDIATE, RETH, overhead_bytes

PAGE = ROOT / "docs" / "parameter-server.md"
FABRIC = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 9, "host_rate": "100Gb/s", "delay": "1us"}
TRAINING = {
    "parameter_server": 2,
    "workers": 4,
    "mlp": {"hidden": 16, "batch": 16, "target_loss": 2.0},
    "steps": 12,
    "compute": "20us",
    "jitter": 0.4,
    "stragglers": {3: 2},
}
SIZED = {"parameter_server": 1, "workers": 8, "parameters": "1MiB", "steps": 4, "compute": "1us"}
US = 10**6
RATE_BPS = 100 * 10**9


def scenario(*items, seed=1, scheduling=None, **fabric):
    tree = {"clock": "virtual", "seed": seed, "fabric": FABRIC | fabric, "traffic": list(items)}
    return parse_scenario(tree | ({"scheduling": scheduling} if scheduling else {}))


def results(*items, **options):
    return run_scenario(scenario(*items, **options)).of(PARAMETER_SERVERS)


def star(hosts: int):
    return topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=hosts, host_rate_bps=RATE_BPS)


def frame_ps(fabric: Fabric, payload_bytes: int) -> int:
    """Return how long a packet is on a link."""
    around_bytes = overhead_bytes(fabric.options.ip_version, fabric.options.int_telemetry)
    return (around_bytes + payload_bytes) * 8 * 10**12 // RATE_BPS


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("size_bytes", [64 << 10, 1 << 20])
def test_a_synchronous_step_on_an_idle_fabric_takes_what_its_closed_form_says(workers, size_bytes):
    """Compute, an incast of n gradients over the server's link, updates, n weights out of it: to the picosecond."""
    compute_ps, delays_ps = 20 * US, 2 * US
    plan = ParameterServerPlan(1, workers, size_bytes, 3, compute_ps)
    made = parameter_server_job(plan)
    with Fabric(star(workers + 1), clock="virtual") as fabric:
        times = made.times(fabric.run_job(made.job).times)
        mtu = fabric.options.mtu_bytes
        packet_ps, first_ps, last_ps = (frame_ps(fabric, each) for each in (mtu, RETH + mtu, mtu + IMMEDIATE))
    message_ps = (size_bytes // mtu - 2) * packet_ps + first_ps + last_ps
    # Packets of all workers alternate. The first is serialised twice; behind it the server's link is never idle.
    arrived_ps = compute_ps + delays_ps + first_ps + workers * message_ps
    # The gradients are there one last packet apart, and are added one after the other; then the sum is.
    added_ps = arrived_ps - (workers - 1) * last_ps + (workers + 1) * plan.update_ps(size_bytes)
    # A lone worker's link is busy behind the first packet, which is longer; several workers' links are not.
    pulled_ps = added_ps + delays_ps + workers * message_ps + (last_ps if workers > 1 else first_ps)
    ends_ps = times.pulled_ps.max(axis=(0, 2))
    assert ends_ps[0] == pulled_ps
    # Weights arrive one packet apart, so later steps begin that much apart. Their incasts begin before the last worker
    # has computed, and gradients arrive further apart, so that some are added while others arrive.
    later_ps = ends_ps[1] - ends_ps[0]
    assert ends_ps[2] - ends_ps[1] == later_ps
    hidden_ps = (workers - 1) * (3 * packet_ps + plan.update_ps(size_bytes))
    assert pulled_ps - hidden_ps <= later_ps <= pulled_ps
    assert (later_ps == pulled_ps) == (workers == 1)


def test_servers_and_a_ring_take_what_their_links_carry():
    """Over 8 workers m servers take 2·8/m·S over a link, servers beside workers and a ring 2·7/8·S; S is 84 µs."""
    items = [SIZED | {"parameter_server": servers, "memory_bandwidth_gb_per_s": 1e6} for servers in (1, 2, 4)]
    items += [SIZED | {"parameter_server": 8, "colocated": True, "memory_bandwidth_gb_per_s": 1e6}]
    items += [SIZED | {"mode": "all-reduce", "memory_bandwidth_gb_per_s": 1e6}]
    found = results(*items, hosts_per_leaf=12)
    link_us = (1 << 20) * 8 / 100e9 * 1e6
    ideal_us = [2 * 8 / servers * link_us for servers in (1, 2, 4)] + [2 * 7 / 8 * link_us] * 2
    for each, expected_us in zip(found, ideal_us, strict=True):
        # Headers take a tenth; latency, and the ends of messages, which do not overlap, a few microseconds.
        assert 1.1 * expected_us < each.step_ps / US - 1 < 1.1 * expected_us + 40
    assert [each.servers for each in found] == [1, 2, 4, 8, 0]
    rows = page_rows("| servers |")
    measured = [f"{each.step_ps / US - 1:.1f}" for each in found]
    assert [row[-1] for row in rows] == measured
    assert [row[-2] for row in rows] == [f"{each:.1f}" for each in ideal_us]


def page_rows(heading: str) -> list[list[str]]:
    """Return the cells of a table of the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(heading)) + 2
    rows = []
    while lines[first].startswith("|"):
        rows.append([cell.strip() for cell in lines[first].strip("|").split("|")])
        first += 1
    return rows


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs every mode, saved."""
    pytest.importorskip("sklearn")
    modes = [
        {},
        {"mode": "asynchronous", "staleness": 1},
        {"mode": "asynchronous"},
        {"mode": "all-reduce"},
        {"colocated": True},
    ]
    result = run_scenario(scenario(*(TRAINING | mode for mode in modes)))
    directory = tmp_path_factory.mktemp("parameter-server")
    result.save(directory)
    return result.of(PARAMETER_SERVERS), directory


def test_results_are_read_back_as_they_were(ran):
    found, directory = ran
    assert read_results(directory / "results.json").of(PARAMETER_SERVERS) == found
    written = json.loads((directory / "results.json").read_text())["parameter_servers"][0]
    assert written["step_ps"] == found[0].step_ps
    assert (directory / "parameter-server-0-operations.csv").exists()


def test_modes_differ_as_they_should(ran):
    synchronous, bounded, free, reduced, colocated = ran[0]
    names = [each.mode for each in ran[0]]
    assert names == ["synchronous", "staleness 1", "asynchronous", "all-reduce (ring)", "synchronous"]
    assert synchronous.clock_lags == synchronous.update_staleness == HistogramResult([0], [4 * 12 * 2], 0, 0)
    assert bounded.clock_lags.largest == 1 < free.clock_lags.largest
    assert sum(free.clock_lags.counts) == 4 * 12 * 2
    assert free.part_us("wait") == 0 < bounded.part_us("wait") < synchronous.part_us("wait")
    assert free.step_ps < bounded.step_ps < synchronous.step_ps
    # The slowest worker ends the run; the others' gradients come sooner where they do not wait for it.
    rates = [each.gradients_per_s_at_work for each in (free, bounded, synchronous)]
    assert rates == sorted(rates, reverse=True)
    assert free.gradients_per_s_at_work > 1.2 * free.gradients_per_s
    assert reduced.clock_lags is None
    assert reduced.link_share == []
    for each in ran[0]:
        assert each.gradients_per_s == pytest.approx(4 * 12 / each.time_ps * 1e12)
        assert each.gradients_per_s <= each.gradients_per_s_at_work
        assert [sum(values) for values in zip(*each.parts_ps.values(), strict=True)] == each.worker_ps
        assert max(each.worker_ps) <= each.time_ps
        assert sum(each.critical_path.parts_ps.values()) == each.time_ps
        assert each.part_us("compute") == pytest.approx(synchronous.part_us("compute"))
    # Three of four gradients of a server on a worker's rank come from other hosts.
    for each, workers in ((synchronous, 4), (colocated, 3)):
        for share, shard_bytes in zip(each.link_share, (2420, 2420), strict=True):
            assert share == pytest.approx(workers * 12 * shard_bytes * 8 / (100e9 * each.time_ps / 1e12))


def test_synchronous_training_comes_to_what_data_parallel_training_does(ran):
    synchronous, _, _, reduced, colocated = (each.convergence for each in ran[0])
    assert synchronous.losses == pytest.approx(reduced.losses, rel=1e-5)
    assert colocated.losses == pytest.approx(reduced.losses, rel=1e-5)
    assert synchronous.target_steps == reduced.target_steps


def test_all_modes_learn(ran):
    for each in ran[0]:
        found = each.convergence
        assert found.losses[0] > 2.2 > 2.0 > found.losses[-1]
        assert found.target_ps == found.times_ps[found.target_steps] > 0
        assert not found.diverged


def test_the_page_has_the_losses_and_what_steps_consist_of(ran):
    pytest.importorskip("plotly")
    page = report_page(RunDirectory.read(ran[1]))
    titles = (
        "Loss against time",
        "Loss against steps",
        "Steps with a parameter server",
        "Clock lag of weights",
    )
    for title in (*titles, "Staleness of updates", "Workers of 1 synchronous", "Timeline of 3 asynchronous"):
        assert title in page
    assert "5 synchronous" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 2}, {"place": "results.json", "problem": "of 2 workers"}),
        ({"link_share": []}, {"place": "results.json", "problem": "link_share: 0 shares of 2"}),
        (
            {"clock_lags": {"values": [1], "counts": [], "mean": 1, "largest": 1}},
            {"place": "results.json", "problem": "clock_lags: values and counts"},
        ),
        (
            {"clock_lags": {"values": [1], "counts": [0], "mean": 1, "largest": 1}},
            {"place": "results.json", "problem": "counts: has a 0"},
        ),
        ({"update_staleness": None}, {"place": "results.json", "problem": "update_staleness: is null with"}),
        ({"steps": 0}, {"place": "results.json", "problem": "workers: 4 with 0 steps"}),
        ({"time_ps": 0}, {"place": "results.json", "problem": "time_ps: 0 (valid: 1 and more)"}),
    ],
)
def test_damaged_results_are_refused(ran, tmp_path, change, message):
    tree = json.loads((ran[1] / "results.json").read_text())
    tree["parameter_servers"][0] |= change
    (tmp_path / "results.json").write_text(json.dumps(tree))
    with refused(BadInputError, **message):
        read_results(tmp_path / "results.json")


def test_runs_follow_the_seed():
    first, again, other = (results(TRAINING | {"mode": "asynchronous"}, seed=seed)[0] for seed in (1, 1, 2))
    assert first == again
    assert first.worker_ps != other.worker_ps
    assert first.convergence.losses != other.convergence.losses


def test_it_runs_beside_other_traffic():
    (alone,) = results(SIZED)
    incast = {"incast": "h8", "bytes_per_sender": "4MiB"}
    together, *_ = results({"together": [SIZED, incast]})
    assert together.step_ps > 1.2 * alone.step_ps
    even = TRAINING | {"stragglers": {}}
    first, second = results(
        {
            "together": [
                even | {"workers": 2},
                even | {"workers": 3, "ranks": [8, 7, 6, 5, 4], "at": "5us"},
            ]
        }
    )
    assert (first.workers, second.workers) == (2, 3)


@pytest.mark.parametrize(("mode", "kinds"), [("synchronous", ("push", "pull")), ("all-reduce", ("all-reduce",))])
def test_traffic_in_a_class_of_its_own_passes_other_traffic(mode, kinds):
    """Its class goes first at each port; congestion control, which sees the load of all, holds it back a little."""
    training = SIZED | {"mode": mode}
    beside = [{"incast": "h0", "bytes_per_sender": "4MiB"}, {"incast": "h8", "bytes_per_sender": "4MiB"}]
    (alone,) = results(training)
    together, apart = (
        results({"together": [each, *beside]}, scheduling={"classes": [5]})[0]
        for each in (training, training | {"classes": dict.fromkeys(kinds, 5)})
    )
    assert apart.step_ps - alone.step_ps < (together.step_ps - alone.step_ps) / 2


def test_a_run_may_take_as_long_as_the_slowest_of_each_step():
    """Workers take turns at being the slowest: all steps last 6,000 s longer than any worker computes."""
    varied = SIZED | {"parameters": "4KiB", "workers": 2, "compute": "10s", "jitter": 2, "steps": 200}
    item = scenario(varied).traffic[0]
    plan = item.plan(seed=1)
    longest_ps = max(int(plan.compute_times_ps(worker).sum()) for worker in range(2))
    assert plan.computing_ps > longest_ps + 6_000 * 10**12
    (found,) = results(varied)
    assert found.time_ps > plan.computing_ps


def test_a_run_fails_after_its_timeout():
    slow = SIZED | {"parameters": "4MiB", "steps": 1}
    assert results(slow, host_rate="100Mb/s")[0].time_ps > 10**12
    with refused(CheckFailedError, problem="did not finish within 1.0"):
        results(slow | {"timeout": 1}, host_rate="100Mb/s")


def test_the_api_does_the_same_as_a_scenario():
    pytest.importorskip("sklearn")
    (found,) = results(TRAINING | {"jitter": 0})
    model = DigitsMlp(4, 1, 16, 16)
    plan = ParameterServerPlan(2, 4, found.parameter_bytes, 12, 20 * US, stragglers={3: 2.0})
    made = parameter_server_job(plan)
    with Fabric(star(9), clock="virtual") as fabric:
        times = made.times(fabric.run_job(made.job).times)
    assert {name: values.sum(axis=1).tolist() for name, values in step_parts(times).items()} == found.parts_ps
    assert convergence(replay(times, plan, model, 0.5), model, 12).losses == found.convergence.losses


def test_an_all_reduce_of_workers_is_the_collective():
    """Without jitter a step is the computation, the all-reduce and the update."""
    plan = ParameterServerPlan(1, 4, 1 << 18, 1, 20 * US, "all-reduce")
    made = all_reduce_job(plan)
    with Fabric(star(4), clock="virtual") as fabric:
        duration_ps = fabric.run_job(made.job).duration_ps
        alone = fabric.run(CollectiveRequest("allreduce", 1 << 18, "ring")).result
    assert duration_ps == pytest.approx(20 * US + alone.time_ps + plan.update_ps(1 << 18), rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": "1MiB"}, r"traffic\[0\]: has both of parameters and mlp"),
        ({"mlp": None}, "has neither of parameters and mlp"),
        ({"mlp": None, "parameters": "5B"}, r"traffic\[0\].parameters: 5 B \(valid: a multiple of 4\)"),
        (
            {"parameter_server": 6},
            r"workers: 4 with 6 servers need 10 ranks on a fabric of 9 \(valid: up to 9 ranks\)",
        ),
        ({"mode": "stale"}, "mode"),
        ({"staleness": 2}, r"staleness: 2 of mode synchronous"),
        ({"mode": "all-reduce", "staleness": 2}, r"staleness: 2 of mode all-reduce"),
        ({"stragglers": {4: 2}}, r"stragglers: worker 4 \(valid: 0 to 3\)"),
        ({"ranks": [0, 1]}, "2 distinct,? .*for a job of 6"),
        ({"ranks": [0, 1, 2, 3, 4, 9]}, r"ranks: rank 9 \(valid: 0 to 8\)"),
        (
            {"mode": "all-reduce", "algorithm": "in-network"},
            "algorithm: .* the network reduces nothing of it",
        ),
        ({"mode": "all-reduce", "algorithm": "direct"}, "algorithm"),
        ({"steps": 10_001}, r"steps: 10001 is out of range"),
        (
            {"workers": 21, "steps": 10_000},
            r"steps: 10000, which send 420000 gradients \(valid: up to 9523\)",
        ),
        ({"workers": 2000}, r"workers: 2000 share 1797 images \(valid: up to 1797\)"),
        ({"mlp": {"learning_rate": 0}}, "learning_rate"),
        ({"classes": {"pul": 3}}, r"traffic\[0\].classes: no kind of traffic 'pul'; did you mean 'pull'"),
        ({"classes": {"pull": 3}, "mode": "all-reduce"}, r"'pull'; valid: all-reduce"),
        ({"classes": {"pull": 5}}, r"classes.pull.*class 5 of data apart"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    tree = {key: value for key, value in (TRAINING | change).items() if value is not None}
    with pytest.raises(BadInputError, match=message):
        run_spec(scenario(tree))


@pytest.mark.mininet
def test_both_clocks_train_alike():
    """Computations take the same times, so synchronous training sees the same weights; messages are some µs later."""
    pytest.importorskip("sklearn")
    few = TRAINING | {"workers": 2, "parameter_server": 1, "stragglers": {}, "steps": 4, "compute": "200us"}
    fabric = FABRIC | {"hosts_per_leaf": 3, "host_rate": "10Gb/s"}
    tree = {"fabric": fabric, "traffic": [few, few | {"mode": "asynchronous", "staleness": 1}]}
    real, virtual = (
        run_scenario(parse_scenario(tree | clock)).of(PARAMETER_SERVERS)
        for clock in ({"clock": "real", "dilation": 1000}, {"clock": "virtual"})
    )
    assert real[0].convergence.losses == pytest.approx(virtual[0].convergence.losses, rel=1e-5)
    for own, other in zip(real, virtual, strict=True):
        assert own.part_us("compute") == pytest.approx(other.part_us("compute"), rel=0.01)
        assert own.clock_lags.largest <= 1
        assert sum(own.update_staleness.counts) == 2 * 4
        assert own.convergence.losses[-1] < own.convergence.losses[0]
