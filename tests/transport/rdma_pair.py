"""Two hosts with a connected queue pair each: on a cable, or on a link that the test controls packet by packet."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.engine import (
    Collector,
    CompletionQueue,
    CongestionControl,
    Engine,
    Link,
    MemoryRegion,
    MrcQueuePair,
    Nic,
    PathChoice,
    RcQueuePair,
    RudiQueuePair,
    TransmitPort,
    UetQueuePair,
    UudQueuePair,
    make_congestion_control,
    make_path_choice,
)

US = 1_000_000
MS = 1_000_000_000
RATE_BPS = 100_000_000_000
DELAY_PS = US
WINDOW_BYTES = 64 * 1024
TIMEOUT_PS = 20 * US

PATIENT: dict[str, Any] = {"retry_limit": 100, "timeout_backoff_limit": 3}
"""For wires that lose much: with timeouts that double three times, 80 losses in a row take 13 ms of the 20 that
`WiredPair.run` waits."""

Bytes = NDArray[np.uint8]


def fixed_window(window_bytes: int = WINDOW_BYTES, pacing_rate_bps: int = 0) -> CongestionControl:
    return make_congestion_control(
        "fixed-window",
        line_rate_bps=RATE_BPS,
        base_round_trip_ps=2 * DELAY_PS,
        frame_bytes=1100,
        parameters={"window_bytes": window_bytes, "pacing_rate_bps": pacing_rate_bps},
    )


def path_choice(name: str, seed: int, **parameters: float) -> PathChoice:
    return make_path_choice(
        name, seed, parameters, line_rate_bps=RATE_BPS, base_round_trip_ps=2 * DELAY_PS, frame_bytes=1100
    )


def spray(seed: int, paths: int) -> PathChoice:
    return path_choice("spray", seed, paths=paths)


def flowlet(seed: int, gap_ps: int) -> PathChoice:
    return path_choice("flowlet", seed, gap_ps=gap_ps)


@dataclass
class Host:
    """One end."""

    engine: Engine
    index: int
    nic: Nic
    port: TransmitPort
    completions: CompletionQueue
    queue_pair: Any = field(init=False)
    """RcQueuePair, or another if it was connected with `transport`; MrcQueuePair or UetQueuePair if it was connected
    with `mrc_options` or `uet_options`, with their service `rudi` or `uud` RudiQueuePair or UudQueuePair."""

    @property
    def mac(self) -> str:
        return f"02:00:00:00:00:{self.index:02x}"

    def ip(self, version: int) -> str:
        return f"10.0.0.{self.index}" if version == 4 else f"fd00::{self.index}"

    def register(self, data: Bytes, virtual_address: int = 0) -> MemoryRegion:
        return self.nic.register_memory(data, virtual_address=virtual_address)

    def connect(self, peer: "Host", version: int, **options: Any) -> None:
        window = {name: options.pop(name) for name in ("window_bytes", "pacing_rate_bps") if name in options}
        defaults: dict[str, Any] = {"retransmission_timeout_ps": TIMEOUT_PS}
        if "congestion_control" not in options:
            defaults["congestion_control"] = fixed_window(**window)
        of_service: dict[str, Any] = {"rudi": RudiQueuePair, "uud": UudQueuePair}
        of_options: dict[str, Any] = {
            "mrc_options": MrcQueuePair,
            "uet_options": of_service.get(options.get("uet_options", {}).get("service"), UetQueuePair),
        }
        made_for_options = next((made for key, made in of_options.items() if key in options), RcQueuePair)
        transport = options.pop("transport", made_for_options)
        self.queue_pair = transport(
            self.nic,
            0,
            self.completions,
            queue_pair=0x100 + self.index,
            remote_queue_pair=0x100 + peer.index,
            destination_mac=peer.mac,
            destination_ip=peer.ip(version),
            **(defaults | options),
        )


def make_host(engine: Engine, index: int, link: Link, rate_bps: int, nic_costs: dict[str, int] | None = None) -> Host:
    nic = Nic(engine, f"h{index}", **(nic_costs or {}))
    port = TransmitPort(engine, link, rate_bps=rate_bps)
    host = Host(engine, index, nic, port, CompletionQueue(engine))
    nic.add_port(port, mac=host.mac, addresses=[host.ip(4), host.ip(6)])
    return host


@dataclass
class RdmaPair:
    """`a` and `b`, each the other's peer."""

    engine: Engine
    a: Host
    b: Host
    links: tuple[Link, Link]


def cabled_pair(
    *,
    seed: int = 1,
    version: int = 4,
    rate_bps: int = RATE_BPS,
    delay_ps: int = DELAY_PS,
    faults: dict[str, Any] | None = None,
    nic_costs: dict[str, int] | None = None,
    sender: dict[str, Any] | None = None,
    **options: Any,
) -> RdmaPair:
    """Joined by two links; options go to both queue pairs, those of `sender` to a's alone."""
    engine = Engine(seed=seed)
    there = Link(engine, name="a-b", delay_ps=delay_ps, **(faults or {}))
    back = Link(engine, name="b-a", delay_ps=delay_ps, **(faults or {}))
    a = make_host(engine, 1, there, rate_bps, nic_costs)
    b = make_host(engine, 2, back, rate_bps, nic_costs)
    there.connect(b.nic, 0)
    back.connect(a.nic, 0)
    psn = options.pop("initial_psn", 0)
    a.connect(b, version, initial_psn=psn, remote_initial_psn=psn ^ 0x555, **(options | (sender or {})))
    b.connect(a, version, initial_psn=psn ^ 0x555, remote_initial_psn=psn, **options)
    return RdmaPair(engine, a, b, (there, back))


# The frames that arrive when `sender` ("a" or "b") sends a frame.
Wire = Callable[[str, bytes], list[bytes]]


@dataclass
class WiredPair:
    """Joined by a link that the test controls: every microsecond it delivers what was sent since."""

    engine: Engine
    a: Host
    b: Host
    taps: tuple[Collector, Collector]

    def step(self, wire: Wire) -> None:
        self.engine.run_for(US)
        for sender, tap, receiver in (("a", self.taps[0], self.b), ("b", self.taps[1], self.a)):
            frames = [data for _, _, data in tap.packets]
            tap.clear()
            for frame in frames:
                for delivered in wire(sender, frame):
                    self.engine.inject(receiver.nic, 0, delivered)

    def run(self, wire: Wire, until: Callable[[], bool], limit_steps: int = 20_000) -> None:
        for _ in range(limit_steps):
            if until():
                return
            self.step(wire)
        raise AssertionError(f"not done after {limit_steps} us; a: {self.a.queue_pair.stats()}")


def wired_pair(
    *, version: int = 4, rate_bps: int = RATE_BPS, sender: dict[str, Any] | None = None, **options: Any
) -> WiredPair:
    """Joined by a link that the test controls; options go to both queue pairs, those of `sender` to a's alone."""
    engine = Engine(seed=1)
    links = Link(engine, name="a"), Link(engine, name="b")
    taps = Collector(engine), Collector(engine)
    a, b = make_host(engine, 1, links[0], rate_bps), make_host(engine, 2, links[1], rate_bps)
    for link, tap in zip(links, taps, strict=True):
        link.connect(tap)
    psn = options.pop("initial_psn", 0)
    a.connect(b, version, initial_psn=psn, **(options | (sender or {})))
    b.connect(a, version, remote_initial_psn=psn, **options)
    return WiredPair(engine, a, b, taps)


def ideal_wire(_sender: str, frame: bytes) -> list[bytes]:
    return [frame]


class Recording:
    """Delivers all frames, and keeps them."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def __call__(self, _sender: str, frame: bytes) -> list[bytes]:
        self.frames.append(frame)
        return [frame]


def random_bytes(size: int, seed: int = 0) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
