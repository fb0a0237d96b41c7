"""Flow sizes, random arrivals, and flows over queue pairs of their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from point_to_point import DELAY_PS, RATE_BPS, PointToPoint

from tests.refusals import refused
from weft.engine import Engine, _core
from weft.traffic.flow_sizes import NAMES, FlowSizes, flow_sizes
from weft.traffic.workload import poisson_flows

FAULTS = {"loss": 0.02, "duplicate": 0.02, "delay_probability": 0.02, "extra_delay_ps": 5 * DELAY_PS}


@pytest.mark.parametrize(
    ("name", "least", "mean", "largest"),
    [
        ("websearch", 1, 1_711_250, 30_000_000),
        ("fb_hadoop", 1, 121_848, 10_000_000),
        ("alibaba_storage", 1, 40_000, 2_000_000),
    ],
)
def test_tables_have_the_published_sizes(name, least, mean, largest):
    sizes = flow_sizes(name)
    assert sizes.mean_bytes == pytest.approx(mean, rel=0.1)
    assert sizes.quantile_bytes([0, 1]).tolist() == [least, largest]


@given(st.sampled_from(NAMES), st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_the_inverse_distribution_rises(name, shares):
    sizes = flow_sizes(name).quantile_bytes(sorted(shares))
    assert np.all(np.diff(sizes) >= 0)


def test_samples_follow_the_table():
    sizes = flow_sizes("websearch")
    drawn = sizes.quantile_bytes(np.random.default_rng(1).random(100_000))
    assert np.mean(drawn) == pytest.approx(sizes.mean_bytes, rel=0.03)
    assert np.mean(drawn <= 200_000) == pytest.approx(0.60, abs=0.01)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0\n10 50 1\n", "line 2: '10 50 1'"),
        ("0 0\n10 50\n", "from 0 to 50"),
        ("0 0\n10 50\n20 50\n30 100\n", "above 50"),
        ("0 0\n10 50\n5 100\n", "10 or more"),
        ("1 100\n", "2 or more points"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path, text, message):
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"mine.*{message}"):
        FlowSizes.from_file(path)
    with refused(ValueError, valid="websearch, fb_hadoop, alibaba_storage", problem="unknown flow sizes 'mine'"):
        flow_sizes("mine")


def test_the_load_is_what_was_asked_for():
    rates = (100 * 10**9, 300 * 10**9)
    sizes = flow_sizes("alibaba_storage")
    flows = poisson_flows(16, rates, sizes, 0.5, 2 * 10**9, seed=7)
    offered_bps = sum(flow.size_bytes for flow in flows) * 8 / 2e-3
    assert offered_bps == pytest.approx(0.5 * 16 * sum(rates), rel=0.05)
    assert np.mean([flow.plane for flow in flows]) == pytest.approx(0.75, abs=0.02)
    assert all(flow.source != flow.destination for flow in flows)
    assert {flow.destination for flow in flows} == set(range(16))
    assert [flow.start_ps for flow in flows] == sorted(flow.start_ps for flow in flows)
    assert flows == poisson_flows(16, rates, sizes, 0.5, 2 * 10**9, seed=7)
    assert flows != poisson_flows(16, rates, sizes, 0.5, 2 * 10**9, seed=8)


def test_arrivals_are_exponential():
    flows = poisson_flows(2, (10**11,), flow_sizes("alibaba_storage"), 1.0, 20 * 10**9, seed=1)
    gaps = np.diff([flow.start_ps for flow in flows if flow.source == 0])
    assert np.std(gaps) == pytest.approx(np.mean(gaps), rel=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"host_count": 1}, {"valid": "2 or more", "problem": "1 hosts"}),
        ({"load": 0}, {"valid": "above 0", "problem": "load of 0"}),
        ({"duration_ps": 0}, {"valid": "above 0", "problem": "workload of 0 ps"}),
    ],
)
def test_senseless_workloads_are_refused(change, message):
    fields = {"host_count": 2, "load": 0.3, "duration_ps": 1000}
    with refused(ValueError, **message):
        poisson_flows(plane_rates_bps=(1,), sizes=flow_sizes("websearch"), seed=0, **(fields | change))


# --- the native generator


class Pair:
    """Two hosts on a link, and a generator of flows on each."""

    def __init__(self, seed=1, **faults):
        self.network = PointToPoint(Engine(seed=seed), 2, **faults)
        addresses = [("02:00:00:00:00:00", "10.0.0.0"), ("02:00:00:00:00:01", "10.0.0.1")]
        ends = [self.network.add_port(rank, *addresses[rank]) for rank in range(2)]
        for (_, link), (far_port, _), far in zip(ends, ends[::-1], self.network.hosts[::-1], strict=True):
            link.connect(far.nic, far_port)
        self.peer_ip = [addresses[1][1], addresses[0][1]]
        self.generators = []
        for rank, host in enumerate(self.network.hosts):
            generator = _core.FlowGenerator(host.nic, host.executor)
            generator.add_port(
                ends[rank][0],
                destination_mac=addresses[1 - rank][0],
                congestion_control="fixed-window",
                line_rate_bps=RATE_BPS,
                base_round_trip_ps=4 * DELAY_PS,
                options={"retransmission_timeout_ps": 20 * DELAY_PS},
            )
            self.generators.append(generator)

    def add(self, flow, source, size_bytes, start_ps):
        numbers = [0x100 + 2 * flow, 0x101 + 2 * flow]
        sink = self.network.hosts[1 - source].nic.register_sink(size_bytes)
        self.generators[source].add_sent(
            flow,
            start_ps,
            0,
            self.peer_ip[source],
            numbers[0],
            numbers[1],
            size_bytes,
            sink.virtual_address,
            sink.rkey,
        )
        self.generators[1 - source].add_received(
            flow, start_ps, 0, self.peer_ip[1 - source], numbers[1], numbers[0], size_bytes
        )

    def run(self):
        for generator in self.generators:
            generator.start(0)
        self.network.engine.run()
        return [generator.status() for generator in self.generators]


@pytest.mark.parametrize("faults", [{}, FAULTS], ids=["clean", "faulty"])
def test_flows_start_in_their_time_and_all_end(faults):
    pair = Pair(**faults)
    flows = [(n % 2, 1 + 5000 * n, (n * 7 % 20) * DELAY_PS) for n in range(40)]
    for number, flow in enumerate(flows):
        pair.add(number, *flow)
    assert [status["state"] for status in pair.run()] == ["finished"] * 2
    for source, generator in enumerate(pair.generators):
        records = generator.records()
        assert sorted(records["flow"]) == [n for n, flow in enumerate(flows) if flow[0] == source]
        for flow, started_ps, finished_ps in zip(
            records["flow"], records["started_ps"], records["finished_ps"], strict=True
        ):
            assert started_ps == flows[flow][2]
            assert finished_ps - started_ps >= 2 * DELAY_PS + flows[flow][1] * 8 * 100
        assert np.all(np.diff(records["finished_ps"]) >= 0)
        assert (records["retransmitted_packets"].sum() > 0) == bool(faults)


def test_queue_pairs_go_with_their_flows():
    pair = Pair()
    for number in range(3):
        pair.add(number, 0, 10_000, number * 1000 * DELAY_PS)
    pair.run()
    # Packets of a flow that ended long ago find no queue pair.
    for host in pair.network.hosts:
        assert host.nic.stats(0)["dropped"]["unknown_queue_pair"] == 0
    again = Pair()
    for number in range(2):
        again.add(0, 0, 10, number * 10_000 * DELAY_PS)
    # The receiver's queue pair of the first flow would still hold the number if it had not been removed.
    assert [status["state"] for status in again.run()] == ["finished"] * 2


def test_a_dead_peer_fails_the_run_with_the_flow_and_the_reason():
    pair = Pair(loss=0.999999)
    pair.add(5, 0, 1000, 0)
    sender, receiver = pair.run()
    assert sender["state"] == "failed"
    assert "flow 5: retry_exceeded (fault: network)" in sender["error"]
    assert receiver["state"] == "running"
    pair.generators[1].cancel()
    assert pair.generators[1].status()["state"] == "cancelled"


def test_senseless_flows_are_refused_by_the_generator():
    pair = Pair()
    generator = pair.generators[0]
    ends = (pair.peer_ip[0], 0x100, 0x101)
    with pytest.raises(ValueError, match="flow 3: port 1"):
        generator.add_received(3, 0, 1, *ends, 10)
    with pytest.raises(ValueError, match="flow 3 of 0 bytes"):
        generator.add_received(3, 0, 0, *ends, 0)
    with pytest.raises(ValueError, match="flow 3 starts at -1 ps"):
        generator.add_received(3, -1, 0, *ends, 10)
    with pytest.raises(ValueError, match="no IPv6 address"):
        generator.add_received(3, 0, 0, "fd00::1", 0x100, 0x101, 10)
    generator.start(0)
    with pytest.raises(RuntimeError, match="started already"):
        generator.start(0)
