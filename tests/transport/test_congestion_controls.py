"""Congestion controls fed by hand, against the formulas of their papers."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    CongestionControl,
    congestion_control_names,
    congestion_parameter_names,
    make_congestion_control,
)
from tests.transport.rdma_pair import DELAY_PS, RATE_BPS, US, cabled_pair

ROUND_TRIP_PS = 10 * US
FRAME_BYTES = 1100
PRODUCT_BYTES = RATE_BPS * ROUND_TRIP_PS // 8 // 10**12


def control(name: str, **parameters: float) -> CongestionControl:
    return make_congestion_control(
        name,
        line_rate_bps=RATE_BPS,
        base_round_trip_ps=ROUND_TRIP_PS,
        frame_bytes=FRAME_BYTES,
        parameters=parameters,
    )


def test_names_and_parameters_are_checked() -> None:
    assert congestion_control_names() == ["dcqcn", "fixed-window", "hpcc", "swift"]
    with pytest.raises(ValueError, match=r"unknown congestion control 'cubic' \(valid: 'dcqcn', "):
        control("cubic")
    with pytest.raises(ValueError, match="'cubic'"):
        congestion_parameter_names("cubic")
    for name in congestion_control_names():
        assert control(name).name == name
        with pytest.raises(ValueError, match=rf"{name}: unknown parameter 'colour' \(valid: '"):
            control(name, colour=1)
        for parameter in congestion_parameter_names(name):
            with pytest.raises(ValueError, match=rf"{name}: {parameter} is -1 \(valid: "):
                control(name, **{parameter: -1})


def test_a_congestion_control_serves_one_queue_pair() -> None:
    with pytest.raises(ValueError, match="serves another queue pair"):
        cabled_pair(congestion_control=control("swift"))


# --- HPCC


class HpccModel:
    """Algorithm 1 of the paper, in exact bytes and seconds."""

    eta, max_stage = 0.95, 0

    def __init__(self) -> None:
        self.t = ROUND_TRIP_PS * 1e-12
        self.limit = PRODUCT_BYTES
        self.w = self.wc = float(PRODUCT_BYTES)
        self.w_ai = PRODUCT_BYTES * (1 - self.eta) / 100
        self.u, self.stage, self.last_update = 1.0, 0, 0
        self.before: list[dict[str, int]] | None = None

    def acknowledge(self, sequence: int, next_sequence: int, hops: list[dict[str, int]]) -> None:
        if self.before is None:
            self.before, self.last_update = hops, next_sequence
            return
        u, tau = 0.0, 0.0
        for now, old in zip(hops, self.before, strict=True):
            passed = (now["timestamp_ns"] - old["timestamp_ns"]) % 2**24 * 1e-9
            sent = (now["tx_units"] - old["tx_units"]) % 2**20 * 128
            bandwidth = RATE_BPS / 8
            used = min(now["queue_cells"], old["queue_cells"]) * 80 / (bandwidth * self.t)
            used += sent / passed / bandwidth
            if used > u:
                u, tau = used, passed
        self.before = hops
        tau = min(tau, self.t)
        self.u = (1 - tau / self.t) * self.u + tau / self.t * u
        update = sequence >= self.last_update
        if self.u >= self.eta or self.stage >= self.max_stage:
            self.w, stage = self.wc / (self.u / self.eta) + self.w_ai, 0
        else:
            self.w, stage = self.wc + self.w_ai, self.stage + 1
        self.w = min(max(self.w, self.limit / 1000), self.limit)
        if update:
            self.stage, self.wc, self.last_update = stage, self.w, next_sequence


HOP_STEPS = st.lists(
    st.tuples(
        st.integers(1, 20_000),  # nanoseconds
        st.integers(0, 1000),  # units of 128 bytes
        st.integers(0, 65_535),  # cells in the queue
    ),
    min_size=2,
    max_size=2,
)


@given(steps=st.lists(HOP_STEPS, min_size=2, max_size=40), ahead=st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_hpcc_follows_algorithm_1(steps: list[list[tuple[int, int, int]]], ahead: int) -> None:
    hpcc, model = control("hpcc"), HpccModel()
    hops = [{"rate_code": 6, "timestamp_ns": 16_777_000, "tx_units": 1_048_000, "queue_cells": 0}] * 2
    assert hpcc.window_bytes == PRODUCT_BYTES
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
        hpcc.on_acknowledgement(
            sequence * US, sequence=sequence, next_sequence=sequence + ahead, telemetry=telemetry
        )
        model.acknowledge(sequence, sequence + ahead, hops)
        assert hpcc.window_bytes == pytest.approx(model.w, abs=1.5)
        assert hpcc.pacing_rate_bps == pytest.approx(8 * model.w / model.t, rel=1e-4)


def test_hpcc_takes_another_path_or_a_long_silence_as_a_new_start() -> None:
    def stack(path: int, timestamp_ns: int, cells: int = 60_000) -> Any:
        hop = {"rate_code": 6, "timestamp_ns": timestamp_ns, "tx_units": 0, "queue_cells": cells}
        return {"echo": True, "hop_count": 1, "path_id": path, "hops": [hop]}

    hpcc = control("hpcc")
    hpcc.on_acknowledgement(0, sequence=0, next_sequence=1, telemetry=stack(1, 0))
    hpcc.on_acknowledgement(US, sequence=1, next_sequence=2, telemetry=stack(2, 1000))
    assert hpcc.window_bytes == PRODUCT_BYTES
    hpcc.on_acknowledgement(9000 * US, sequence=2, next_sequence=3, telemetry=stack(2, 2000))
    assert hpcc.window_bytes == PRODUCT_BYTES
    hpcc.on_acknowledgement(9010 * US, sequence=3, next_sequence=4, telemetry=stack(2, 12_000))
    assert hpcc.window_bytes < PRODUCT_BYTES
    window = hpcc.window_bytes
    hpcc.on_acknowledgement(9020 * US, sequence=4, next_sequence=5)  # no INT: nothing is known
    assert hpcc.window_bytes == window


# --- DCQCN


def test_dcqcn_starts_at_line_rate_and_halves_with_the_first_notification() -> None:
    dcqcn = control("dcqcn")
    assert dcqcn.pacing_rate_bps == RATE_BPS
    assert dcqcn.next_deadline_ps is None
    dcqcn.on_congestion_notification(0)
    assert dcqcn.pacing_rate_bps == RATE_BPS // 2  # alpha is 1
    assert dcqcn.next_deadline_ps == 55 * US
    gain = 1 / 256
    dcqcn.on_congestion_notification(50 * US)
    assert dcqcn.pacing_rate_bps == pytest.approx(RATE_BPS / 2 * (1 - 1 / 2), rel=1e-6)
    # Two of alpha's timers pass before the next: alpha decays twice, the rate recovers twice.
    rate, alpha = RATE_BPS / 4, 1.0
    for _ in range(2):
        rate = (rate + RATE_BPS / 2) / 2
        alpha *= 1 - gain
    dcqcn.on_congestion_notification(50 * US + 110 * US)
    assert dcqcn.pacing_rate_bps == pytest.approx(rate * (1 - alpha / 2), rel=1e-6)


@pytest.mark.parametrize(("by_timer", "by_bytes"), [(8, 0), (0, 8), (8, 8), (5, 5), (6, 2)])
def test_dcqcn_recovers_in_three_stages(by_timer: int, by_bytes: int) -> None:
    dcqcn = control("dcqcn", increase_timer_ps=55 * US, byte_counter_bytes=1000)
    dcqcn.on_congestion_notification(0)
    dcqcn.on_congestion_notification(0)
    rate, target = RATE_BPS / 4, RATE_BPS / 2
    timer = count = 0

    def increase() -> None:
        nonlocal rate, target
        if min(timer, count) > 5:
            target += RATE_BPS / 100
        elif max(timer, count) > 5:
            target += RATE_BPS / 1000
        target = min(target, RATE_BPS)
        rate = (rate + target) / 2

    for step in range(max(by_timer, by_bytes)):
        if step < by_timer:
            timer += 1
            increase()
            dcqcn.on_deadline(timer * 55 * US)
        if step < by_bytes:
            count += 1
            increase()
            dcqcn.on_packet_sent(timer * 55 * US, 1000)
        assert dcqcn.pacing_rate_bps == pytest.approx(rate, rel=1e-9, abs=1)


def test_dcqcn_has_no_timer_when_nothing_is_sent_and_makes_up_for_it() -> None:
    idle, busy = control("dcqcn"), control("dcqcn")
    for each in (idle, busy):
        each.on_congestion_notification(0)
    idle.on_deadline(55 * US)
    assert idle.next_deadline_ps is None
    for time in range(1, 20):
        busy.on_packet_sent(time * 55 * US - 1, 0)
        assert busy.next_deadline_ps == time * 55 * US
        busy.on_deadline(time * 55 * US)
    idle.on_packet_sent(19 * 55 * US, 0)
    assert idle.pacing_rate_bps == busy.pacing_rate_bps
    assert idle.next_deadline_ps == 20 * 55 * US


# --- Swift


def swift_target(window_packets: float, hops: int = 0, hop_ps: int = 0) -> float:
    scale = 5 * ROUND_TRIP_PS / (1 / math.sqrt(0.1) - 1 / math.sqrt(100))
    scaled = scale / math.sqrt(window_packets) - scale / math.sqrt(100)
    return 1.25 * ROUND_TRIP_PS + hops * hop_ps + min(max(scaled, 0), 5 * ROUND_TRIP_PS)


@given(
    delays=st.lists(st.tuples(st.integers(1, 100), st.integers(1, 4), st.integers(0, 6)), max_size=60),
    first=st.floats(0.01, 100),
)
@settings(max_examples=100, deadline=None)
def test_swift_follows_algorithm_1(delays: list[tuple[int, int, int]], first: float) -> None:
    hop_ps = 2 * US
    swift = control("swift", initial_window_packets=first, max_window_packets=200, hop_target_ps=hop_ps)
    window, last_decrease, now = first, 0, 1000 * US
    for delay_us, packets, hops in delays:
        delay = delay_us * US
        target = swift_target(window, hops, hop_ps)
        if abs(delay - target) < 2:
            continue  # rounding decides
        before = window
        if delay < target:
            window += packets / window if window >= 1 else packets
        elif now - last_decrease >= delay:
            window *= max(1 - 0.8 * (delay - target) / delay, 0.5)
        window = min(max(window, 0.001), 200)
        if window < before:
            last_decrease = now
        swift.on_acknowledgement(now, acknowledged_packets=packets, round_trip_ps=delay, hops=hops)
        assert swift.window_bytes == pytest.approx(window * FRAME_BYTES, abs=1.5, rel=1e-6)
        paced = 8 * window * FRAME_BYTES / (delay * 1e-12) if window < 1 else 0
        assert swift.pacing_rate_bps == pytest.approx(paced, rel=1e-4, abs=2)
        now += 7 * US


def test_swift_answers_losses_once_a_round_trip_and_silence_with_the_smallest_window() -> None:
    swift = control("swift", initial_window_packets=64)
    now = 1000 * US
    swift.on_acknowledgement(now, round_trip_ps=ROUND_TRIP_PS)
    window = swift.window_bytes
    swift.on_loss(now, timeout=False)
    assert swift.window_bytes == pytest.approx(window / 2, abs=1)
    swift.on_loss(now + ROUND_TRIP_PS - 1, timeout=False)
    assert swift.window_bytes == pytest.approx(window / 2, abs=1)
    for _ in range(5):
        swift.on_loss(now, timeout=True)
    assert swift.window_bytes == FRAME_BYTES // 1000
    assert DELAY_PS < ROUND_TRIP_PS
