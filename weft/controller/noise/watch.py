"""Looks for noisy parts of a running fabric, and has them taken out of use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from weft.controller.link_readings import LinkReadings, Read
from weft.controller.noise.evidence import Evidence, NoisyPart
from weft.controller.noise.flaps import flapping_links
from weft.controller.noise.int_stamps import IntStamps, Stack
from weft.controller.noise.limits import LEAST_GAPS, LEAST_NIC_GAPS, NoiseLimits
from weft.controller.noise.losses import LossCount, Lost, lossy_directions
from weft.controller.noise.pauses import Paused, PauseWatch, pausing_ports
from weft.controller.noise.rates import NicState, PortQueue, RateWatch, gap_ps, nic_queues
from weft.controller.noise.stragglers import Computations, slow_ranks
from weft.controller.noise.taking_out import TakingOut
from weft.controller.operations import Operations
from weft.quantities.units import PS_PER_US
from weft.topologies import Endpoint, FabricLink


@dataclass(frozen=True)
class NoiseSettings:
    """Settings from a scenario's `health` section.

    Attributes:
        limits: thresholds.
        interval_ps: time between two readings of counters.
        acts: whether noisy parts are taken out of use; False only reports them.

    """

    limits: NoiseLimits = field(default_factory=NoiseLimits)
    interval_ps: int = 50 * PS_PER_US
    acts: bool = True


class PortReader(Protocol):
    """Reads what ports hold and have sent; ports that cannot be read are missing."""

    async def queues(
        self, least_waiting_bytes: Mapping[Endpoint, int], gaps_ps: Mapping[Endpoint, int]
    ) -> Mapping[Endpoint, tuple[PortQueue, PortQueue]]:
        """Return two states of those ports where at least so many bytes wait, this time apart."""

    async def nics(self, gaps_ps: Mapping[Endpoint, int]) -> Mapping[Endpoint, tuple[NicState, NicState, NicState]]:
        """Return three states of hosts' ports, each this time after the one before; none of NICs with costs."""

    async def stacks(self) -> Sequence[Stack]:
        """Return the latest INT stacks; none where ports may be held, of which INT says nothing."""

    async def paused(self, ports: Iterable[Endpoint]) -> Mapping[Endpoint, Paused]:
        """Return how long ports were held by PFC; ports without it are missing."""


class NoiseWatch:
    """Reads counters in every interval, judges each part among its peers, and keeps what was found in `found`.

    Args:
        operations: of the fabric.
        settings: thresholds, and whether to act.
        readings: of both ends of all links.
        ports: reads switches' ports.
        frame_bytes: largest frame, or segment.
        at_once: packets that a sender counts together.
        notice_ps: time until the controller knows that a link is down. Packets lost in a failure do not make a link
            lossy, so losses wait that long.

    """

    def __init__(
        self,
        operations: Operations,
        settings: NoiseSettings,
        readings: LinkReadings,
        ports: PortReader,
        frame_bytes: int,
        at_once: int = 1,
        notice_ps: int = 0,
    ) -> None:
        self.found: list[NoisyPart] = []
        self._operations = operations
        self._settings = settings
        self._readings = readings
        self._ports = ports
        self._notice_ps = notice_ps
        self._int_stamps = IntStamps(operations.controller)
        self._taking_out = TakingOut(operations, acts=settings.acts)
        self._known: set[tuple[str, str]] = set()
        self._waiting: list[tuple[int, FabricLink, Evidence]] = []
        self._tests = self._tests_of_ranks = 0
        fabric = operations.controller.fabric
        hosts = frozenset(host.name for host in fabric.hosts)
        self._losses = [LossCount(at_once) for _ in readings.directions]
        self._roles: dict[tuple[bool, bool], list[int]] = {}
        self._links: dict[Endpoint, FabricLink] = {}
        self._rates: dict[Endpoint, RateWatch] = {}
        self._stamped: dict[Endpoint, RateWatch] = {}
        self._nics: dict[Endpoint, RateWatch] = {}
        self._gaps_ps: dict[Endpoint, int] = {}
        self._pauses: dict[Endpoint, PauseWatch] = {}
        for number, direction in enumerate(readings.directions):
            sender, receiver = direction.sender, direction.receiver
            role = (sender.node in hosts, receiver.node in hosts)
            self._roles.setdefault(role, []).append(number)
            rate_bps = direction.link.link.rate_bps
            self._links[sender] = direction.link
            self._gaps_ps[sender] = gap_ps(rate_bps, frame_bytes)
            if sender.node in hosts:
                self._nics[sender] = RateWatch(rate_bps, frame_bytes, LEAST_NIC_GAPS)
                continue
            self._rates[sender] = RateWatch(rate_bps, frame_bytes, LEAST_GAPS)
            self._stamped[sender] = RateWatch(rate_bps, frame_bytes, LEAST_GAPS)
            if receiver.node in hosts:
                self._pauses[sender] = PauseWatch()

    async def run(self) -> None:
        """Look in every interval until cancelled."""
        clock = self._operations.clock
        while True:
            began_ps = clock.now_ps()
            await self.look()
            took_ps = clock.now_ps() - began_ps
            await clock.sleep_ps(max(self._settings.interval_ps - took_ps, took_ps, 1))

    async def look(self) -> None:
        """Read all counters once, and act on what they show."""
        self._tests += 1
        self._judge_losses(await self._readings.read())
        await self._judge_rates()
        await self._judge_pauses()
        await self._judge_failures()
        now_ps = self._operations.clock.now_ps()
        due = [each for each in self._waiting if now_ps - each[0] >= self._notice_ps]
        self._waiting = [each for each in self._waiting if each not in due]
        for _, link, evidence in due:
            await self._take_out(link, evidence)

    async def judge_computing(self, groups: Sequence[Sequence[Computations]]) -> None:
        """Compare ranks of a job that has run; each group has the same program."""
        self._tests_of_ranks += 1
        ranks = sum(map(len, groups))
        for group in groups:
            for host, evidence in slow_ranks(group, self._settings.limits, ranks, self._tests_of_ranks):
                if host not in self._operations.hosts_out and self._is_new(host, evidence):
                    self.found.append(await self._taking_out.host(host, evidence))

    def _judge_losses(self, reads: Sequence[Read]) -> None:
        now_ps, directions = self._operations.clock.now_ps(), self._readings.directions
        counts: list[Lost | None] = []
        for direction, read, count in zip(directions, reads, self._losses, strict=True):
            if read.reading is None or read.has_failed:
                self._forget(direction.link)
                count.restart()
            counts.append(None if read.reading is None else count.take(read.reading, read.overtaking))
        # Parts that are known to be noisy say nothing about what is usual.
        fabric = self._operations.controller.fabric
        usual = {
            number: count
            for number, count in enumerate(counts)
            if count is not None and (fabric.link_name(directions[number].link), "lossy") not in self._known
        }
        for numbers in self._roles.values():
            of_role = {number: usual[number] for number in numbers if number in usual}
            for number, evidence in lossy_directions(of_role, self._settings.limits, self._tests, usual):
                named = Evidence(
                    evidence.fault, evidence.measured, evidence.usual, f"{directions[number].name}: {evidence.words}"
                )
                self._waiting.append((now_ps, directions[number].link, named))

    def _forget(self, link: FabricLink) -> None:
        """Forget what a link's failure explains."""
        self._waiting = [each for each in self._waiting if each[1].ends != link.ends]
        for end in (link.a, link.b):
            for watches in (self._rates, self._stamped, self._nics):
                if end in watches:
                    watches[end].restart()

    async def _judge_rates(self) -> None:
        least = {end: watch.least_waiting_bytes for end, watch in self._rates.items()}
        for end, (before, after) in (await self._ports.queues(least, self._gaps_ps)).items():
            await self._judge_rate(end, self._rates[end], before, after)
        stacks = await self._ports.stacks()
        for end, pairs in (await self._int_stamps.pairs(stacks, self._operations.clock.now_ps())).items():
            for pair in pairs:
                await self._judge_rate(end, self._stamped[end], *pair, source="INT: ")
        gaps_ps = {end: self._gaps_ps[end] for end in self._nics}
        pairs_of_nics = {end: nic_queues(*states) for end, states in (await self._ports.nics(gaps_ps)).items()}
        for end, pair in pairs_of_nics.items():
            self._nics[end].take(*pair)
        shares = {end: watch.share() for end, watch in self._nics.items()}
        slow = [end for end, share in shares.items() if share is not None and share <= self._settings.limits.slow]
        # Short requests, posted as others complete, look like one long request. They do so on several NICs at once.
        if len(slow) == 1:
            await self._judge_found(slow[0], self._nics[slow[0]])

    async def _judge_rate(
        self, end: Endpoint, watch: RateWatch, before: PortQueue, after: PortQueue, source: str = ""
    ) -> None:
        watch.take(before, after)
        await self._judge_found(end, watch, source)

    async def _judge_found(self, end: Endpoint, watch: RateWatch, source: str = "") -> None:
        if (evidence := watch.found(self._settings.limits)) is not None:
            watch.restart()
            evidence = replace(evidence, words=f"{source}{evidence.words}")
            await self._take_out(self._links[end], evidence, end)

    async def _judge_pauses(self) -> None:
        for end, paused in (await self._ports.paused(self._pauses)).items():
            self._pauses[end].take(paused)
        for end, evidence in list(pausing_ports(self._pauses)):
            await self._take_out(self._links[end], evidence)

    async def _judge_failures(self) -> None:
        links = {each.link.ends: each.link for each in self._readings.directions}
        failures = {ends: count for ends in links if (count := self._operations.failures_of(ends))}
        for ends, evidence in flapping_links(failures, len(links), self._settings.limits):
            await self._take_out(links[ends], evidence)

    async def _take_out(self, link: FabricLink, evidence: Evidence, sender: Endpoint | None = None) -> None:
        """Take out a link, unless it is out of use or known; one that is down waits until it is up."""
        fabric = self._operations.controller.fabric
        if self._taking_out.is_out(link) or not self._is_new(fabric.link_name(link), evidence):
            return
        if sender is not None:
            receiver = link.b if sender == link.a else link.a
            words = f"{sender.node} → {receiver.node}: {evidence.words}"
            evidence = Evidence(evidence.fault, evidence.measured, evidence.usual, words)
        self.found.append(await self._taking_out.link(link, evidence))

    def _is_new(self, part: str, evidence: Evidence) -> bool:
        """Return whether a fault of a part is news, and note it."""
        key = (part, evidence.fault)
        is_new = key not in self._known
        self._known.add(key)
        return is_new
