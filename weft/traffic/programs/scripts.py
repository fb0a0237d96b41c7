"""Hosts that users write with Scapy: a class each."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.engine import ExtensionError, _core
from weft.errors import InvalidValueError
from weft.quantities.limits import whole_ps
from weft.quantities.units import PS_PER_S
from weft.traffic.extensions.later import LaterCalls, callback_of
from weft.traffic.extensions.loading import ClassSpec, make
from weft.traffic.programs.base import OpenProgram, Program

if TYPE_CHECKING:
    from scapy.packet import Packet

    from weft.traffic.host import Host

MOST_LINES = 10_000
MOST_REPORTS = 1000
_MOST_FRAME_BYTES = 9216 + 14


@dataclass(frozen=True)
class HostFacts:
    """A scripted host's own and other hosts' names, MACs and addresses of their first NICs.

    `gateway_mac` is the MAC of the switch's port, `peers` has all hosts by name, including the host itself.
    """

    name: str
    mac: str
    ipv4: str
    ipv6: str
    gateway_mac: str
    peers: Mapping[str, HostFacts] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class ScriptRecord:
    """Lines that a script has printed, with their times, its reports, and the frames that it has sent and seen."""

    lines: tuple[tuple[int, str], ...]
    reports: dict[str, Any]
    sent_frames: int
    not_sent_frames: int
    seen_frames: int


class ScriptedHost:
    """A host's program, written with Scapy: override `on_start`, `on_packet` and `on_end`.

    Times are emulated picoseconds. A host sees every frame at its NICs that is not RoCEv2's, whatever its MAC or
    EtherType; ARP, neighbour discovery and ping are answered by the host's stack all the same. Each host has an object
    of its own. Keep its state in the object: state that objects share differs with several `workers`.
    A scenario's `parameters` are keyword arguments.

    Attributes:
        host: the host's name and addresses; `host.peers` has all hosts' by name.
    """

    host: HostFacts
    _running: _Running | None = None

    def on_start(self) -> None:
        """Called when the run begins."""

    def on_packet(self, packet: Packet) -> None:
        """Called for each frame, an Ether of Scapy; `packet.sniffed_on` is the number of the NIC as text."""

    def on_end(self) -> None:
        """Called when the script ends, by its `duration` or by `finish`."""

    @property
    def now(self) -> int:
        """The time since the run's start."""
        return self._script.now_ps()

    def send(self, packet: Packet | bytes, at: int | None = None, nic: int = 0) -> None:
        """Send a frame, from Ethernet on: now, or at a time since the run's start.

        Raises ValueError for a time that is past or no whole number, or what is no frame.
        """
        frame = bytes(packet)
        if not 14 <= len(frame) <= _MOST_FRAME_BYTES:
            raise InvalidValueError(f"a frame of {len(frame)} B", valid=f"14 to {_MOST_FRAME_BYTES}, from Ethernet on")
        if at is None:
            self._script.send(nic, frame)
            return
        script = self._script
        script.call_at(whole_ps(at), lambda: script.send(nic, frame))

    def after(self, delay: int, callback: Callable[[], object]) -> None:
        """Call something so many picoseconds from now; 1e6 is a microsecond.

        Raises ValueError for a delay that is negative or no whole number, and for calls without a delay that never
        end; TypeError for what cannot be called.
        """
        script = self._script
        script.call_at(script.later.time_ps(self.now, delay), callback_of(callback))

    def every(self, interval: int, callback: Callable[[], object]) -> None:
        """Call something again and again, first one interval from now. Raises ValueError unless it is above 0."""
        callback_of(callback)
        if interval <= 0:
            raise InvalidValueError(f"an interval of {interval} ps", valid="above 0")

        def call() -> None:
            callback()
            self.after(interval, call)

        self.after(interval, call)

    def sniff(self, callback: Callable[[Packet], object], lfilter: Callable[[Packet], bool] | None = None) -> None:
        """Call something for each frame from now on, before `on_packet`; with `lfilter` if that is true of it."""
        self._script.sniffers.append((callback_of(callback), None if lfilter is None else callback_of(lfilter)))

    def answer(self, request: Packet, payload: Packet | bytes) -> None:
        """Send a payload back by the way on which a frame came: its MACs and addresses, and ports, exchanged."""
        self.send(reply_to(request) / payload, nic=int(str(request.sniffed_on or 0)))

    def print(self, *values: object) -> None:
        """Add a line to the results."""
        self._script.add_line(" ".join(map(str, values)))

    def report(self, key: str, value: Any) -> None:
        """Note a value, of what JSON has, in the results; a later one of the same key takes its place.

        Raises TypeError for other values, ValueError for a number that is not finite.
        """
        # A copy, so that what the script does to a list later does not matter.
        self._script.add_report(str(key), json.loads(json.dumps(value, allow_nan=False)))

    def finish(self) -> None:
        """End before the `duration` has passed: nothing is called any more but `on_end`."""
        self._script.finish()

    @property
    def _script(self) -> _Running:
        if self._running is None:
            raise RuntimeError("a scripted host can act when the run has begun: from on_start on")
        return self._running


def reply_to(request: Packet) -> Packet:
    """Return the headers of an answer: a frame's with source and destination exchanged, up to UDP or TCP ports."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Ether

    ether = request[Ether]
    answer = Ether(src=ether.dst, dst=ether.src, type=ether.type)
    for version in (IP, IPv6):
        if version in request:
            answer /= version(src=request[version].dst, dst=request[version].src)
            if UDP in request:
                answer /= UDP(sport=request[UDP].dport, dport=request[UDP].sport)
            break
    return answer


@dataclass(frozen=True)
class Script(Program):
    """A user's class on a host, for so long."""

    spec: ClassSpec
    facts: HostFacts
    duration_ps: int

    def open(self, host: Host) -> OpenProgram:
        """See Program; ExtensionError: there is no such class, or it cannot be made."""
        return _Running(self, host)


class _Running(OpenProgram):
    def __init__(self, script: Script, host: Host) -> None:
        self._user = make(script.spec, ScriptedHost)
        self._user.host = script.facts
        self._user._running = self
        self._what = script.spec.reference
        self._engine = host.engine
        self._start_ps = 0
        self._calls: list[tuple[int, int, Callable[[], object]]] = []
        self._next_call = 0
        self.later = LaterCalls()
        self._lines: list[tuple[int, str]] = []
        self._reports: dict[str, Any] = {}
        self._sent = self._not_sent = self._seen = 0
        self.sniffers: list[tuple[Callable[[Packet], object], Callable[[Packet], bool] | None]] = []
        self.application: _core.HostScript = _core.HostScript(
            host.ip,
            host.executor,
            duration_ps=script.duration_ps,
            on_start=self._on_start,
            on_frame=self._on_frame,
            on_wake=self._on_wake,
            on_end=self._user.on_end,
        )

    def now_ps(self) -> int:
        """Return the time since the start."""
        return self._engine.now_ps - self._start_ps

    def send(self, nic: int, frame: bytes) -> None:
        """Send a frame now."""
        if self.application.send(nic, frame):
            self._sent += 1
        else:
            self._not_sent += 1

    def call_at(self, time_ps: int, callback: Callable[[], object]) -> None:
        """Call something at a time since the start; at equal times in the order of these requests."""
        if time_ps < self.now_ps():
            raise ValueError(f"at {time_ps} ps, which is past: it is {self.now_ps()} ps")
        heapq.heappush(self._calls, (time_ps, self._next_call, callback))
        self._next_call += 1
        self.application.wake_at(self._start_ps + self._calls[0][0])

    def add_line(self, text: str) -> None:
        """Note a line. Raises ExtensionError when there are too many."""
        if len(self._lines) == MOST_LINES:
            raise ExtensionError(f"{self._what} prints more than {MOST_LINES} lines")
        self._lines.append((self.now_ps(), text))

    def add_report(self, key: str, value: Any) -> None:
        """Note a value. Raises ExtensionError when there are too many."""
        if key not in self._reports and len(self._reports) == MOST_REPORTS:
            raise ExtensionError(f"{self._what} reports more than {MOST_REPORTS} keys")
        self._reports[key] = value

    def finish(self) -> None:
        """End."""
        self._calls.clear()
        self.application.end()

    def record(self) -> ScriptRecord:
        """See OpenProgram."""
        return ScriptRecord(tuple(self._lines), self._reports, self._sent, self._not_sent, self._seen)

    def _on_start(self) -> None:
        self._start_ps = self._engine.now_ps
        self._user.on_start()

    def _on_frame(self, nic: int, frame: bytes) -> None:
        from scapy.layers.l2 import Ether

        self._seen += 1
        packet = Ether(frame)
        packet.time = self.now_ps() / PS_PER_S
        packet.sniffed_on = str(nic)
        for callback, lfilter in list(self.sniffers):
            if lfilter is None or lfilter(packet):
                callback(packet)
        self._user.on_packet(packet)

    def _on_wake(self) -> None:
        if self._calls and self._calls[0][0] <= self.now_ps():
            _, _, callback = heapq.heappop(self._calls)
            callback()
        if self._calls and self.application.status()["state"] == "running":
            self.application.wake_at(self._start_ps + self._calls[0][0])
