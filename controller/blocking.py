"""The fabric's controller for callers without an event loop: it runs in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from controller.counters import SwitchCounters
from controller.ecn import EcnProfile
from controller.fabric import FabricController, GrpcTarget, Repair
from controller.jobs import JobMembership
from controller.pipeline import Pipeline
from controller.plan import Settings
from topologies import FabricSpec
from topologies.addressing import IpVersion

_Result = TypeVar("_Result")


class BlockingFabricController:
    """`FabricController`, each call waiting for its result. Use as a context manager, from any thread."""

    def __init__(
        self,
        fabric: FabricSpec,
        pipeline: Pipeline,
        targets: Mapping[str, GrpcTarget],
        settings: Settings | None = None,
        seed: int = 0,
        timeout_s: float = 60.0,
        push: bool = True,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="controller", daemon=True)
        self._controller = FabricController(fabric, pipeline, targets, settings, seed, timeout_s, push)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.call(self._controller.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.call(self._controller.close())
        finally:
            self._stop()

    @property
    def controller(self) -> FabricController:
        """The controller itself; run its coroutines with `call`."""
        return self._controller

    def call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine on the controller's loop and return its result; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def add_job(
        self,
        job_id: int,
        hosts: Sequence[str],
        slot_count: int,
        planes: Iterable[int] | None = None,
        ip_version: IpVersion = 4,
    ) -> dict[str, tuple[JobMembership, ...]]:
        """See `FabricController.add_job`."""
        return self.call(self._controller.add_job(job_id, hosts, slot_count, planes, ip_version))

    def remove_job(self, job_id: int) -> None:
        """See `FabricController.remove_job`."""
        self.call(self._controller.remove_job(job_id))

    def set_ecn(self, profiles: Mapping[int, EcnProfile] | None) -> None:
        """See `FabricController.set_ecn`."""
        self.call(self._controller.set_ecn(profiles))

    def link_down(self, a: str, b: str) -> Repair:
        """See `FabricController.link_down`."""
        return self.call(self._controller.link_down(a, b))

    def link_up(self, a: str, b: str) -> Repair:
        """See `FabricController.link_up`."""
        return self.call(self._controller.link_up(a, b))

    def read_counters(self) -> dict[str, SwitchCounters]:
        """See `FabricController.read_counters`."""
        return self.call(self._controller.read_counters())

    def _stop(self) -> None:
        asyncio.run_coroutine_threadsafe(_cancel_other_tasks(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_other_tasks() -> None:
    """End what an interrupted call may have left behind."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
