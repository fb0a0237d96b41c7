"""Replay: a host sends the frames of a capture."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from weft.errors import BadInputError, translated
from weft.quantities.definitions import Rate, number
from weft.quantities.limits import MAX_TIME_PS
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_NS, PS_PER_S
from weft.results.plain_hosts import REPLAYS
from weft.results.plain_hosts_model import ReplayResult
from weft.run.captures import CapturedFrame, read_capture
from weft.run.plain_hosts import replay_task
from weft.run.plain_items import HostName, PlainItem, check_hosts
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec, serialisation_ps
from weft.topologies.kinds.base import TopologySection

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


class ReplayTraffic(PlainItem):
    """A host sends the frames of a pcap or pcapng file."""

    kind = "replay"
    sends_any_packets = True
    fills_link_mtu = True
    results: ClassVar = REPLAYS
    files: ClassVar[tuple[str, ...]] = ("replay",)

    replay: Path
    """The file of Ethernet frames, relative to the scenario."""
    host: HostName
    """Host that sends."""
    speed: Annotated[float, number(1e-6, 1e6)] = 1.0
    """Factor by which frames are sent faster than captured."""
    rate: Rate | None = None
    """Send frames back to back at this rate of their bytes, ignoring the file's times."""
    macs: Literal["keep", "rewrite"] = "keep"
    """`rewrite`: frames get the host's MAC as source and its switch's as destination, so that they are routed."""

    @cached_property
    def _frames(self) -> tuple[CapturedFrame, ...]:
        return read_capture(self.replay)

    def check(self, fabric: TopologySection, key: str) -> None:
        """Check the file."""
        super().check(fabric, key)
        if self.rate is not None and "speed" in self.model_fields_set:
            raise KeyProblem(f"{key}.speed", "excludes rate, which replaces the file's times")
        with translated(BadInputError, KeyProblem, f"{key}.replay"):
            frames = self._frames
        if not frames:
            raise KeyProblem(f"{key}.replay", f"{self.replay} has no frames")
        if (last_ps := self._timed(lambda frame: frame)[-1][0]) > MAX_TIME_PS:
            raise KeyProblem(
                f"{key}.replay",
                f"{self.replay}: its last frame would leave {last_ps / PS_PER_S:,.0f} s after the first",
                valid=f"up to {format_time(MAX_TIME_PS)}; rate, or a larger speed, makes it shorter",
            )

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check that the fabric has the host."""
        check_hosts(topology, [self.host], f"{key}.host")

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the default plus the time of the replay."""
        return super().time_limit_s(fabric) + self._timed(lambda frame: frame)[-1][0] / PS_PER_S

    def task(self, fabric: Fabric) -> Task[list[ReplayResult]]:
        """Return the replay as a task."""
        nic = fabric.topology.host(self.host).nics[0]
        macs = bytes.fromhex((nic.gateway_mac + nic.mac).replace(":", ""))

        def addressed(frame: bytes) -> bytes:
            return frame if self.macs == "keep" else macs + frame[len(macs) :]

        return replay_task(fabric, self.replay.name, {self.host: self._timed(addressed)}, nic.number)

    def _timed(self, addressed: Callable[[bytes], bytes]) -> tuple[tuple[int, bytes], ...]:
        """Return the frames, each with its time in ps after the start; times never decrease."""
        first_ns, latest_ps, timed = self._frames[0].time_ns, 0, []
        for frame in self._frames:
            if self.rate is None:
                latest_ps = max(latest_ps, round((frame.time_ns - first_ns) * PS_PER_NS / self.speed))
            timed.append((latest_ps, addressed(frame.data)))
            if self.rate is not None:
                latest_ps += serialisation_ps(len(frame.data), self.rate)
        return tuple(timed)
