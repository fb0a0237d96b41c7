"""What congestion controls make of events: RFC 5681, 9438 and 8257."""

import pytest

from tests.tcp.two_ends import MILLISECOND_PS, SECOND_PS
from weft.engine._core import TcpCongestionControl, tcp_congestion_control_names

SEGMENT = 1000


def control_of(name: str, window_segments: int = 10, **parameters: float) -> TcpCongestionControl:
    return TcpCongestionControl(name, segment_bytes=SEGMENT, window_segments=window_segments, parameters=parameters)


def test_names() -> None:
    assert {"cubic", "dctcp", "newreno"} <= set(tcp_congestion_control_names())
    with pytest.raises(ValueError, match=r"unknown TCP congestion control 'reno' \(valid: .*'cubic', .*'dctcp'"):
        control_of("reno")
    with pytest.raises(ValueError, match="beta"):
        control_of("cubic", beta=2)
    with pytest.raises(ValueError, match="gain"):
        control_of("dctcp", gain=2)


@pytest.mark.parametrize("name", ["newreno", "cubic", "dctcp"])
def test_slow_start(name: str) -> None:
    """RFC 5681, section 3.1: each acknowledged byte adds one, whichever control; not if the window was not in use."""
    control = control_of(name)
    windows = []
    for acknowledged in (1000, 2000, 1):
        control.on_acknowledgement(0, acknowledged)
        windows.append(control.window_bytes)
    control.on_acknowledgement(0, 1000, window_limited=False)
    assert [*windows, control.window_bytes] == [11_000, 13_000, 13_001, 13_001]


def test_reno_avoids() -> None:
    """RFC 5681, section 3.1, equation 4; then a segment for each window of acknowledged bytes (RFC 3465, 2.1)."""
    control = control_of("newreno", 20)
    control.on_loss(0, 18_000)
    assert (control.window_bytes, control.slow_start_threshold_bytes) == (9000, 9000)
    windows = []
    for _ in range(20):
        control.on_acknowledgement(0, 1000)
        windows.append(control.window_bytes // SEGMENT)
    assert windows == [9] * 8 + [10] * 10 + [11] * 2


@pytest.mark.parametrize("name", ["newreno", "cubic", "dctcp"])
def test_timeout(name: str) -> None:
    """RFC 5681, section 3.1: one segment; a timeout of the same segment leaves the threshold; at least two segments."""
    control = control_of(name, 20)
    control.on_timeout(0, 20_000)
    threshold = control.slow_start_threshold_bytes
    assert (control.window_bytes, threshold) == (1000, 14_000 if name == "cubic" else 10_000)
    control.on_timeout(0, 1000, again=True)
    assert (control.window_bytes, control.slow_start_threshold_bytes) == (1000, threshold)
    control.on_timeout(0, 1000)
    assert control.slow_start_threshold_bytes == 2000


def test_slow_start_ends_at_the_threshold() -> None:
    control = control_of("newreno", 20)
    control.on_timeout(0, 8000)
    windows = []
    for _ in range(4):
        control.on_acknowledgement(0, 1000)
        windows.append(control.window_bytes // SEGMENT)
    assert windows == [2, 3, 4, 4]


def test_cubic_curve() -> None:
    """RFC 9438, section 4.2: W(t) = C (t - K)^3 + W_max, K = cbrt((W_max - cwnd_epoch) / C), reached within a round
    trip; here with windows so large that Reno's estimate stays below."""
    control = control_of("cubic", 1000)
    round_trip_ps = 100 * MILLISECOND_PS
    control.on_loss(0, 1000 * SEGMENT)
    assert control.window_bytes == 700 * SEGMENT  # section 4.6
    inflection = (300 / 0.4) ** (1 / 3)
    steps = 100
    for now_ps in range(0, 12 * SECOND_PS, round_trip_ps):
        window = control.window_bytes
        for step in range(steps):
            control.on_acknowledgement(
                now_ps + step * round_trip_ps // steps, window // steps, smoothed_round_trip_ps=round_trip_ps
            )
        if now_ps >= SECOND_PS and now_ps % SECOND_PS == 0:
            seconds = (now_ps + round_trip_ps) / SECOND_PS
            expected = 0.4 * (seconds - inflection) ** 3 + 1000
            assert control.window_bytes / SEGMENT == pytest.approx(expected, rel=0.01), seconds


def test_cubic_in_the_reno_friendly_region() -> None:
    """Section 4.3: at short round trips W_est, which grows by 3 (1 - beta) / (1 + beta) segments in each, then by 1."""
    control = control_of("cubic", 20)
    control.on_loss(0, 20 * SEGMENT)
    round_trip_ps = MILLISECOND_PS
    windows = []
    for number in range(40):
        window = control.window_bytes
        control.on_acknowledgement(number * round_trip_ps, window, smoothed_round_trip_ps=round_trip_ps)
        windows.append(control.window_bytes / SEGMENT)
    slope = 3 * (1 - 0.7) / (1 + 0.7)
    assert windows[:8] == pytest.approx([14 + slope * (each + 1) for each in range(8)], rel=0.001)
    assert windows[39] - windows[38] == pytest.approx(1, rel=0.01)  # beyond 20, the window before the reduction


def test_cubic_growth_is_bounded() -> None:
    """Section 4.2: the target is at most 1.5 times the window, so a round trip grows it by at most half."""
    control = control_of("cubic", 10)
    control.on_loss(0, 10 * SEGMENT)
    control.on_acknowledgement(0, 7 * SEGMENT)
    control.on_acknowledgement(1000 * SECOND_PS, control.window_bytes, smoothed_round_trip_ps=SECOND_PS)
    assert control.window_bytes / SEGMENT <= 1.5 * 8


@pytest.mark.parametrize(("fast_convergence", "maximum"), [(1, 0.85 * 700), (0, 700)])
def test_cubic_fast_convergence(fast_convergence: int, maximum: float) -> None:
    """Section 4.7: a second loss below the last maximum sets W_max to (1 + beta) / 2 of the window."""
    control = control_of("cubic", 1000, fast_convergence=fast_convergence)
    control.on_loss(0, 1000 * SEGMENT)
    control.on_loss(0, 700 * SEGMENT)
    assert control.window_bytes == pytest.approx(490 * SEGMENT, abs=1)
    inflection = ((maximum - 490) / 0.4) ** (1 / 3)
    # As K comes, the window is at W_max: the target is beyond it by C times the cube of the round trip.
    control.on_acknowledgement(0, 1, smoothed_round_trip_ps=MILLISECOND_PS)
    now_ps = round(inflection * SECOND_PS)
    for _ in range(3000):
        control.on_acknowledgement(now_ps, 10 * SEGMENT, smoothed_round_trip_ps=MILLISECOND_PS)
        if control.window_bytes >= 0.999 * maximum * SEGMENT:
            break
    assert control.window_bytes / SEGMENT == pytest.approx(maximum, rel=0.02)


def test_dctcp_follows_the_share_of_marks() -> None:
    """RFC 8257, section 3.3: alpha = (1 - g) alpha + g M once a window of data; the window falls by alpha / 2."""
    control = control_of("dctcp", 100, initial_alpha=0.5)
    alpha, sequence = 0.5, 1
    control.on_acknowledgement(0, 1, acknowledged=sequence, next=sequence + 10_000, grows=False)
    alpha *= 15 / 16
    for marked_of_ten in (10, 3, 0, 5):
        for each in range(10):
            sequence += 1000
            end = sequence + 10_000
            marked = each < marked_of_ten
            control.on_acknowledgement(0, 1000, acknowledged=sequence, next=end, ecn_echo=marked, grows=False)
        sequence += 1  # the first number of the next window closes this one
        control.on_acknowledgement(0, 0, acknowledged=sequence, next=sequence + 10_000, grows=False)
        alpha = alpha * 15 / 16 + marked_of_ten / 10 / 16
        assert control.marked_share == pytest.approx(alpha)
    before = control.window_bytes
    control.on_ecn_echo(0, before)
    assert control.window_bytes == pytest.approx(before * (1 - alpha / 2), abs=1)


def test_dctcp_takes_losses_as_others_do() -> None:
    """RFC 8257, section 3.4."""
    control = control_of("dctcp", 100, initial_alpha=0)
    control.on_loss(0, 80_000)
    assert control.window_bytes == 40_000
