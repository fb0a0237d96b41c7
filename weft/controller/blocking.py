"""The fabric's controller for callers without an event loop: it runs in a separate thread or in virtual time."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from weft.controller import arrays
from weft.controller.fabric import FabricController
from weft.controller.session import SwitchSession

_Result = TypeVar("_Result")
_Given = ParamSpec("_Given")


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


def _blocking(
    coroutine: Callable[Concatenate[FabricController, _Given], Coroutine[Any, Any, _Result]],
) -> Callable[Concatenate[BlockingFabricController, _Given], _Result]:
    """Return a method that waits for a coroutine's result."""

    @functools.wraps(coroutine)
    def method(face: BlockingFabricController, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return face.call(coroutine(face.controller, *args, **kwargs))

    return method


def _on_loop(
    function: Callable[Concatenate[FabricController, _Given], _Result],
) -> Callable[Concatenate[BlockingFabricController, _Given], _Result]:
    """Return a method that calls a plain one in the loop's thread, between the coroutines' steps."""

    @functools.wraps(function)
    async def coroutine(controller: FabricController, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return function(controller, *args, **kwargs)

    return _blocking(coroutine)


def _iterating(
    function: Callable[Concatenate[FabricController, _Given], AsyncIterator[_Result]],
) -> Callable[Concatenate[BlockingFabricController, _Given], Iterator[_Result]]:
    """Return a method that waits for each item of an asynchronous iterator that does not end."""

    @functools.wraps(function)
    def method(face: BlockingFabricController, /, *args: _Given.args, **kwargs: _Given.kwargs) -> Iterator[_Result]:
        items = function(face.controller, *args, **kwargs)

        async def following() -> _Result:
            return await anext(items)

        while True:
            yield face.call(following())

    return method


def _of_switch(
    coroutine: Callable[Concatenate[SwitchSession, _Given], Coroutine[Any, Any, _Result]],
) -> Callable[Concatenate[BlockingFabricController, str, _Given], _Result]:
    """Return a method that waits for a coroutine's result; its first argument names the session's switch."""

    @functools.wraps(coroutine)
    def method(face: BlockingFabricController, switch: str, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return face.call(coroutine(face.controller.session(switch), *args, **kwargs))

    return method


class _Attribute(Generic[_Result]):
    """An attribute or a property of the controller, which `read` returns; setting it sets the controller's."""

    def __init__(self, read: Callable[[FabricController], _Result]) -> None:
        self._read = read

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, face: BlockingFabricController, _owner: type) -> _Result:
        return self._read(face.controller)

    def __set__(self, face: BlockingFabricController, value: _Result) -> None:
        setattr(face.controller, self._name, value)


class BlockingFabricController:
    """`FabricController` with blocking calls. Use as a context manager, which starts and closes `controller`.

    Everything public is there by the same name, made from the controller's own declaration: coroutines return their
    results, and asynchronous iterators are plain ones.
    """

    def __init__(self, controller: FabricController, runner: LoopRunner | None = None) -> None:
        self.controller = controller
        self._runner = runner or LoopThread()

    def __enter__(self) -> Self:
        self._runner.start()
        try:
            self.call(self.controller.__aenter__())
        except BaseException:
            self._runner.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        finally:
            self._runner.stop()

    def call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine on the controller's loop and return its result; Ctrl-C cancels it."""
        return self._runner.run(coroutine)

    read = _of_switch(SwitchSession.read)
    read_counter = _of_switch(arrays.read_counter)
    read_direct_counter = _of_switch(arrays.read_direct_counter)
    read_register = _of_switch(arrays.read_register)

    fabric = _Attribute(lambda it: it.fabric)
    avoided = _Attribute(lambda it: it.avoided)
    lease_s = _Attribute(lambda it: it.lease_s)
    dilation = _Attribute(lambda it: it.dilation)
    first_election_id = _Attribute(lambda it: it.first_election_id)
    written = _Attribute(lambda it: it.written)
    on_evicted = _Attribute(lambda it: it.on_evicted)
    on_event = _Attribute(lambda it: it.on_event)
    settings = _Attribute(lambda it: it.settings)
    targets = _Attribute(lambda it: it.targets)
    failures = _Attribute(lambda it: it.failures)
    routed_around = _Attribute(lambda it: it.routed_around)
    jobs = _Attribute(lambda it: it.jobs)
    lost_switches = _Attribute(lambda it: it.lost_switches)
    left_out = _Attribute(lambda it: it.left_out)
    dropped_packet_ins = _Attribute(lambda it: it.dropped_packet_ins)
    has_lost_jobs = _Attribute(lambda it: it.has_lost_jobs)
    connect = _blocking(FabricController.connect)
    apply = _blocking(FabricController.apply)
    recover = _blocking(FabricController.recover)
    add_job = _blocking(FabricController.add_job)
    nics_with_trees = _blocking(FabricController.nics_with_trees)
    was_evicted = _blocking(FabricController.was_evicted)
    note_evicted = _blocking(FabricController.note_evicted)
    remove_job = _blocking(FabricController.remove_job)
    discard_job = _blocking(FabricController.discard_job)
    job_epoch = _blocking(FabricController.job_epoch)
    job_uses_avoided = _blocking(FabricController.job_uses_avoided)
    serve = _blocking(FabricController.serve)
    serve_parameters = _blocking(FabricController.serve_parameters)
    planned_paths = _blocking(FabricController.planned_paths)
    set_acl = _blocking(FabricController.set_acl)
    set_ecn = _blocking(FabricController.set_ecn)
    configure = _blocking(FabricController.configure)
    link_down = _blocking(FabricController.link_down)
    links_down = _blocking(FabricController.links_down)
    rewire = _blocking(FabricController.rewire)
    link_up = _blocking(FabricController.link_up)
    switch_down = _blocking(FabricController.switch_down)
    switch_up = _blocking(FabricController.switch_up)
    read_counters = _blocking(FabricController.read_counters)
    read_aggregated_packets = _blocking(FabricController.read_aggregated_packets)
    read_ports = _blocking(FabricController.read_ports)
    read_depth_ages = _blocking(FabricController.read_depth_ages)
    read_int_md = _blocking(FabricController.read_int_md)
    read_watched = _blocking(FabricController.read_watched)
    packet_out = _blocking(FabricController.packet_out)
    close = _blocking(FabricController.close)
    write_own = _blocking(FabricController.write_own)
    route_demand = _blocking(FabricController.route_demand)
    route_all = _blocking(FabricController.route_all)
    keep_what_is_written = _blocking(FabricController.keep_what_is_written)
    note_dropped_packet_in = _on_loop(FabricController.note_dropped_packet_in)
    session = _on_loop(FabricController.session)
    memberships = _on_loop(FabricController.memberships)
    packet_ins = _iterating(FabricController.packet_ins)


async def cancel_other_tasks() -> None:
    """Cancel tasks that an interrupted call may have left."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
