"""Congestion controls in Python, on two hosts with a cable between them."""

import sys
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.transport.rdma_pair import DELAY_PS, RATE_BPS, US, fixed_window, make_host
from weft.engine import CongestionControl as NativeControl
from weft.engine import Engine, ExtensionError, Link
from weft.traffic.extensions import (
    Acknowledgement,
    ClassSpec,
    CongestionControl,
    PathProperties,
    congestion_control,
)

PATH = PathProperties(line_rate_bps=RATE_BPS, base_round_trip_ps=2 * US, frame_bytes=1100)
SIZE_BYTES = 200_000


class Fixed(CongestionControl):
    """A window and a rate that stay."""

    def __init__(self, path: PathProperties, window: Any = 64 * 1024, rate: Any = 0) -> None:
        super().__init__(path)
        self.window, self.rate = window, rate

    def window_bytes(self) -> int:
        return self.window

    def pacing_rate_bps(self) -> int:
        return self.rate

    def on_acknowledgement(self, event: Acknowledgement) -> None:
        pass


class Diary(Fixed):
    """Records every call; sets a deadline every 3 us."""

    made: ClassVar[list["Diary"]] = []

    def __init__(self, path: PathProperties, window: int = 8 * 1024, beats: int = 5) -> None:
        super().__init__(path, window)
        self.sent, self.acknowledged, self.losses, self.ticks = [], [], [], []
        self.beats, self.deadline = beats, 3 * US if beats else None
        self.made.append(self)

    def on_packet_sent(self, now_ps: int, frame_bytes: int, retransmission: bool) -> None:
        self.sent.append((now_ps, frame_bytes, retransmission))

    def on_acknowledgement(self, event: Acknowledgement) -> None:
        self.acknowledged.append(event)

    def on_loss(self, now_ps: int, timeout: bool) -> None:
        self.losses.append(timeout)

    def next_deadline_ps(self) -> int | None:
        return self.deadline

    def on_deadline(self, now_ps: int) -> None:
        self.ticks.append(now_ps)
        self.deadline = now_ps + 3 * US if len(self.ticks) < self.beats else None


class Stuck(Fixed):
    """Its timer never moves on."""

    def next_deadline_ps(self) -> int | None:
        return 3 * US

    def on_deadline(self, now_ps: int) -> None:
        pass


class Raises(Fixed):
    """Fails at the third acknowledgement."""

    def __init__(self, path: PathProperties) -> None:
        super().__init__(path)
        self.count = 0

    def on_acknowledgement(self, event: Acknowledgement) -> None:
        self.count += 1
        if self.count == 3:
            raise KeyError("the third")


class Shrinks(Fixed):
    """Its window is set to `to`."""

    def __init__(self, path: PathProperties, to: Any) -> None:
        super().__init__(path)
        self.to = to

    def on_acknowledgement(self, event: Acknowledgement) -> None:
        self.window = self.to


class Incomplete(CongestionControl):
    def window_bytes(self) -> int:
        return 1


def python_control(name: str, **parameters: Any) -> NativeControl:
    return congestion_control(ClassSpec(f"{__file__}:{name}", parameters), PATH)


def last_diary() -> Any:
    """The last Diary made: the file is loaded apart from this module, so its class is another one."""
    modules = [module for name, module in sys.modules.items() if name.startswith("weft_extension_test_congestion")]
    return modules[-1].Diary.made[-1]


def send(control: NativeControl, size_bytes: int = SIZE_BYTES, loss: float = 0.0, **options: Any) -> tuple[int, Any]:
    """When a WRITE through a queue pair with this control was done, and the queue pair's statistics."""
    engine = Engine(seed=1)
    there, back = (
        Link(engine, name="a-b", delay_ps=DELAY_PS, loss=loss),
        Link(engine, name="b-a", delay_ps=DELAY_PS),
    )
    a, b = make_host(engine, 1, there, RATE_BPS), make_host(engine, 2, back, RATE_BPS)
    there.connect(b.nic, 0)
    back.connect(a.nic, 0)
    a.connect(b, 4, congestion_control=control, **options)
    b.connect(a, 4, **options)
    data = np.arange(size_bytes, dtype=np.uint32).astype(np.uint8)
    target = np.zeros_like(data)
    memory, region = a.register(data), b.register(target)
    a.queue_pair.post_write(memory, 0, size_bytes, region.virtual_address, region.rkey, work_id=1)
    engine.run()
    assert np.array_equal(data, target)
    return engine.now_ps, a.queue_pair.stats()


@pytest.mark.parametrize(("window", "rate"), [(64 * 1024, 0), (5000, 0), (64 * 1024, 30 * 10**9), (1, 0)])
@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_in_python_or_native_a_fixed_window_does_the_same(window: int, rate: int, loss: float) -> None:
    python = send(python_control("Fixed", window=window, rate=rate), loss=loss)
    native = send(fixed_window(window, rate), loss=loss)
    assert python == native


def test_everything_is_reported_in_order() -> None:
    finished_ps, stats = send(python_control("Diary"), telemetry=True)
    diary = last_diary()
    assert len(diary.sent) == stats["data_packets_sent"] == 196
    assert not any(retransmission for _, _, retransmission in diary.sent)
    assert [now for now, *_ in diary.sent] == sorted(now for now, *_ in diary.sent)
    assert sum(event.acknowledged_packets for event in diary.acknowledged) == 196
    assert sum(event.acknowledged_bytes for event in diary.acknowledged) == sum(size for _, size, _ in diary.sent)
    last = diary.acknowledged[-1]
    assert (last.sequence, last.next_sequence, last.in_flight_bytes) == (195, 196, 0)
    assert all(event.round_trip_ps >= 2 * DELAY_PS for event in diary.acknowledged)
    assert last.telemetry["hop_count"] == 0
    assert diary.ticks == [3 * US * beat for beat in range(1, 6)]
    assert finished_ps >= last.now_ps


def test_losses_are_reported_and_repaired() -> None:
    _, stats = send(python_control("Diary", beats=0), loss=0.05)
    diary = last_diary()
    assert len(diary.losses) == stats["timeouts"] + stats["sequence_naks_received"] > 0
    assert sum(diary.losses) == stats["timeouts"]
    assert sum(retransmission for *_, retransmission in diary.sent) == stats["retransmitted_packets"]


def test_what_it_raises_ends_the_run_with_its_own_exception() -> None:
    with pytest.raises(KeyError, match="the third") as caught:
        send(python_control("Raises"))
    assert caught.traceback[-1].name == "on_acknowledgement"


def test_a_timer_that_stands_still_is_reported() -> None:
    with pytest.raises(
        ExtensionError,
        match=r"Stuck.next_deadline_ps\(\) returned 3000000 after on_deadline\(\) at 3000000 ps",
    ):
        send(python_control("Stuck"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-1, "-1"), (1500.5, "1500.5"), (None, "None"), ("much", "'much'"), (True, "True"), (2**80, str(2**80))],
)
def test_a_window_is_a_whole_number(value: Any, shown: str) -> None:
    valid = r"\(valid: whole numbers from 0 to 1125899906842624\)"
    with pytest.raises(ExtensionError, match=rf"Fixed.window_bytes\(\) returned {shown} {valid}"):
        python_control("Fixed", window=value)
    with pytest.raises(ExtensionError, match=rf"Shrinks.window_bytes\(\) returned {shown} {valid}"):
        send(python_control("Shrinks", to=value))


def test_numpy_s_whole_numbers_are_whole() -> None:
    assert python_control("Fixed", window=np.int64(5000)).window_bytes == 5000


def test_rates_have_limits() -> None:
    with pytest.raises(ExtensionError, match=r"Fixed.pacing_rate_bps\(\) returned -5 \(valid: whole numbers from 0"):
        python_control("Fixed", rate=-5)


def test_classes_and_parameters_are_checked() -> None:
    with pytest.raises(ExtensionError, match=r"lacks on_acknowledgement\(\)"):
        python_control("Incomplete")
    with pytest.raises(ExtensionError, match=r"unexpected keyword argument 'size' \(valid: window: .*, rate: "):
        python_control("Fixed", size=3)


def test_one_control_serves_one_connection() -> None:
    control = python_control("Fixed")
    send(control)
    with pytest.raises(ValueError, match="serves another queue pair already"):
        send(control)


def test_an_engine_may_end_while_its_controls_live() -> None:
    controls = [python_control("Fixed") for _ in range(3)]
    for control in controls:
        send(control, size_bytes=5000)
    assert [control.window_bytes for control in controls] == [64 * 1024] * 3
