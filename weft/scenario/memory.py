"""Sections about a switch's memory: the buffer its ports share, its schedulers, its flow control."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from weft.controller.features.identity import MoreClassSettings, TrafficClassSettings, class_by_dscp
from weft.controller.lossless import LosslessSettings
from weft.engine import MOST_CREDIT_BUFFER_BYTES
from weft.quantities.definitions import SIZE, TIME, QueueSize, Size, SizeOrZero, number, whole
from weft.quantities.example import Example
from weft.quantities.traffic_classes import CONTROL_CLASS, DATA_CLASS, DATA_CLASSES
from weft.quantities.units import PS_PER_MS, PS_PER_S, PS_PER_US
from weft.scenario.links import LinkName
from weft.scenario.values import CLASSES, DataClass, FeatureSection, PriorityClass, Section
from weft.switch.daemon.config import DEFAULT_TRIM_RESERVED_BYTES, DEFAULT_TRIMMED_BYTES, SMALLEST_TRIMMED_BYTES
from weft.topologies import Endpoint, LinkChoice
from weft.wire.code_points import DSCP_TRIMMABLE, DSCP_TRIMMABLE_RETX, DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions

Alpha = Annotated[float, number(0, 1024, above=True)]
_Dscp = Annotated[int, whole(0, 63)]


class BufferSection(Section):
    """A switch's packet memory, shared by its ports."""

    capacity: Annotated[QueueSize | None, Example("16MiB")] = None
    """All of it. Without this key each port has memory of its own, `fabric.queue_capacity`; with `pfc`, `credits` or
    shares of tenants the ports share the sum of these, by default 1 MB for each 100 Gb/s of every port, and at least
    512 KiB."""
    alpha: Alpha | dict[PriorityClass, Alpha] = 1.0
    """A queue may take more while it holds less than this times the free shared memory (Choudhury and Hahne 1998).

    May be given by class; other classes have 1.
    """
    reserved: Annotated[SizeOrZero | dict[PriorityClass, SizeOrZero], Example("4KiB")] = 0
    """Memory of each queue that no other can take; may be given by class."""

    @property
    def alpha_by_class(self) -> list[float]:
        """Alpha of each of the eight classes."""
        given = self.alpha
        if isinstance(given, dict):
            return [given.get(number, 1.0) for number in range(CLASSES)]
        return [given] * CLASSES

    @property
    def reserved_by_class(self) -> list[int]:
        """Bytes reserved for a queue of each of the eight classes."""
        given = self.reserved
        if isinstance(given, dict):
            return [given.get(number, 0) for number in range(CLASSES)]
        return [given] * CLASSES


class SchedulingSection(FeatureSection):
    """How a port chooses among its classes: by strict priority, or by deficit weighted round robin."""

    classes: Annotated[list[DataClass], Example("[2, 4]")] = Field(default=[], max_length=len(DATA_CLASSES))
    """Classes of data that switches keep apart, in addition to class 3; a job's `classes` name them. The highest number
    goes first; acknowledgements, in class 6, before all data."""
    quantum: Annotated[
        dict[PriorityClass, Annotated[int, SIZE.between(64, 2**31 - 1)]],
        Example("{2: 8KiB, 3: 24KiB}", (".classes=[2]",)),
    ] = Field(default={})
    """Bytes a round, by class, in deficit weighted round robin; classes not named are strict and go before. Where
    routes need lanes, lanes of data take turns by a frame by default, unless there are further `classes`."""

    @property
    def data_classes(self) -> tuple[int, ...]:
        """All classes of data, in order."""
        return tuple(sorted({DATA_CLASS, *self.classes}))

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return the classes of data."""
        yield TrafficClassSettings(self.data_classes, options.transport.kind.code_points)

    @property
    def quantum_by_class(self) -> list[int]:
        """Quantum of each of the eight classes, 0 for strict ones."""
        return [self.quantum.get(number, 0) for number in range(CLASSES)]


class TrimmingSection(FeatureSection):
    """Packet trimming. A packet that its queue has no room for is cut and sent on in another queue, not dropped."""

    classes: Annotated[list[DataClass], Example("[3]")] = Field(default=[], max_length=len(DATA_CLASSES))
    """Queues that trim; none: all drop. RoCEv2's data is in class 3. Lossless classes do not trim."""
    size: Annotated[int, SIZE.between(SMALLEST_TRIMMED_BYTES, 4096), Example("256B", (".classes=[3]",))] = (
        DEFAULT_TRIMMED_BYTES
    )
    """What stays of a frame, from its Ethernet header on. All headers that the program parses stay, too; a frame that
    is no longer is queued whole."""
    dscp: Annotated[_Dscp, Example("12", (".classes=[3]",))] = DSCP_TRIMMED
    """DSCP of trimmed packets."""
    last_hop_dscp: Annotated[_Dscp, Example("16", (".classes=[3]",))] = DSCP_TRIMMED_LASTHOP
    """DSCP of packets trimmed at a port that leads to a host."""
    queue: Annotated[PriorityClass, Example("7", (".classes=[3]",))] = CONTROL_CLASS
    """Class of trimmed packets, in all switches."""
    trimmable_dscps: Annotated[list[_Dscp], Example("[4, 8]", (".classes=[3]",))] = Field(
        default=[DSCP_TRIMMABLE, DSCP_TRIMMABLE_RETX], min_length=1, max_length=64
    )
    """Only packets with these DSCPs are trimmed. Those that no class of data has are put in the lowest of `classes`."""
    reserved: Annotated[SizeOrZero, Example("32KiB", (".classes=[3]",))] = DEFAULT_TRIM_RESERVED_BYTES
    """Memory of each port for `queue` alone, in addition to `fabric.queue_capacity`. Where switches share memory,
    `buffer.reserved` and `buffer.alpha` of the queue hold instead."""

    @model_validator(mode="after")
    def _whole(self) -> TrimmingSection:
        if not self.classes and self.model_fields_set - {"classes"}:
            raise ValueError("classes: which queues trim? RoCEv2's data is in class 3")
        if self.queue in self.classes:
            raise ValueError(f"queue: {self.queue} is one of the classes that trim, {self.classes}")
        for name in ("dscp", "last_hop_dscp"):
            if getattr(self, name) in self.trimmable_dscps:
                raise ValueError(
                    f"{name}: {getattr(self, name)} is one of trimmable_dscps, {self.trimmable_dscps}: a trimmed "
                    "packet is not trimmed again"
                )
        return self

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return the classes of trimmed and trimmable packets, by their DSCPs."""
        if not self.classes:
            return
        known = class_by_dscp(options.scheduling.data_classes)
        trimmable = dict.fromkeys(self.trimmable_dscps, min(self.classes))
        classes = {**trimmable, **known, self.dscp: self.queue, self.last_hop_dscp: self.queue}
        yield MoreClassSettings(tuple((dscp, classes[dscp]) for dscp in sorted(classes.keys() - known.keys())))


_WatchdogTime = Annotated[int, TIME.between(PS_PER_US, 60 * PS_PER_S, example="200us")]


class PfcWatchdogSection(Section):
    """PFC watchdog of every switch, as SONiC's (`pfcwd`). A class that the far end of a port pauses for too long is
    stormed: the port no longer obeys.
    """

    detection_time: _WatchdogTime = 200 * PS_PER_MS
    """How long a class is paused without an end, while a packet waits, until it is stormed."""
    restoration_time: _WatchdogTime = 200 * PS_PER_MS
    """How long a stormed class is not paused until the port obeys again."""
    action: Literal["drop", "forward", "alert"] = "drop"
    """In a storm. `drop`: the port drops what waits and what comes for the class, and what its far end sends in it.
    `forward`: it sends nevertheless. `alert`: it only notes the storm."""


class PfcSection(FeatureSection):
    """Priority flow control (IEEE 802.1Qbb) on every link."""

    classes: Annotated[list[PriorityClass], Example("[3]")] = Field(default=[], max_length=CLASSES)
    """Classes that are paused rather than dropped; none: no flow control. RoCEv2's data is in class 3. Classes
    that routes use as lanes of these are lossless, too."""
    xoff: Annotated[Size | None, Example("64KiB", (".classes=[3]",))] = None
    """The far end is paused when what came in by a port in a class holds more than this; not with `alpha`."""
    alpha: Annotated[Alpha | None, Example("0.25", (".classes=[3]",))] = None
    """It is paused when that holds more than this times the free shared memory; 0.125 without `xoff`."""
    hysteresis: Annotated[SizeOrZero | None, Example("8KiB", (".classes=[3]",))] = None
    """It is resumed when that holds so much less; by default two frames."""
    headroom: Annotated[SizeOrZero | None, Example("32KiB", (".classes=[3]",))] = None
    """Memory by port and class for what comes after the pause; by default as much as it takes (802.1Qbb, annex O)."""
    pause_quanta: Annotated[int, whole(1, 65535), Example("1024", (".classes=[3]",))] = 65535
    """For how long a pause frame pauses, in units of 512 bit times."""
    allow_deadlock: Annotated[bool, Example("true", (".classes=[3]",))] = False
    """Run even where routes make a cycle of buffers that wait for each other; by default such routes are refused."""
    watchdog: PfcWatchdogSection | None = None

    @model_validator(mode="after")
    def _one_threshold(self) -> PfcSection:
        if self.xoff is not None and self.alpha is not None:
            raise ValueError(f"xoff ({self.xoff} B) and alpha ({self.alpha:g}) exclude each other")
        if not self.classes and self.model_fields_set - {"classes"}:
            raise ValueError("classes: which classes are not to lose packets? RoCEv2's data is in class 3")
        return self

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return the lossless classes."""
        if self.classes:
            yield LosslessSettings(tuple(sorted(set(self.classes))))

    @property
    def pause_alpha(self) -> float:
        """Alpha of the pause threshold, 0 where `xoff` is the threshold."""
        if self.xoff is not None:
            return 0.0
        return 0.125 if self.alpha is None else self.alpha


class CreditsSection(FeatureSection):
    """Flow control by credits, as InfiniBand's. A port grants the far end its free memory, block by block."""

    classes: Annotated[list[PriorityClass], Example("[3]")] = Field(default=[], max_length=CLASSES)
    """The virtual lanes; none: no credits. RoCEv2's data is in class 3. Classes that routes use as further
    lanes of these have credits, too."""
    buffer: Annotated[int, SIZE.between(1, MOST_CREDIT_BUFFER_BYTES), Example("128KiB", (".classes=[3]",))] = 64 * 1024
    """Memory that each lane has of its own at every port."""
    links: Annotated[
        Annotated[list[LinkName], Field(min_length=1)] | None, Example("[p0l0<->p0s1]", (".classes=[3]",))
    ] = None
    """Only on these links, both ways; by default on all."""
    allow_deadlock: Annotated[bool, Example("true", (".classes=[3]",))] = False
    """Run even where routes make a cycle of buffers that wait for each other; by default such routes are refused."""

    @model_validator(mode="after")
    def _whole(self) -> CreditsSection:
        if not self.classes and self.model_fields_set - {"classes"}:
            raise ValueError("classes: which classes are virtual lanes? RoCEv2's data is in class 3")
        for name in self.links or ():
            if not LinkChoice.parse(name).both_ways:
                raise ValueError(f"links: '{name}': credits for one way come the other, so name both (<->)")
        return self

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return the lossless classes."""
        if self.classes:
            yield LosslessSettings(tuple(sorted(set(self.classes))))

    def on(self, end: Endpoint, peer: Endpoint) -> bool:
        """Return whether the link between two ports has credits."""
        if not self.classes:
            return False
        return self.links is None or any(LinkChoice.parse(name).takes(end, peer) for name in self.links)
