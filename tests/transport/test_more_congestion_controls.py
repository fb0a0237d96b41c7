"""DCTCP, TIMELY, PowerTCP and NSCC fed by hand, against models of what their sources say."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import RATE_BPS, US
from tests.transport.test_congestion_controls import FRAME_BYTES, PRODUCT_BYTES, ROUND_TRIP_PS, control
from weft.engine import make_congestion_control

# --- DCTCP

MARKS = st.lists(st.booleans(), min_size=1, max_size=200)


class DctcpModel:
    """RFC 8257, section 3.3, with windows as in RFC 5681, in packets; a window of data is `ahead` packets."""

    def __init__(self, gain: float) -> None:
        self.gain, self.alpha, self.window, self.threshold = gain, 1.0, 10.0, math.inf
        self.end, self.acknowledged, self.marked = 0, 0, 0

    def acknowledge(self, sequence: int, next_sequence: int, marked: bool) -> None:
        self.acknowledged += 1
        self.marked += marked
        if not marked:
            self.window += 1 if self.window < self.threshold else 1 / self.window
        self.window = min(self.window, 500)
        if sequence < self.end:
            return
        self.alpha = (1 - self.gain) * self.alpha + self.gain * self.marked / self.acknowledged
        if self.marked:
            self.window = self.threshold = max(1.0, self.window * (1 - self.alpha / 2))
        self.end, self.acknowledged, self.marked = next_sequence, 0, 0


@given(marks=MARKS, gain=st.floats(0.01, 1), ahead=st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_dctcp_follows_its_specification(marks: list[bool], gain: float, ahead: int) -> None:
    dctcp, model = control("dctcp", gain=gain, max_window_packets=500), DctcpModel(gain)
    for sequence, marked in enumerate(marks):
        dctcp.on_acknowledgement(
            sequence * US,
            acknowledged_bytes=FRAME_BYTES,
            sequence=sequence,
            next_sequence=sequence + ahead,
            congestion_experienced=marked,
        )
        model.acknowledge(sequence, sequence + ahead, marked)
        assert dctcp.window_bytes == pytest.approx(model.window * FRAME_BYTES, abs=1.5, rel=1e-9)


def test_dctcp_halves_once_for_the_losses_of_a_window_and_starts_again_after_silence() -> None:
    dctcp = control("dctcp")
    assert dctcp.window_bytes == 10 * FRAME_BYTES
    dctcp.on_acknowledgement(0, acknowledged_bytes=FRAME_BYTES, sequence=0, next_sequence=11)
    window = dctcp.window_bytes
    for _ in range(3):
        dctcp.on_loss(US, timeout=False)
    assert dctcp.window_bytes == pytest.approx(window / 2, abs=1)
    dctcp.on_acknowledgement(2 * US, acknowledged_bytes=FRAME_BYTES, sequence=11, next_sequence=20)
    window = dctcp.window_bytes
    dctcp.on_loss(3 * US, timeout=False)
    assert dctcp.window_bytes == pytest.approx(window / 2, abs=1)
    dctcp.on_loss(4 * US, timeout=True)
    assert dctcp.window_bytes == FRAME_BYTES


# --- TIMELY


class TimelyModel:
    """Algorithm 1 of the paper, an update a round trip."""

    low, high = 2.5 * ROUND_TRIP_PS, 25 * ROUND_TRIP_PS
    step = RATE_BPS / 1000

    def __init__(self) -> None:
        self.rate, self.difference, self.before, self.falling = float(RATE_BPS), 0.0, 0, 0

    def update(self, round_trip_ps: int) -> None:
        newest = round_trip_ps - self.before if self.before else 0
        self.before = round_trip_ps
        self.difference = (1 - 0.875) * self.difference + 0.875 * newest
        gradient = self.difference / ROUND_TRIP_PS
        falling = self.low <= round_trip_ps <= self.high and gradient <= 0
        self.falling = self.falling + 1 if falling else 0
        if round_trip_ps < self.low:
            rate = self.rate + self.step
        elif round_trip_ps > self.high:
            rate = self.rate * (1 - 0.8 * (1 - self.high / round_trip_ps))
        elif gradient <= 0:
            rate = self.rate + (5 if self.falling >= 5 else 1) * self.step
        else:
            rate = self.rate * max(0.5, 1 - 0.8 * gradient)
        self.rate = min(max(rate, RATE_BPS / 1000), RATE_BPS)


@given(delays_us=st.lists(st.integers(10, 400), max_size=60))
@settings(max_examples=100, deadline=None)
def test_timely_follows_algorithm_1(delays_us: list[int]) -> None:
    timely, model = control("timely"), TimelyModel()
    assert timely.pacing_rate_bps == RATE_BPS
    for sequence, delay_us in enumerate(delays_us):
        if abs(model.difference) < 1e-3 and model.before:
            model.difference = 0.0
        timely.on_acknowledgement(
            sequence * US, round_trip_ps=delay_us * US, sequence=sequence, next_sequence=sequence + 1
        )
        model.update(delay_us * US)
        assert timely.pacing_rate_bps == pytest.approx(model.rate, rel=1e-6, abs=2)


def test_timely_updates_once_a_round_trip() -> None:
    timely = control("timely")
    timely.on_acknowledgement(0, round_trip_ps=40 * ROUND_TRIP_PS, sequence=0, next_sequence=10)
    rate = timely.pacing_rate_bps
    assert rate < RATE_BPS
    for sequence in range(1, 10):
        timely.on_acknowledgement(US, round_trip_ps=40 * ROUND_TRIP_PS, sequence=sequence, next_sequence=20)
        assert timely.pacing_rate_bps == rate
    timely.on_acknowledgement(US, round_trip_ps=40 * ROUND_TRIP_PS, sequence=10, next_sequence=20)
    assert timely.pacing_rate_bps < rate


def test_timely_answers_losses_once_a_round_trip() -> None:
    timely = control("timely")
    for late_ps in range(0, 8 * US, US):
        timely.on_loss(100 * US + late_ps, timeout=False)
    assert timely.pacing_rate_bps == pytest.approx(RATE_BPS * (1 - 0.8 / 2))
    timely.on_loss(100 * US + ROUND_TRIP_PS, timeout=False)
    assert timely.pacing_rate_bps == pytest.approx(RATE_BPS * (1 - 0.8 / 2) ** 2)


# --- PowerTCP

HOPS = st.lists(st.tuples(st.integers(1, 20_000), st.integers(0, 1000), st.integers(0, 65_535)), min_size=2, max_size=2)


class PowerTcpModel:
    """Algorithm 1 of the paper, in bytes and nanoseconds."""

    def __init__(self) -> None:
        self.tau = ROUND_TRIP_PS / 1000
        self.window = self.old = float(PRODUCT_BYTES)
        self.smooth, self.end = 1.0, 0
        self.before: list[dict[str, int]] | None = None

    def acknowledge(self, sequence: int, next_sequence: int, hops: list[dict[str, int]]) -> None:
        if self.before is not None:
            power, interval = -math.inf, 0
            for now, old in zip(hops, self.before, strict=True):
                passed = (now["timestamp_ns"] - old["timestamp_ns"]) % 2**24
                bandwidth = RATE_BPS / 8e9
                queue, before = 80 * now["queue_cells"], 80 * old["queue_cells"]
                current = (queue - before + 128 * ((now["tx_units"] - old["tx_units"]) % 2**20)) / passed
                normal = current * (queue + bandwidth * self.tau) / (bandwidth**2 * self.tau)
                if normal > power:
                    power, interval = normal, passed
            interval = min(interval, self.tau)
            self.smooth = max(1e-3, (self.smooth * (self.tau - interval) + power * interval) / self.tau)
            window = 0.9 * (self.old / self.smooth + PRODUCT_BYTES / 10) + 0.1 * self.window
            self.window = min(max(window, PRODUCT_BYTES / 1000), PRODUCT_BYTES)
        self.before = hops
        if sequence >= self.end:
            self.old, self.end = self.window, next_sequence


@given(steps=st.lists(HOPS, min_size=2, max_size=40), ahead=st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_powertcp_follows_algorithm_1(steps: list[list[tuple[int, int, int]]], ahead: int) -> None:
    powertcp, model = control("powertcp"), PowerTcpModel()
    assert powertcp.window_bytes == PRODUCT_BYTES
    hops = [{"rate_code": 6, "timestamp_ns": 16_777_000, "tx_units": 1_048_000, "queue_cells": 0}] * 2
    for sequence, step in enumerate(steps):
        hops = [
            {
                "rate_code": 6,
                "timestamp_ns": (hop["timestamp_ns"] + passed) % 2**24,
                "tx_units": (hop["tx_units"] + units) % 2**20,
                "queue_cells": cells,
            }
            for hop, (passed, units, cells) in zip(hops, step, strict=True)
        ]
        telemetry: Any = {"echo": True, "hop_count": 2, "path_id": 7, "hops": hops}
        powertcp.on_acknowledgement(
            sequence * US, sequence=sequence, next_sequence=sequence + ahead, telemetry=telemetry
        )
        model.acknowledge(sequence, sequence + ahead, hops)
        assert powertcp.window_bytes == pytest.approx(model.window, abs=2)


# --- NSCC


class NsccModel:
    """The consortium's simulator (uec.cpp), with this path's constants, a packet an acknowledgement."""

    def __init__(self) -> None:
        self.base, self.target = ROUND_TRIP_PS, ROUND_TRIP_PS
        scale = PRODUCT_BYTES / 150_000
        self.fair = 5 * FRAME_BYTES * scale
        self.proportional = 4 * FRAME_BYTES * scale * self.target / (12 * US)
        self.eta = 0.15 * FRAME_BYTES * scale
        self.fast_gain = 0.25 * scale
        self.most = self.window = 1.5 * PRODUCT_BYTES
        self.mean = self.increase = 0.0
        self.arrived = self.achieved = self.to_ignore = self.ignored = self.undelayed = 0
        self.last_adjust = self.last_decrease = self.adapt_end = 0
        self.fast = self.wanted = False
        self.in_flight = 0

    def bound(self) -> None:
        self.window = min(max(self.window, FRAME_BYTES), self.most)

    def average(self, delay: float, marked: bool) -> None:
        if not marked and delay > self.target:
            delay = self.base / 4
        self.mean = 0.0125 * delay + (1 - 0.0125) * self.mean

    def quick_adapt(self, now: int, loss: bool, marked: bool, delay: float) -> bool:
        done = False
        if self.ignored < self.to_ignore and marked:
            done = True
        elif now > self.adapt_end:
            congested = self.wanted or loss or delay > 4 * self.target
            if self.adapt_end != 0 and congested and self.achieved < self.most / 8:
                self.window = max(self.achieved, FRAME_BYTES)
                self.to_ignore, self.ignored, self.wanted, done = self.in_flight, 0, False, True
            self.achieved = 0
            self.adapt_end = now + self.base + self.target
        if done:
            self.increase, self.arrived = 0.0, 0
        return done

    def acknowledge(self, now: int, round_trip: int, marked: bool, in_flight: int) -> None:
        self.in_flight = in_flight
        self.achieved += FRAME_BYTES
        self.arrived += FRAME_BYTES
        self.ignored += FRAME_BYTES
        self.base = min(self.base, round_trip)
        delay = round_trip - self.base
        self.average(delay, marked)
        if self.quick_adapt(now, False, marked, delay):
            return
        if not marked and delay >= self.target:
            self.increase += self.fair * FRAME_BYTES
        elif not marked:
            self.undelayed = self.undelayed + FRAME_BYTES if delay < US else 0
            self.fast = delay < US and (self.fast or self.undelayed > self.window)
            if self.fast:
                self.window += FRAME_BYTES * self.fast_gain
            else:
                self.increase += self.proportional * FRAME_BYTES * (1 - delay / self.target)
        elif delay >= self.target:
            self.fast, self.undelayed = False, 0
            if self.mean > self.target and now - self.last_decrease > self.base:
                self.window *= max(1 - 0.8 * (self.mean - self.target) / self.mean, 0.5)
                self.last_decrease = now
        self.bound()
        if self.arrived > 8 * FRAME_BYTES or now - self.last_adjust > ROUND_TRIP_PS:
            self.window += self.increase / self.window
            if now - self.last_adjust >= ROUND_TRIP_PS:
                self.window += self.eta
                self.last_adjust = now
            self.increase, self.arrived = 0.0, 0
        self.bound()

    def lose(self, now: int) -> None:
        self.ignored += FRAME_BYTES
        self.in_flight = max(0, self.in_flight - FRAME_BYTES)
        self.average(ROUND_TRIP_PS, True)
        self.wanted = True
        if not self.quick_adapt(now, True, True, 0):
            self.window -= FRAME_BYTES
            self.bound()


NSCC_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ack", "ack", "ack", "ack", "loss"]),
        st.sampled_from([0, 0, 0, 300, 5000, 9999, 15_000, 45_000, 90_000]),  # queueing delay in ns
        st.booleans(),
        st.integers(1, 9000),  # ns since the event before
        st.integers(0, 200),  # frames in flight
        st.integers(1, 6),  # frames lost at once
    ),
    max_size=300,
)


@given(events=NSCC_EVENTS)
@settings(max_examples=100, deadline=None)
def test_nscc_follows_the_consortium_s_simulator(events: list[tuple[str, int, bool, int, int, int]]) -> None:
    nscc, model = control("nscc"), NsccModel()
    assert nscc.window_bytes == int(1.5 * PRODUCT_BYTES)
    now = 0
    for kind, delay_ns, marked, gap_ns, frames, lost in events:
        now += gap_ns * 1000
        if kind == "loss":
            nscc.on_loss(now, timeout=False, lost_bytes=lost * FRAME_BYTES)
            for _ in range(lost):
                model.lose(now)
        else:
            round_trip_ps = ROUND_TRIP_PS + delay_ns * 1000
            nscc.on_acknowledgement(
                now,
                acknowledged_bytes=FRAME_BYTES,
                in_flight_bytes=frames * FRAME_BYTES,
                round_trip_ps=round_trip_ps,
                congestion_experienced=marked,
            )
            model.acknowledge(now, round_trip_ps, marked, frames * FRAME_BYTES)
        assert nscc.window_bytes == pytest.approx(model.window, abs=2, rel=1e-6)


def test_nscc_takes_all_that_is_lost_at_once_off_the_window() -> None:
    """One acknowledgement may tell of several losses: each takes a frame, the last one its own, smaller size."""
    nscc = control("nscc", quick_adapt=0)
    before = nscc.window_bytes
    nscc.on_loss(US, timeout=False, lost_bytes=3 * FRAME_BYTES + 100)
    assert nscc.window_bytes == before - 3 * FRAME_BYTES - 100


@pytest.mark.parametrize(
    ("idle_round_trips", "least", "most"), [(0, PRODUCT_BYTES, math.inf), (100, 0, 5 * FRAME_BYTES)]
)
def test_nscc_counts_idle_time_as_part_of_a_period(idle_round_trips: int, least: float, most: float) -> None:
    """Little has arrived in a period that has just begun; a loss after idle time takes that for all (docs/peers.md)."""
    nscc, now = control("nscc"), 0
    # A period is of two round trips here.
    for _ in range(4 * PRODUCT_BYTES // FRAME_BYTES + 4):
        now += ROUND_TRIP_PS * FRAME_BYTES // PRODUCT_BYTES
        nscc.on_acknowledgement(now, acknowledged_bytes=FRAME_BYTES, round_trip_ps=ROUND_TRIP_PS)
    nscc.on_loss(now + idle_round_trips * ROUND_TRIP_PS, timeout=False, lost_bytes=FRAME_BYTES)
    assert least <= nscc.window_bytes <= most


@pytest.mark.parametrize("rate_gbps", [10, 100, 400, 800])
@pytest.mark.parametrize("name", ["dctcp", "timely", "powertcp", "nscc"])
def test_defaults_fill_an_idle_path_at_any_rate(name: str, rate_gbps: int) -> None:
    """A hundred round trips without a queue leave window and rate large enough for the line."""
    rate_bps, round_trip_ps = rate_gbps * 10**9, 8 * US
    each = make_congestion_control(name, line_rate_bps=rate_bps, base_round_trip_ps=round_trip_ps, frame_bytes=4200)
    product_bytes = rate_bps * round_trip_ps // 8 // 10**12
    sequence = 0
    for round_trip in range(100):
        packets = max(1, product_bytes // 4200)
        for _ in range(packets):
            each.on_acknowledgement(
                round_trip * round_trip_ps,
                acknowledged_bytes=4200,
                round_trip_ps=round_trip_ps,
                sequence=sequence,
                next_sequence=sequence + packets,
            )
            sequence += 1
    assert each.window_bytes >= min(product_bytes, 10 * 4200) - 4200
    assert each.window_bytes >= 0.95 * product_bytes
    assert each.pacing_rate_bps == 0 or each.pacing_rate_bps >= 0.95 * rate_bps


# --- a window beside a rate


@pytest.mark.parametrize("name", ["dcqcn", "timely"])
def test_a_window_may_follow_the_rate(name: str) -> None:
    follows = control(name, window_follows_rate=1)
    assert follows.window_bytes == PRODUCT_BYTES
    rates = {follows.pacing_rate_bps}
    for late_ps in range(0, 40 * ROUND_TRIP_PS, ROUND_TRIP_PS):
        follows.on_congestion_notification(late_ps)
        follows.on_loss(late_ps, timeout=False)
        rates.add(follows.pacing_rate_bps)
        share = follows.pacing_rate_bps / RATE_BPS
        assert follows.window_bytes == pytest.approx(max(1, PRODUCT_BYTES * share), abs=1)
    assert len(rates) > 5
    half = control(name, window_follows_rate=1, window_bytes=PRODUCT_BYTES // 2)
    assert half.window_bytes == PRODUCT_BYTES // 2


@pytest.mark.parametrize("name", ["dcqcn", "timely"])
def test_a_window_is_none_or_fixed_by_default(name: str) -> None:
    assert control(name).window_bytes == 2**64 - 1
    fixed = control(name, window_bytes=20_000)
    fixed.on_congestion_notification(US)
    fixed.on_loss(US, timeout=False)
    assert fixed.window_bytes == 20_000
