"""Congestion controls fed by hand, against the formulas of their papers."""

import math
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.rdma_pair import DELAY_PS, RATE_BPS, US, cabled_pair
from weft.engine import (
    CongestionControl,
    congestion_control_kind,
    congestion_control_names,
    make_congestion_control,
)

ROUND_TRIP_PS = 10 * US
FRAME_BYTES = 1100
PRODUCT_BYTES = RATE_BPS * ROUND_TRIP_PS // 8 // 10**12


def control(name: str, preset: str = "", **parameters: float) -> CongestionControl:
    return make_congestion_control(
        name,
        line_rate_bps=RATE_BPS,
        base_round_trip_ps=ROUND_TRIP_PS,
        frame_bytes=FRAME_BYTES,
        parameters=parameters,
        preset=preset,
    )


def test_names_and_parameters_are_checked() -> None:
    assert {"dcqcn", "fixed-window", "hpcc", "swift"} <= set(congestion_control_names())
    with pytest.raises(ValueError, match=r"unknown congestion control 'cubic' \(valid: .*'dcqcn'"):
        control("cubic")
    with pytest.raises(ValueError, match="'cubic'"):
        congestion_control_kind("cubic")
    for name in congestion_control_names():
        assert control(name).name == name
        with pytest.raises(ValueError, match=rf"{name}: unknown parameter 'colour' \(valid: '"):
            control(name, colour=1)
        for parameter in congestion_control_kind(name).parameters:
            with pytest.raises(ValueError, match=rf"{name}: {parameter.name} is -1 \(valid: "):
                control(name, **{parameter.name: -1})


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
        hpcc.on_acknowledgement(sequence * US, sequence=sequence, next_sequence=sequence + ahead, telemetry=telemetry)
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


def sprayed_hpcc() -> CongestionControl:
    return make_congestion_control(
        "hpcc", line_rate_bps=RATE_BPS, base_round_trip_ps=ROUND_TRIP_PS, frame_bytes=FRAME_BYTES, sprayed=True
    )


class Path:
    """A path of one link: each acknowledgement comes a microsecond later, with the link so full."""

    def __init__(self, number: int, utilisation: float) -> None:
        self.number, self.utilisation = number, utilisation
        self.timestamp_ns = self.tx_units = 0

    def stack(self, passed_ns: int = 1000) -> Any:
        self.timestamp_ns += passed_ns
        self.tx_units += round(self.utilisation * RATE_BPS * passed_ns / 8e9 / 128)
        hop = {
            "rate_code": 6,
            "timestamp_ns": self.timestamp_ns % 2**24,
            "tx_units": self.tx_units % 2**20,
            "queue_cells": 0,
        }
        return {"echo": True, "hop_count": 1, "path_id": self.number, "hops": [hop]}


def window_after(hpcc: CongestionControl, stacks: Iterable[Any]) -> int:
    for sequence, stack in enumerate(stacks):
        hpcc.on_acknowledgement(sequence * US, sequence=sequence, next_sequence=sequence + 10, telemetry=stack)
    return hpcc.window_bytes


@pytest.mark.parametrize("others", [1, 3, 15])
def test_sprayed_hpcc_follows_its_fullest_path(others: int) -> None:
    """As on the fullest path alone; with each path's stamps taken for the next one's it would not move at all."""
    alone = window_after(sprayed_hpcc(), (path.stack() for path in [Path(1, 0.99)] * 200))
    full, idle = Path(1, 0.99), [Path(2 + number, 0.2) for number in range(others)]
    turns = [full, *idle] * (200 // (1 + others))
    among = window_after(sprayed_hpcc(), (path.stack() for path in turns))
    assert among == pytest.approx(alone, rel=0.1)
    assert among < PRODUCT_BYTES
    without = window_after(sprayed_hpcc(), (path.stack() for path in idle * 50))
    assert without == PRODUCT_BYTES


def test_sprayed_hpcc_forgets_a_path_that_no_packet_takes() -> None:
    hpcc = sprayed_hpcc()
    full, idle = Path(1, 1.5), Path(2, 0.2)
    assert window_after(hpcc, (path.stack() for path in [full, idle] * 20)) < PRODUCT_BYTES / 2
    for sequence in range(40, 120):
        hpcc.on_acknowledgement(sequence * US, sequence=sequence, next_sequence=sequence + 10, telemetry=idle.stack())
    assert hpcc.window_bytes == PRODUCT_BYTES


def test_sprayed_hpcc_passes_over_what_no_link_can_have_sent() -> None:
    """Acknowledgements overtake each other on other ways back, and parallel links share a path's number."""
    first, second = Path(1, 0.6), Path(1, 0.6)
    second.tx_units = 500_000
    parallel = (path.stack() for path in [first, second] * 40)
    assert window_after(sprayed_hpcc(), parallel) == PRODUCT_BYTES
    path = Path(1, 0.6)
    stacks = [path.stack() for _ in range(80)]
    for early in range(0, 80, 2):
        stacks[early], stacks[early + 1] = stacks[early + 1], stacks[early]
    assert window_after(sprayed_hpcc(), stacks) == PRODUCT_BYTES


# --- DCQCN


def test_dcqcn_starts_at_line_rate_and_halves_with_the_first_notification() -> None:
    dcqcn = control("dcqcn", "paper-2015")
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
    dcqcn = control("dcqcn", "paper-2015", increase_timer_ps=55 * US, byte_counter_bytes=1000)
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
    idle, busy = control("dcqcn", "paper-2015"), control("dcqcn", "paper-2015")
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


NIC_CUT_PS = 4 * US
NIC_INCREASE_PS = 300 * US


class NicDcqcn:
    """HPCC's simulator (rdma-hw.cc, "Mellanox's version of DCQCN"), its timers run one by one."""

    def __init__(self, gain: float, additive: float, hyper: float, least: float) -> None:
        self.gain, self.additive, self.hyper, self.least = gain, additive, hyper, least
        self.rate = self.target = float(RATE_BPS)
        self.alpha, self.stage = 1.0, 0
        self.first_ps: int | None = None
        self.increase_ps: int | None = None
        self.for_alpha = self.for_cut = False

    def notify(self, now_ps: int) -> None:
        self.for_alpha = self.for_cut = True
        if self.first_ps is None:
            self.first_ps, self.for_alpha = now_ps, False

    def tick(self, now_ps: int) -> None:
        """What a whole microsecond after the first notification brings."""
        if self.first_ps is None or now_ps == self.first_ps:
            return
        if self.increase_ps == now_ps:
            self.increase_ps += NIC_INCREASE_PS
            if self.stage >= 1:
                self.target = min(RATE_BPS, self.target + (self.additive if self.stage == 1 else self.hyper))
            self.rate = (self.rate + self.target) / 2
            self.stage += 1
        self.alpha = (1 - self.gain) * self.alpha + (self.gain if self.for_alpha else 0)
        self.for_alpha = False
        if (now_ps - self.first_ps) % NIC_CUT_PS == 0 and self.for_cut:
            if self.stage > 0:
                self.target = self.rate
            self.rate = max(self.least, self.rate * (1 - self.alpha / 2))
            self.stage, self.for_cut, self.increase_ps = 0, False, now_ps + NIC_INCREASE_PS


@given(
    preset=st.sampled_from(["hpcc-comparison", "connectx"]),
    gaps_us=st.lists(st.sampled_from([1, 2, 3, 5, 40, 299, 310, 700, 1900]), min_size=1, max_size=25),
)
@settings(max_examples=60, deadline=None)
def test_dcqcn_of_adapters_follows_their_clocks(preset: str, gaps_us: list[int]) -> None:
    comparison = preset == "hpcc-comparison"
    model = (
        NicDcqcn(1 / 256, RATE_BPS / 5000, RATE_BPS / 500, RATE_BPS / 100)
        if comparison
        else NicDcqcn(5 / 1024, 5e6, 50e6, 1e6)
    )
    dcqcn = control("dcqcn", preset)
    notified, at_us = set(), 10
    for gap_us in gaps_us:
        notified.add(at_us)
        at_us += gap_us
    for now_us in range(10, at_us):
        now_ps = now_us * US
        model.tick(now_ps)
        if dcqcn.next_deadline_ps is not None and dcqcn.next_deadline_ps <= now_ps:
            dcqcn.on_deadline(now_ps)
        if now_us in notified:
            model.notify(now_ps)
            dcqcn.on_congestion_notification(now_ps)
        dcqcn.on_packet_sent(now_ps, 1000)
        assert dcqcn.pacing_rate_bps == pytest.approx(model.rate, rel=1e-6, abs=2)


def test_dcqcn_of_adapters_cuts_once_in_four_microseconds_and_keeps_its_target() -> None:
    """The paper's cuts twice and aims at half the line rate; an adapter's aims at its rate before both cuts."""
    rates = {}
    for preset in ("paper-2015", "connectx"):
        dcqcn = control("dcqcn", preset, increase_timer_ps=300 * US)
        for now_ps in (0, US, 2 * US, 3 * US, 5 * US):
            dcqcn.on_congestion_notification(now_ps)
        for deadline_ps in (4 * US, 8 * US):
            dcqcn.on_deadline(deadline_ps)
        cut_bps = dcqcn.pacing_rate_bps
        for stage in range(1, 6):
            dcqcn.on_packet_sent(stage * 299 * US, 1000)
            dcqcn.on_deadline(8 * US + stage * 300 * US)
        rates[preset] = (cut_bps, dcqcn.pacing_rate_bps)
    assert rates["paper-2015"][0] < RATE_BPS / 30
    assert rates["connectx"][0] == pytest.approx(RATE_BPS / 4, rel=0.05)
    assert rates["paper-2015"][1] < RATE_BPS / 10
    assert rates["connectx"][1] > 0.95 * RATE_BPS


def test_presets_name_their_sources_and_what_they_know() -> None:
    presets = {preset.name: preset for preset in congestion_control_kind("dcqcn").presets}
    assert set(presets) == {"hpcc-comparison", "connectx", "paper-2015"}
    assert all(preset.source for preset in presets.values())
    assert [presets[name].cnp_interval_ps // US for name in ("connectx", "paper-2015")] == [4, 50]
    default = congestion_control_kind("dcqcn").presets[0].name
    assert default in ("hpcc-comparison", "connectx")
    assert congestion_control_kind("swift").presets == []
    with pytest.raises(ValueError, match=r"dcqcn: unknown preset 'paper' \(valid: '.*', 'paper-2015'\)"):
        control("dcqcn", "paper")
    with pytest.raises(ValueError, match="swift has no presets"):
        control("swift", "paper-2015")


# --- Swift


def swift_target(window_packets: float, hops: int = 0, hop_ps: int = 0) -> float:
    """Of section 3.5, with the range that a largest window of 200 packets gives."""
    scale = 5 * ROUND_TRIP_PS / (1 / math.sqrt(0.1) - 1 / math.sqrt(200))
    scaled = scale / math.sqrt(window_packets) - scale / math.sqrt(200)
    return 1.25 * ROUND_TRIP_PS + hops * hop_ps + min(max(scaled, 0), 5 * ROUND_TRIP_PS)


@given(
    delays=st.lists(st.tuples(st.integers(1, 100), st.integers(1, 4), st.integers(0, 6)), max_size=60),
    first=st.floats(0.01, 100),
    slow_start=st.booleans(),
    scales_windows=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_swift_follows_algorithm_1(
    delays: list[tuple[int, int, int]], first: float, slow_start: bool, scales_windows: bool
) -> None:
    """From slow start on or without it; windows scaled to a round trip of the target, or as the paper has them."""
    hop_ps = 2 * US
    as_the_paper = {} if scales_windows else {"flow_scaling_round_trip_ps": 0}
    swift = control(
        "swift",
        initial_window_packets=first,
        max_window_packets=200,
        hop_target_ps=hop_ps,
        slow_start=slow_start,
        **as_the_paper,
    )
    window, last_decrease, now = first, 0, 1000 * US
    for delay_us, packets, hops in delays:
        delay = delay_us * US
        target = swift_target(window * (1.25 * ROUND_TRIP_PS / delay if scales_windows else 1), hops, hop_ps)
        if abs(delay - target) < 2:
            continue  # rounding decides
        before = window
        slow_start = slow_start and delay < target
        if delay < target:
            window += packets / window if window >= 1 and not slow_start else packets
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


def test_swift_s_fast_recovery_ends_the_silence() -> None:
    """Algorithm 1: retransmit_cnt is 0 after an acknowledgement and after fast recovery."""
    swift = control("swift", initial_window_packets=64)
    now = 1000 * US
    for timeout in (True, True, True, True, False, True):
        swift.on_loss(now, timeout=timeout)
    assert swift.window_bytes == FRAME_BYTES  # halved six times
    for _ in range(4):
        swift.on_loss(now, timeout=True)
    assert swift.window_bytes == FRAME_BYTES // 1000


def test_swift_starts_with_ten_packets_and_doubles_them_until_the_target_or_a_loss() -> None:
    def after_a_window(*, late: bool = False, lost: bool = False) -> float:
        swift = make_congestion_control(
            "swift",
            line_rate_bps=RATE_BPS,
            base_round_trip_ps=100 * ROUND_TRIP_PS,
            frame_bytes=FRAME_BYTES,
        )
        assert swift.window_bytes == 10 * FRAME_BYTES
        if lost:
            swift.on_loss(1000 * US, timeout=False)
        round_trip_ps = 1000 * ROUND_TRIP_PS if late else ROUND_TRIP_PS
        swift.on_acknowledgement(10**6 * US, acknowledged_packets=10, round_trip_ps=round_trip_ps)
        return swift.window_bytes / FRAME_BYTES

    assert after_a_window() == pytest.approx(20)
    assert after_a_window(lost=True) == pytest.approx(5 + 10 / 5)
    assert after_a_window(late=True) < 10
    # Never more than fills the path.
    assert make_congestion_control(
        "swift", line_rate_bps=10**9, base_round_trip_ps=US, frame_bytes=FRAME_BYTES
    ).window_bytes == pytest.approx(FRAME_BYTES, abs=1)


NEAR_PS, HOP_PS = 4 * US, 2 * US


def swift_in_three_tiers(**parameters: float) -> CongestionControl:
    """Swift where the nearest pair has one router between it and the farthest five."""
    return make_congestion_control(
        "swift",
        line_rate_bps=RATE_BPS,
        base_round_trip_ps=NEAR_PS + 4 * HOP_PS,
        nearest_round_trip_ps=NEAR_PS,
        nearest_hops=1,
        hop_round_trip_ps=HOP_PS,
        frame_bytes=FRAME_BYTES,
        parameters=parameters,
    )


def test_swift_gives_flows_of_one_rate_the_same_room_for_a_queue() -> None:
    """Windows as their round trips: with the window itself in the target, the farther flow has the lower one."""

    def grows(window_packets: float, round_trip_ps: int, hops: int, **parameters: float) -> bool:
        swift = swift_in_three_tiers(initial_window_packets=window_packets, max_window_packets=200, **parameters)
        before = swift.window_bytes
        swift.on_acknowledgement(1000 * US, round_trip_ps=round_trip_ps, hops=hops)
        return swift.window_bytes > before

    def room_ps(rate_packets_per_us: float, hops: int, **parameters: float) -> int:
        """Bisect the queue at which a window of that rate stops to grow."""
        idle_ps, low, high = NEAR_PS + (hops - 1) * HOP_PS, 0, 200 * US
        while high - low > 1000:
            queue_ps = (low + high) // 2
            window = rate_packets_per_us * (idle_ps + queue_ps) / US
            low, high = (queue_ps, high) if grows(window, idle_ps + queue_ps, hops, **parameters) else (low, queue_ps)
        return low

    for rate in (0.5, 2.0, 5.0):
        assert room_ps(rate, 5) == pytest.approx(room_ps(rate, 1), abs=2000)
        assert room_ps(rate, 5, flow_scaling_round_trip_ps=0) < room_ps(rate, 1, flow_scaling_round_trip_ps=0)


@pytest.mark.parametrize("hops", [1, 3, 5])
def test_swift_s_target_grows_with_the_path_by_default(hops: int) -> None:
    """Each path's target is its idle round trip and the same queue, a quarter of the nearest pair's round trip."""
    target_ps = NEAR_PS + (hops - 1) * HOP_PS + NEAR_PS // 4
    for late_ps in (-1000, 1000):
        swift = swift_in_three_tiers(flow_scaling_range_ps=0)
        before = swift.window_bytes
        swift.on_acknowledgement(1000 * US, round_trip_ps=target_ps + late_ps, hops=hops)
        assert (swift.window_bytes > before) == (late_ps < 0)


def test_swift_without_topology_scaling_has_the_target_of_the_farthest() -> None:
    swift = make_congestion_control(
        "swift",
        line_rate_bps=RATE_BPS,
        base_round_trip_ps=10 * US,
        nearest_round_trip_ps=NEAR_PS,
        nearest_hops=1,
        hop_round_trip_ps=HOP_PS,
        frame_bytes=FRAME_BYTES,
        parameters={"flow_scaling_range_ps": 0, "hop_target_ps": 0},
    )
    before = swift.window_bytes
    swift.on_acknowledgement(1000 * US, round_trip_ps=12 * US, hops=1)
    assert swift.window_bytes > before


@pytest.mark.parametrize(("rate_bps", "packets"), [(10**10, 1), (10**11, 1), (4 * 10**11, 4)])
def test_swift_s_windows_grow_with_the_rate(rate_bps: int, packets: int) -> None:
    swift = make_congestion_control(
        "swift",
        line_rate_bps=rate_bps,
        base_round_trip_ps=100 * US,
        frame_bytes=FRAME_BYTES,
        parameters={"slow_start": 0},
    )
    swift.on_acknowledgement(1000 * US, acknowledged_packets=10, round_trip_ps=50 * US)
    assert swift.window_bytes == (10 + packets) * FRAME_BYTES
