"""Links that fail and come back under the real clock: the interface of a switch at one end goes down.

Its veth peer loses the carrier, the kernel notifies the embedded switches of both (`weft.port_monitor`),
and the controller is notified. What was lost is unknown, because the kernel holds the packets. Switches also report
what others do to interfaces (`notice`), and the controller reprograms the switches just the same.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from weft.clocks.link_events import LinkEvents, Operation, counters_of_host
from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric_watch import FabricWatch
from weft.controller.link_readings import HostCounters
from weft.controller.operations import Operations
from weft.errors import EnvironmentLacksError
from weft.port_monitor import has_carrier
from weft.quantities.units import NS_PER_S, PS_PER_S
from weft.results.link_events import LinkEventResult
from weft.results.nic_storms import NicStormResult
from weft.results.unfinished_events import ScheduledEvent
from weft.scenario.options import FabricOptions
from weft.topologies import Endpoint, FabricLink, FabricSpec, LinkEnds
from weft.traffic.host_metrics import HostMetrics

_HOSTS_INTERVAL_S = 0.25
_SOCKETS_S = 0.02
"""For which packets wait in sockets at most, where processors are not overloaded."""


class EmulatedLinkEvents(LinkEvents):
    """See LinkEvents. A thread of its own waits for the times; `close` ends it."""

    def __init__(
        self,
        fabric: FabricSpec,
        options: FabricOptions,
        controller: BlockingFabricController,
        operations: Operations,
        epoch_ns: int,
        host_link_up: Callable[[str, int], None] = lambda host, nic: None,
        host_metrics: Callable[[], Mapping[str, HostMetrics]] = dict,
    ) -> None:
        super().__init__(fabric, options, controller, operations)
        self._host_metrics = host_metrics
        self._epoch_ns = epoch_ns
        self._host_link_up = host_link_up
        self._ports_down: set[tuple[str, int]] = set()
        self._unplanned: set[LinkEnds] = set()
        self._numbers = itertools.count()
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="link-events", daemon=True)

    def start(self) -> None:
        """See LinkEvents."""
        self._thread.start()
        super().start()

    def _watches(self) -> list[FabricWatch]:
        """See LinkEvents. Hosts are asked more seldom, because they send nothing while they answer."""
        hosts = {host.name for host in self.fabric.hosts}
        interval_ps = self.operations.settings.interval_ps
        of_hosts = [link for link in self.fabric.links if link.a.node in hosts]
        others = [link for link in self.fabric.links if link.a.node not in hosts]
        return [
            self._watch(others, interval_ps),
            self._watch(of_hosts, max(interval_ps, self._emulated_ps(_HOSTS_INTERVAL_S))),
        ]

    async def _read_hosts(self) -> HostCounters:
        """See LinkEvents; only hosts that answer in time report."""
        found = await asyncio.to_thread(self._host_metrics)
        return {
            Endpoint(name, port): counted
            for name, metrics in found.items()
            for port, counted in enumerate(counters_of_host(metrics["ports"]))
        }

    def _transit_ps(self) -> int:
        """See LinkEvents. Packets may wait in sockets; only that they do not wait for long is certain."""
        return super()._transit_ps() + self._emulated_ps(_SOCKETS_S)

    def _emulated_ps(self, real_s: float) -> int:
        return int(real_s * PS_PER_S / self._options.dilation)

    def notice(self, switch: str, port: int, up: bool) -> None:
        """Record that a switch's port has gained or lost its carrier, whatever the cause. Callable from any thread."""
        self._after(0, lambda: self._port_changed(switch, port, up))

    def _port_changed(self, switch: str, port: int, up: bool) -> None:
        spec = self.fabric.switch(switch).port(port)
        link = self.fabric.link_at(Endpoint(switch, port))
        if up:
            self._ports_down.discard((switch, port))
            if spec.peer_is_host:
                self._host_link_up(spec.peer.node, spec.peer.port)
        elif not has_carrier(spec.interface):
            self._ports_down.add((switch, port))
        else:
            return  # old news
        if up and any((end.node, end.port) in self._ports_down for end in (link.a, link.b)):
            return
        now_ps = self._now_ps()
        result = LinkEventResult(
            self.fabric.link_name(link), "up" if up else "down", self.operations.since_up_ps(now_ps), now_ps
        )
        # Otherwise it was requested, or the other end has reported it.
        if self._is_change(link, result):
            (self._unplanned.discard if up else self._unplanned.add)(link.ends)
            self.results.append(result)
            self._after(self._options.control.detection, lambda: self._replan(link, result))

    def _may_join(self) -> bool:
        """See LinkEvents; whoever took a link down by hand may bring it up again."""
        return super()._may_join() or any(not self._is_up[ends] for ends in self._unplanned.copy())

    def close(self) -> None:
        """Cancel all further events."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _now_ps(self) -> int:
        return int((time.monotonic_ns() - self._epoch_ns) * 1000 / self._options.dilation)

    def _schedule(self, link: FabricLink, result: LinkEventResult, after_ps: int) -> None:
        self._after(after_ps, lambda: self._happen(link, result))

    def _happen(self, link: FabricLink, result: LinkEventResult) -> None:
        if not self._is_change(link, result):
            result.happened_ps = self._now_ps()
            return
        self._apply(link, result)
        self._after(self._options.control.detection, lambda: self._replan(link, result))

    def _replan(self, link: FabricLink, result: LinkEventResult) -> None:
        self._notify_switches(link, result)
        replan = self.operations.link_up if result.state == "up" else self.operations.link_down
        self.note_repair(self._controller.call(replan(link)), result)

    def _schedule_operation(self, operation: Operation, after_ps: int) -> None:
        # In the background: a drain takes its time, and other events do not wait for it.
        self._after(after_ps, lambda: self._controller.call(self.operations.begin(operation())))

    def _schedule_rate(
        self, directions: Sequence[tuple[Endpoint, Endpoint]], rate_bps: int, event: ScheduledEvent
    ) -> None:
        raise NotImplementedError("refused by check_events")

    def _schedule_storm(self, storm: NicStormResult, event: ScheduledEvent) -> None:
        raise NotImplementedError("refused by check_events")

    def _schedule_one_way(self, sender: Endpoint, receiver: Endpoint, result: LinkEventResult) -> None:
        raise NotImplementedError("refused by check_events")

    def _apply(self, link: FabricLink, result: LinkEventResult) -> None:
        # The far end is always a switch's; the near end may be a host's.
        interface = self.fabric.switch(link.b.node).port(link.b.port).interface
        done = subprocess.run(
            ["ip", "link", "set", "dev", interface, result.state], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise EnvironmentLacksError(
                f"{result.link} cannot be brought {result.state}: {done.stderr.strip() or done.stdout.strip()}"
            )
        result.happened_ps = self._now_ps()

    def _notify_switches(self, link: FabricLink, result: LinkEventResult) -> None:
        """Only record the time: the kernel has notified them."""
        result.detected_ps = self._now_ps()

    def _after(self, after_ps: int, action: Callable[[], None]) -> None:
        due_ns = time.monotonic_ns() + int(after_ps * self._options.dilation / 1000)
        with self._changed:
            heapq.heappush(self._due, (due_ns, next(self._numbers), action))
            self._changed.notify()

    def _run(self) -> None:
        while (action := self._next_due()) is not None:
            try:
                action()
            except BaseException as error:
                # `check` raises it, as nobody waits for this thread.
                self._failure = self._failure or error

    def _next_due(self) -> Callable[[], None] | None:
        """Wait for the next action's time; None at the end."""
        with self._changed:
            while not self._closing:
                wait_ns = self._due[0][0] - time.monotonic_ns() if self._due else None
                if wait_ns is not None and wait_ns <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(None if wait_ns is None else wait_ns / NS_PER_S)
        return None
