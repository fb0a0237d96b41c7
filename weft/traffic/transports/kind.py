"""Base of all transports: all that the rest of Weft asks of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from weft.engine import PathChoice, _core

if TYPE_CHECKING:
    from weft.engine._core import CongestionControl, RcOptions
    from weft.traffic.transport_settings import TransportSettings

QueuePair = _core.RcQueuePair | _core.MrcQueuePair | _core.UetQueuePair
"""A queue pair of a connection or a program, of any transport."""


@dataclass(frozen=True)
class QueuePairPlace:
    """Where a queue pair is, and whom it talks to."""

    nic: _core.Nic
    port: int
    completions: _core.CompletionHandler
    queue_pair: int | None
    remote_queue_pair: int
    destination_mac: str
    destination_ip: str
    source_udp_port: int | None


@dataclass(frozen=True)
class FrameShape:
    """A frame's size depends on these besides its payload."""

    is_ipv6: bool
    telemetry: bool
    retransmission: str
    receiver_credits: bool


class TransportKind(ABC):
    """A transport: its keys, what it goes with, and how its queue pairs are made."""

    name: ClassVar[str]
    """As `transport.protocol` has it."""
    own_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of a scenario's `transport` that no other protocol has."""
    lacks_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of `transport` that have no meaning for it, besides those that other protocols own."""
    defaults: ClassVar[Mapping[str, str]] = {}
    """Keys of `transport` with another default than the section's."""
    virtual_only: ClassVar[bool] = False
    """Whether it exists under the virtual clock only."""
    retransmissions: ClassVar[tuple[str, ...]]
    """Valid values of `retransmission`."""
    sprays: ClassVar[bool]
    """Its packets take several paths, whatever `path` is."""
    has_cnps: ClassVar[bool] = False
    """Receivers tell of marks by CNPs."""
    operations: ClassVar[frozenset[str]]
    """Those that it carries."""
    carries_int: ClassVar[bool] = False
    has_segments: ClassVar[bool] = False
    """A simulation may move several of its packets as one."""
    goes_with_flow_control: ClassVar[bool] = False
    """With PFC and credits."""
    goes_with_data_classes: ClassVar[bool] = False
    """Its packets may travel in another class of data than the first."""
    code_points: ClassVar[tuple[tuple[int, int], ...]] = ()
    """DSCPs that only it uses, each with its traffic class."""
    totals: ClassVar[tuple[str, ...]] = ()
    """Names of its own counters, which a host sums over its queue pairs in addition to those of RC."""

    def defaults_for(self, given: Mapping[str, Any]) -> Mapping[str, str]:
        """Return `defaults`, and those that follow from other keys, which are not checked yet."""
        return self.defaults

    def check(self, settings: TransportSettings) -> None:
        """Check its own keys against others. Raises ValueError."""
        return

    @abstractmethod
    def make_queue_pair(
        self,
        place: QueuePairPlace,
        settings: TransportSettings,
        congestion_control: CongestionControl,
        path_choice: PathChoice | None,
        options: RcOptions,
    ) -> QueuePair:
        """Return a queue pair. Raises ValueError for what is out of range."""

    @abstractmethod
    def full_frame_bytes(self, mtu_bytes: int, shape: FrameShape) -> int:
        """Return the bytes of a data packet with a full payload, from Ethernet to iCRC."""

    def options(self, settings: TransportSettings) -> Mapping[str, Any]:
        """Return the engine's options that only this protocol has, by the engine's names."""
        return {}

    def flow_options(self, settings: TransportSettings) -> Mapping[str, Any]:
        """Return the keyword arguments of the engine's FlowGenerator.add_port that have it make these queue pairs."""
        return {}

    def stats_of(self, queue_pair: QueuePair) -> Mapping[str, Any]:
        """Return a queue pair's counters, with its own ones."""
        return queue_pair.stats()

    def counters_of(self, generator: _core.FlowGenerator) -> Mapping[str, Any]:
        """Return the counters of a generator's queue pairs, with their own ones."""
        return generator.counters()
