"""The fabric's controller for callers without an event loop: it runs in a separate thread or in virtual time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from weft.controller import arrays
from weft.controller.arrays import DirectCount
from weft.controller.counters import Count, SwitchCounters
from weft.controller.fabric import FabricController
from weft.controller.features import Settings
from weft.controller.features.depth_ages import DepthAges
from weft.controller.features.ecn import EcnDepth, EcnProfile
from weft.controller.features.parameter_cache import ParameterGroup
from weft.controller.grpc_targets import Channel, GrpcTarget, open_channel
from weft.controller.memberships import JobMembership
from weft.controller.pipeline import Pipeline, Pipelines
from weft.controller.planned_paths import PlannedPaths
from weft.controller.queue_keys import QueueKeys, random_queue_key
from weft.controller.repair import Repair
from weft.controller.services import ServiceGroup, ServiceUse
from weft.topologies import FabricLink, FabricSpec
from weft.topologies.addressing import IpVersion

_Result = TypeVar("_Result")


class LoopRunner(Protocol):
    """An event loop that runs coroutines for a caller outside it."""

    def start(self) -> None:
        """Start the loop."""

    def run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine to its end and return its result."""

    def stop(self) -> None:
        """Cancel the remaining tasks and end the loop."""


class LoopThread:
    """An event loop in a separate thread; call it from any other thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="controller", daemon=True)

    def start(self) -> None:
        """See LoopRunner."""
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """See LoopRunner; Ctrl-C cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """See LoopRunner."""
        self.run(cancel_other_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingFabricController:
    """`FabricController` with blocking calls. Use as a context manager.

    Takes FabricController's arguments; `runner` defaults to a thread.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        pipeline: Pipeline | Pipelines,
        targets: Mapping[str, GrpcTarget],
        settings: Settings | None = None,
        queue_keys: QueueKeys = random_queue_key,
        timeout_s: float = 60.0,
        push: bool = True,
        *,
        open_channel: Callable[[str], Channel] = open_channel,
        on_dropped: Callable[[Mapping[str, int]], None] | None = None,
        preempt: bool = False,
        runner: LoopRunner | None = None,
    ) -> None:
        self._runner = runner or LoopThread()
        self._controller = FabricController(
            fabric,
            pipeline,
            targets,
            settings,
            queue_keys,
            timeout_s,
            push,
            open_channel,
            on_dropped,
            preempt,
        )

    def __enter__(self) -> Self:
        self._runner.start()
        try:
            self.call(self._controller.__aenter__())
        except BaseException:
            self._runner.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.call(self._controller.close())
        finally:
            self._runner.stop()

    @property
    def controller(self) -> FabricController:
        """The asynchronous controller; run its coroutines with `call`."""
        return self._controller

    def call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine on the controller's loop and return its result; Ctrl-C cancels it."""
        return self._runner.run(coroutine)

    def add_job(
        self,
        job_id: int,
        hosts: Sequence[str],
        slot_count: int,
        planes: Iterable[int] | None = None,
        ip_version: IpVersion = 4,
        tenant: str = "",
        share: float | None = None,
        keep: Collection[int] = (),
        wait: bool = True,
    ) -> dict[str, tuple[JobMembership, ...]]:
        """See `FabricController.add_job`."""
        return self.call(
            self._controller.add_job(job_id, hosts, slot_count, planes, ip_version, tenant, share, keep, wait)
        )

    def remove_job(self, job_id: int) -> None:
        """See `FabricController.remove_job`."""
        self.call(self._controller.remove_job(job_id))

    def discard_job(self, job_id: int) -> None:
        """See `FabricController.discard_job`."""
        self.call(self._controller.discard_job(job_id))

    def planes_with_trees(self, planes: Iterable[int], jobs: Iterable[Sequence[str]]) -> tuple[int, ...]:
        """See `FabricController.planes_with_trees`."""
        return self.call(self._controller.planes_with_trees(planes, jobs))

    def memberships(self, job_id: int) -> dict[str, tuple[JobMembership, ...]]:
        """See `FabricController.memberships`."""

        async def now() -> dict[str, tuple[JobMembership, ...]]:
            return self.controller.memberships(job_id)

        return self.call(now())

    def job_epoch(self, job_id: int) -> int | None:
        """See `FabricController.job_epoch`."""
        return self.call(self._controller.job_epoch(job_id))

    def was_evicted(self, job_id: int) -> bool:
        """See `FabricController.was_evicted`."""
        return self.call(self._controller.was_evicted(job_id))

    def note_evicted(self, job_id: int) -> None:
        """See `FabricController.note_evicted`."""
        self.call(self._controller.note_evicted(job_id))

    def job_uses_avoided(self, job_id: int) -> bool:
        """See `FabricController.job_uses_avoided`."""
        return self.call(self._controller.job_uses_avoided(job_id))

    def serve(self, use: ServiceUse) -> ServiceGroup:
        """See `FabricController.serve`."""
        return self.call(self._controller.serve(use))

    def serve_parameters(
        self, store: str, clients: Sequence[str], plane: int, cached_blocks: int, ip_version: IpVersion = 4
    ) -> ParameterGroup:
        """See `FabricController.serve_parameters`."""
        return self.call(self._controller.serve_parameters(store, clients, plane, cached_blocks, ip_version))

    def set_ecn(self, profiles: Mapping[int, EcnProfile] | None, at: EcnDepth | None = None) -> None:
        """See `FabricController.set_ecn`."""
        self.call(self._controller.set_ecn(profiles, at))

    def link_down(self, link: FabricLink) -> Repair:
        """See `FabricController.link_down`."""
        return self.call(self._controller.link_down(link))

    def configure(self, chosen: object) -> None:
        """See `FabricController.configure`."""
        self.call(self._controller.configure(chosen))

    def link_up(self, link: FabricLink) -> Repair:
        """See `FabricController.link_up`."""
        return self.call(self._controller.link_up(link))

    def planned_paths(self, plane: int) -> PlannedPaths:
        """See `FabricController.planned_paths`."""
        return self.call(self._controller.planned_paths(plane))

    @property
    def dropped_packet_ins(self) -> int:
        """Packets from all switches that were dropped because `FabricController.packet_ins` was full."""
        return self._controller.dropped_packet_ins.total()

    def read_counters(self) -> dict[str, SwitchCounters]:
        """See `FabricController.read_counters`."""
        return self.call(self._controller.read_counters())

    def read_aggregated_packets(self) -> int:
        """See `FabricController.read_aggregated_packets`."""
        return self.call(self._controller.read_aggregated_packets())

    def read_depth_ages(self) -> dict[str, DepthAges]:
        """See `FabricController.read_depth_ages`."""
        return self.call(self._controller.read_depth_ages())

    def read(self, switch: str, entities: Iterable[Any]) -> list[Any]:
        """Read finsy entities from a switch; see `SwitchSession.read`."""
        return self.call(self._controller.session(switch).read(entities))

    def read_counter(self, switch: str, name: str, index: int | None = None) -> dict[int, Count]:
        """See `weft.controller.arrays.read_counter`."""
        return self.call(arrays.read_counter(self._controller.session(switch), name, index))

    def read_direct_counter(self, switch: str, name: str) -> list[DirectCount]:
        """See `weft.controller.arrays.read_direct_counter`."""
        return self.call(arrays.read_direct_counter(self._controller.session(switch), name))

    def read_register(self, switch: str, name: str, index: int | None = None) -> dict[int, int]:
        """See `weft.controller.arrays.read_register`."""
        return self.call(arrays.read_register(self._controller.session(switch), name, index))


async def cancel_other_tasks() -> None:
    """Cancel tasks that an interrupted call may have left."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
