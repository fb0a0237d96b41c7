"""Links that fail and come back in virtual time.

Everything here runs while all partitions are paused, at the requested picosecond, so that the outcome does
not depend on how they are served.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from weft.clocks.link_events import LinkEvents, Operation
from weft.clocks.switch_configs import faults_config
from weft.clocks.virtual.link_ends import Direction, LinkEnds
from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.clocks.virtual.management import ManagementNetwork
from weft.controller.blocking import BlockingFabricController
from weft.controller.circuits import CircuitControl
from weft.controller.fabric_watch import ConfirmSlow
from weft.controller.link_readings import HostCounters
from weft.controller.operations import Operations
from weft.results.link_events import LinkEventResult, Lost
from weft.results.management import ManagementOutage
from weft.results.nic_storms import NicStormResult
from weft.results.unfinished_events import ScheduledEvent
from weft.scenario.nic import NicSection
from weft.scenario.options import FabricOptions
from weft.topologies import Endpoint, FabricLink, FabricSpec
from weft.traffic.header_sizes import largest_frame_bytes

if TYPE_CHECKING:
    from weft.controller.noise.watch import PortReader


class VirtualLinkEvents(LinkEvents):
    """See LinkEvents. `host_of` returns the place of the host that has a rank."""

    def __init__(
        self,
        fabric: FabricSpec,
        options: FabricOptions,
        ends: LinkEnds,
        loop: VirtualTimeLoop,
        controller: BlockingFabricController,
        operations: Operations,
        management: ManagementNetwork,
        circuits: CircuitControl | None = None,
        host_of: Callable[[int], int] = int,
    ) -> None:
        super().__init__(fabric, options, controller, operations)
        self._host_of = host_of
        self._management = management
        self._circuits = circuits
        self._ends = ends
        self._loop = loop
        # Those that failed last, at one moment.
        self._failed: list[LinkEventResult] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._down: dict[str, tuple[LinkEventResult, list[tuple[Direction, Lost]]]] = {}

    def start(self) -> None:
        """See LinkEvents; changes of circuits are scheduled, too."""
        super().start()
        self._management.begin()
        section, circuits = self._options.circuits, self._circuits
        if circuits is None:
            return
        for item in section.schedule:
            change = partial(circuits.change, item.configuration, section.drain, section.dark_time)
            self._schedule_named(f"circuits {item.configuration}", change, item.at, joins=True)

    def results_now(self) -> list[LinkEventResult]:
        """See LinkEvents."""
        self.check()
        for name in list(self._down):
            self._count_refused(name)
        self._note_recovery()
        return self.results

    async def _read_hosts(self) -> HostCounters:
        """See LinkEvents; the way there and back takes as long as to switches."""
        await self._management.passes()
        await self._loop.sleep_ps(self._options.control.latency)
        return self._ends.host_counters()

    def management_outages(self) -> list[ManagementOutage]:
        """See LinkEvents."""
        return list(self._management.outages)

    def _confirms_slow(self) -> ConfirmSlow:
        """See LinkEvents."""
        return self._confirm_slow

    async def _confirm_slow(self, sender: Endpoint, rate_bps: int) -> bool:
        """See ConfirmSlow: measure a switch's port a few times while packets wait there."""
        from weft.controller.noise.limits import LEAST_GAPS, MOST_SLOW, NoiseLimits
        from weft.controller.noise.rates import RateWatch, gap_ps

        ratio = self.operations.settings.limits.slow_ratio
        if ratio is None or sender.node in {host.name for host in self.fabric.hosts}:
            return ratio is not None
        frame_bytes = self._segment_packets * largest_frame_bytes(self._options.ip_version, self._options.mtu_bytes)
        watch, reader = RateWatch(rate_bps, frame_bytes), self._port_reader()
        for _ in range(LEAST_GAPS):
            states = await reader.queues({sender: watch.least_waiting_bytes}, {sender: gap_ps(rate_bps, frame_bytes)})
            for before, after in states.values():
                watch.take(before, after)
        return watch.found(NoiseLimits(slow=min(ratio, MOST_SLOW))) is not None

    def _port_reader(self) -> PortReader:
        """See LinkEvents."""
        from weft.clocks.virtual.port_reader import VirtualPortReader  # it costs nothing where it is not used

        options = self._options
        is_held = bool(options.pfc.classes or options.credits.classes or options.link_retry.links)
        return VirtualPortReader(
            self._ends,
            self.fabric,
            self._loop,
            options.control.latency,
            self._host_of,
            judges_nics=options.nic == NicSection() and not options.transport.kind.spans_planes,
            reads_int=options.int_telemetry and options.transport.kind.carries_int and not is_held,
        )

    def _now_ps(self) -> int:
        return self._loop.now_ps()

    def _schedule(self, link: FabricLink, result: LinkEventResult, after_ps: int) -> None:
        self._loop.call_after_ps(after_ps, lambda: self._happen(link, result))

    def _happen(self, link: FabricLink, result: LinkEventResult) -> None:
        with self._noted():
            if not self._is_change(link, result):
                result.happened_ps = self._now_ps()
                return
            self._apply(link, result)
            self._loop.call_after_ps(self._options.control.detection, lambda: self._detect(link, result))

    def _detect(self, link: FabricLink, result: LinkEventResult) -> None:
        with self._noted():
            self._notify_switches(link, result)
            task = self._loop.create_task(self._notify_controller(link, result))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _notify_controller(self, link: FabricLink, result: LinkEventResult) -> None:
        with self._noted():
            await self._management.passes()
            # The switch's message takes the way of an answer.
            await self._loop.sleep_ps(self._options.control.latency // 2)
            replan = self.operations.link_up if result.state == "up" else self.operations.link_down
            self.note_repair(await replan(link), result)

    def _schedule_operation(self, operation: Operation, after_ps: int) -> None:
        def begin() -> None:
            self.operations.run(operation())

        self._loop.call_after_ps(after_ps, begin)

    def _schedule_rate(
        self, directions: Sequence[tuple[Endpoint, Endpoint]], rate_bps: int, event: ScheduledEvent
    ) -> None:
        def change() -> None:
            event.has_begun = event.has_ended = True
            for each in directions:
                self._ends.direction(*each).transmit.rate_bps = rate_bps

        self._loop.call_after_ps(event.at_ps, change)

    def _schedule_storm(self, storm: NicStormResult, event: ScheduledEvent) -> None:
        def begin() -> None:
            event.has_begun = True
            event.has_ended = storm.until_ps is None
            storm.began_ps = self._now_ps()
            self._ends.storm(storm.host, storm.classes)

        def end() -> None:
            event.has_ended = True
            storm.ended_ps = self._now_ps()
            self._ends.storm(storm.host, ())

        if storm.at_ps is None:
            begin()
        else:
            self._loop.call_after_ps(storm.at_ps, begin)
        if storm.until_ps is not None:
            self._loop.call_after_ps(storm.until_ps, end)

    def _schedule_one_way(self, sender: Endpoint, receiver: Endpoint, result: LinkEventResult) -> None:
        def change() -> None:
            with self._noted():
                result.happened_ps = self._now_ps()
                direction = self._ends.direction(sender, receiver)
                if result.state == "up":
                    direction.link.set_faults(**faults_config(self._options.faults.on(sender, receiver)).model_dump())
                    return
                self._begin_failure(result)
                result.in_flight = direction.lose_all()
                if result.in_flight.packets:
                    result.last_loss_ps = result.last_data_loss_ps = result.happened_ps

        if result.at_ps is None:
            change()
        else:
            self._loop.call_after_ps(result.at_ps, change)

    def _apply(self, link: FabricLink, result: LinkEventResult) -> None:
        result.happened_ps = self._now_ps()
        directions = self._ends.directions(link)
        if result.state == "up":
            if result.link in self._down:
                self._count_refused(result.link)
                del self._down[result.link]
            for direction in directions:
                direction.come_back()
            return
        self._begin_failure(result)
        result.in_flight, result.queued, result.refused = Lost(), Lost(), Lost()
        for direction in directions:
            in_flight, queued = direction.fail()
            result.in_flight.add(in_flight)
            result.queued.add(queued)
        if result.in_flight.packets or result.queued.packets:
            result.last_loss_ps = result.last_data_loss_ps = result.happened_ps
        self._down[result.link] = (result, [(each, each.refused()) for each in directions])

    def _begin_failure(self, result: LinkEventResult) -> None:
        """Attribute what is sent again from now on to this failure, and to others at the same moment."""
        self._note_recovery()
        if self._failed and self._failed[0].happened_ps != result.happened_ps:
            self._failed.clear()
        self._failed.append(result)

    def _note_recovery(self) -> None:
        """Note what hosts have had to send again since the latest failures, and when it arrived."""
        times = self._ends.take_recovery_times()
        if times is None:
            return
        for result in self._failed:
            first_ps, result.last_recovery_ps = times
            if result.first_recovery_ps is None:
                result.first_recovery_ps = first_ps

    def _count_refused(self, name: str) -> None:
        """Bring what was refused since a link's failure up to date."""
        result, directions = self._down[name]
        result.refused = Lost()
        for direction, before in directions:
            now = direction.refused()
            refused = Lost(now.packets - before.packets, now.bytes - before.bytes)
            result.refused.add(refused)
            if refused.packets:
                result.last_loss_ps = max(result.last_loss_ps or 0, direction.last_refused_ps())
            if (last_ps := direction.last_refused_data_ps()) >= (result.happened_ps or 0):
                result.last_data_loss_ps = max(result.last_data_loss_ps or 0, last_ps)

    def _notify_switches(self, link: FabricLink, result: LinkEventResult) -> None:
        self._ends.set_port_up(link, result.state == "up")
        result.detected_ps = self._now_ps()

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Keep an error for `check`: what the loop calls has no caller to raise it to."""
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failure = self._failure or error
