"""The fabric's controller programs all switches concurrently from one plan.

Events (a job, a failed link, new thresholds) change the controller's state. The controller derives a plan from it,
compares the plan with the entries of every switch, and writes the differences to all switches at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from types import TracebackType
from typing import Self

import finsy

from weft.controller.counters import (
    ALL_OF_PORTS,
    PortCounters,
    SwitchCounters,
    read_aggregation,
    read_counters,
    read_port_counters,
)
from weft.controller.demand import Demand, DemandLoads, DemandSettings
from weft.controller.entities import Entity
from weft.controller.errors import ControllerError, JobError, LostTreesError, NoSlotsError, SettingError
from weft.controller.fabric_events import FabricEvent, SwitchEvent, SwitchStarted, link_changes
from weft.controller.fabric_switches import FabricSwitches, on_all
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.features import Settings
from weft.controller.features.acl import AclRule, AclSettings
from weft.controller.features.depth_ages import DepthAges, read_depth_ages
from weft.controller.features.ecn import EcnDepth, EcnProfile, EcnSettings
from weft.controller.features.int_md import read_int_md, read_watched
from weft.controller.features.parameter_cache import ParameterCacheSettings, ParameterGroup
from weft.controller.features.services import ServicesSettings
from weft.controller.grpc_targets import Channel, GrpcTarget, open_channel
from weft.controller.job import Job
from weft.controller.job_rates import packet_gap_s
from weft.controller.jobs import MAX_EPOCH, JobTable
from weft.controller.leases import Admit, Leases, Packets, counted
from weft.controller.lossless import LosslessSettings
from weft.controller.memberships import JobMembership
from weft.controller.own_entries import OwnOperation
from weft.controller.packet_ins import PacketIn, PacketIns
from weft.controller.pipeline import SLOT_REGISTER, Pipeline, Pipelines
from weft.controller.plan import FabricState, Planner
from weft.controller.planned_paths import PlannedPaths
from weft.controller.queue_keys import QueueKeys, random_queue_key
from weft.controller.reconcile import EncodedUpdate
from weft.controller.recovery import Recovery, read_held_jobs, read_job_entries, recovered
from weft.controller.repair import Repair, Written
from weft.controller.route_scope import ALL_ROUTES
from weft.controller.routing.channels import cycle_text
from weft.controller.routing.single_paths import ECMP, takes_single_paths
from weft.controller.runtime_entries import EntriesSettings
from weft.controller.services import GROUP_ID, ServiceGroup, ServiceTable, ServiceUse
from weft.controller.session import FIRST_ELECTION_ID, StreamEvent, SwitchSession
from weft.controller.tenants import TenantSettings
from weft.controller.trees import has_tree
from weft.topologies import FabricLink, FabricSpec
from weft.topologies.addressing import CPU_PORT, IpVersion


class FabricController:
    """Programs all switches of a fabric. Use as an asynchronous context manager.

    ```
    async with FabricController(fabric, pipeline, targets) as controller:
        memberships = await controller.add_job(1, ["h0", "h1"], slot_count=512)
    ```

    Args:
        fabric: the fabric that the switches form.
        pipeline: program to push to all switches, or one program for each switch, by name.
        targets: address of each switch's server, by switch name.
        settings: the operator's choices.
        queue_keys: draws the jobs' secrets; random by default, repeatable where runs must repeat.
        timeout_s: timeout of each call.
        push: load the program on entering; if false, switches that already run it keep it and get only differences.
        open_channel: opens a channel to a target's address, from `grpc.aio` or a compatible library.
        on_dropped: called with a copy of `dropped_packet_ins` after it has changed, at most once a second.
        preempt: outbid a controller that is primary; it becomes primary again when this one ends.

    Attributes:
        lease_s: how long a job may be idle, by the event loop's clock, before other jobs may take its slots; None: for
            ever.
        dilation: how many times slower than that clock the hosts' clocks run.
        first_election_id: election id of the first bid.
        written: set it to a dictionary before connecting to record the updates written to each switch.
        on_evicted: called with jobs that were removed to make room for others.
        on_event: called with events of a switch's stream, and with `SwitchStarted` and `LinkChanged` after the
            resulting plan is written; packet-ins then go there instead of to `packet_ins`.

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
        open_channel: Callable[[str], Channel] = open_channel,
        on_dropped: Callable[[Mapping[str, int]], None] | None = None,
        preempt: bool = False,
    ) -> None:
        missing = [switch.name for switch in fabric.switches if switch.name not in targets]
        if missing:
            raise SettingError(f"no P4Runtime address for {missing[0]} (given: {', '.join(sorted(targets)) or 'none'})")
        self.fabric = fabric
        self._pipelines: Pipelines = (
            dict.fromkeys((switch.name for switch in fabric.switches), pipeline)
            if isinstance(pipeline, Pipeline)
            else pipeline
        )
        self._settings = settings or Settings()
        self._queue_keys = queue_keys
        self._jobs = self._new_jobs()
        self._leases = Leases()
        self._services = ServiceTable(queue_keys)
        self._failures = NO_FAILURES
        self.avoided = NO_FAILURES
        self.lease_s: float | None = None
        self.dilation = 1.0
        self.first_election_id = FIRST_ELECTION_ID
        self.written: dict[str, list[EncodedUpdate]] | None = None
        self.on_evicted: Callable[[Sequence[Job]], None] = lambda _: None
        self.on_event: Callable[[FabricEvent], None] | None = None
        self._switches = FabricSwitches(targets, self._pipelines, timeout_s, push, open_channel, preempt)
        self._single_paths = _with_single_paths(self._pipelines)
        self._planner = Planner(fabric, self._single_paths)
        self._packet_ins = PacketIns(on_dropped)

    async def __aenter__(self) -> Self:
        try:
            await self.connect()
            # Without a new program, switches keep an earlier controller's entries, including its jobs.
            if not self._switches.push:
                await self.recover()
            await self.apply()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @property
    def targets(self) -> Mapping[str, GrpcTarget]:
        """P4Runtime server of each switch, by switch name."""
        return self._switches.targets

    @property
    def failures(self) -> Failures:
        """Links and switches known to be down."""
        return self._failures

    @property
    def routed_around(self) -> Failures:
        """Links and switches that routes bypass: `failures` and `avoided`, which may be up."""
        return self._failures | self.avoided

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All aggregation jobs."""
        return self._jobs.jobs

    @property
    def lost_switches(self) -> tuple[str, ...]:
        """Switches that closed their stream; `switch_down` routes around one."""
        return self._switches.lost

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """Parts of the plan that programs cannot hold: by switch and table or selector, what the program lacks."""
        lacking = {
            name: pipeline.left_out | ({ECMP: f"no table {ECMP}"} if name in self._single_paths else {})
            for name, pipeline in self._pipelines.items()
        }
        return {name: each for name, each in lacking.items() if each}

    @property
    def dropped_packet_ins(self) -> Counter[str]:
        """Packets of each switch dropped because `PACKET_QUEUE_LENGTH` others waited, or because they name no port."""
        return self._packet_ins.dropped

    def note_dropped_packet_in(self, switch: str) -> None:
        """Count a packet that was dropped from another queue, and report it (`on_dropped`)."""
        self._packet_ins.note_dropped(switch)

    def session(self, switch: str) -> SwitchSession:
        """Return the P4Runtime session of a switch, for operations that this class lacks."""
        self.fabric.switch(switch)
        return self._switches.session(switch)

    async def connect(self) -> None:
        """Become primary on every switch and load the program.

        Raises:
            SwitchUnavailableError, NotPrimaryError, RequestRefusedError: the message names the switch.

        """
        for switch in self.fabric.switches:
            self._switches.begin(switch.name, self._take_event)
        await on_all(self._connect_one, self._switches.names)

    async def apply(self, order: Iterable[Collection[str]] = (), hold: Iterable[str] = ()) -> Written:
        """Write the differences between the plan and the switches' entries.

        Switches to be avoided keep their entries for packets still passing through them.

        Args:
            order: groups of switch names, written one group after the other; all other switches go with the last.
            hold: switches to skip this time; the next call writes to them.

        """
        async with self._switches.writing:
            # Another call that changes the state meanwhile writes its own changes.
            plans = self._planner.plan(self._settings, FabricState(self.routed_around, self._jobs.jobs))
            kept = {*self.routed_around.switches, *hold}
            touched = [
                name
                for name in self._switches.names
                # After a failure most switches have the same objects in both plans, so nothing is compared or written.
                if name not in kept and not self._switches.holds(name, plans[name])
            ]
            written = Written()
            for group in _in_groups(touched, order):
                counts = await on_all(lambda name: self._switches.apply(name, plans[name]), group)
                written += Written(sum(counts), tuple(group))
            return written

    def _new_jobs(self, first_epoch: int = 1) -> JobTable:
        return JobTable(
            self.fabric,
            {name: pipeline.slot_capacity() for name, pipeline in self._pipelines.items()},
            self._queue_keys,
            first_epoch,
            self._settings.of(TenantSettings),
            self._settings.placement,
            min(pipeline.lane_count() for pipeline in self._pipelines.values()),
        )

    async def recover(self) -> Recovery:
        """Forget the known entries of all switches and take over the jobs found on them.

        The next `apply` reads the entries back and removes remains of other jobs. Hosts are not affected. A controller
        that enters without `push` recovers automatically.
        """
        names = [name for name in self._switches.names if name not in self._failures.switches]
        # Others may have written meanwhile, so known entries may be outdated.
        for name in names:
            self._switches.forget(name)
        held = await on_all(lambda name: read_held_jobs(self._switches.session(name)), names)
        found = recovered(self.fabric, dict(zip(names, held, strict=True)))
        # If switches do not report the epochs that slots have seen, start far from earlier jobs' epochs.
        ahead = 1 if found.knows_epochs else MAX_EPOCH // 2
        last = max((job.epoch for job in found.jobs), default=0)
        self._jobs = self._new_jobs((last + ahead - 1) % MAX_EPOCH + 1)
        self._leases = Leases()
        refused = self._jobs.adopt(found.jobs, found.epochs)
        return replace(found, jobs=self._jobs.jobs, lost={**found.lost, **refused})

    async def add_job(
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
        place: int = 0,
    ) -> dict[str, tuple[JobMembership, ...]]:
        """Admit an aggregation job and program its trees; all its packets have one IP version.

        `tenant`, `share` (of each link's rate) and `place` are as in `JobTable.add`. If slots are lacking, jobs that
        have been idle for a lease are removed, except those in `keep`. Detecting idleness takes a lease; without
        `wait`, only jobs that earlier admissions saw idle for a lease are removed.

        Returns:
            By host name, one membership per plane.

        Raises:
            JobError: the job is impossible. LostTreesError: a failure destroyed its trees before they were programmed.

        """
        self._require_slots(job_id)
        await self._admit(
            lambda jobs: jobs.add(
                job_id, hosts, slot_count, planes, self.routed_around, ip_version, tenant, share, place
            ),
            keep,
            wait,
        )
        programmed = None
        # A failure meanwhile may move the job to other trees in another epoch, or remove it.
        while (epoch := self._jobs.epoch(job_id)) not in (programmed, None):
            try:
                await self.apply()
            except ControllerError:
                self._jobs.discard(job_id)
                raise
            programmed = epoch
        if epoch is None:
            why = self._jobs.why_lost(job_id) or "it was removed"
            raise LostTreesError(f"job {job_id} has lost its trees while they were programmed: {why}")
        return self._jobs.memberships(job_id)

    def _require_slots(self, job_id: int) -> None:
        for name, pipeline in self._pipelines.items():
            if not pipeline.slot_capacity():
                raise JobError(f"job {job_id}: {name} cannot aggregate: its program has no register {SLOT_REGISTER}")

    async def _admit(self, admit: Admit, keep: Collection[int], wait: bool) -> None:
        """Admit a job, removing idle ones if necessary. Raises JobError if that is not enough."""
        try:
            admit(self._jobs)
        except NoSlotsError:
            if self.lease_s is None:
                raise
            evicted = await self._leases.make_room(
                lambda: self._jobs, admit, self._read_job_packets, self._lease_of, keep, wait
            )
            for job in evicted:
                self._jobs.note_evicted(job.job_id)
            self.on_evicted(evicted)

    def _lease_of(self, job_id: int) -> float:
        """Return a job's lease; longer if its promised rate is so low that packets are rare."""
        assert self.lease_s is not None
        known = {job.job_id: job for job in self.jobs}
        gap_s = packet_gap_s(self.fabric, known[job_id]) if job_id in known else 0.0
        return self.lease_s + 2 * gap_s * self.dilation

    async def _read_job_packets(self) -> Packets:
        names = [name for name in self._switches.names if name not in self._failures.switches]
        held = await on_all(lambda name: read_job_entries(self._switches.session(name)), names)
        return counted(
            [
                {(job_id, each.parameters["epoch"]): each.packets for job_id, each in of_switch.items()}
                for of_switch in held
            ]
        )

    async def nics_with_trees(self, planes: Iterable[int], jobs: Iterable[Sequence[str]]) -> tuple[int, ...]:
        """Return the numbers of NICs in planes over which every one of these jobs has a tree at present.

        Jobs are given by their hosts.
        """
        avoided, each_once = self.routed_around, dict.fromkeys(map(tuple, jobs))
        return tuple(
            nic
            for plane in planes
            for place, nic in enumerate(self.fabric.nics_of_planes[plane])
            if avoided == NO_FAILURES or all(has_tree(self.fabric, plane, hosts, avoided, place) for hosts in each_once)
        )

    async def was_evicted(self, job_id: int) -> bool:
        """Return whether a job was removed because it was idle and others needed its slots."""
        return self._jobs.was_evicted(job_id)

    async def note_evicted(self, job_id: int) -> None:
        """Note that an evicted job could not be added again and has no slots."""
        self._jobs.note_evicted(job_id)

    async def remove_job(self, job_id: int) -> None:
        """Remove a job's trees and free its slots. JobError: there is no such job."""
        self._jobs.remove(job_id)
        await self.apply()

    async def discard_job(self, job_id: int) -> None:
        """Like `remove_job`, for a job that a failure may have removed already."""
        self._jobs.discard(job_id)
        await self.apply()

    async def job_epoch(self, job_id: int) -> int | None:
        """Return a job's present epoch, None if it is gone; hosts with another epoch have outdated trees."""
        return self._jobs.epoch(job_id)

    @property
    def has_lost_jobs(self) -> bool:
        """Whether failures have left jobs without trees."""
        return self._jobs.has_lost

    async def job_uses_avoided(self, job_id: int) -> bool:
        """Return whether a job's trees use anything in `avoided`; adding the job again moves it to other trees."""
        return self._jobs.is_hit_by(job_id, self.avoided)

    async def serve(self, use: ServiceUse) -> ServiceGroup:
        """Program switches to serve a group, replacing the previous one; give hosts their `service_memberships`.

        Raises:
            JobError: no tree reaches the hosts, or switches lack room for the group.

        """
        group = self._services.plan(self.fabric, use, self.routed_around)
        await self.configure(ServicesSettings((group,)))
        return group

    async def serve_parameters(
        self, store: str, clients: Sequence[str], plane: int, cached_blocks: int, ip_version: IpVersion = 4
    ) -> ParameterGroup:
        """Program switches to serve a group with a parameter store, replacing the previous one."""
        epoch, q_key = self._services.next_use()
        group = ParameterGroup(GROUP_ID, epoch, q_key, store, tuple(clients), plane, cached_blocks, ip_version)
        await self.configure(ParameterCacheSettings((group,)))
        return group

    async def planned_paths(self, plane: int) -> PlannedPaths:
        """Return a plane's paths in the latest plan."""
        return self._planner.paths(plane)

    def memberships(self, job_id: int) -> dict[str, tuple[JobMembership, ...]]:
        """Return a job's memberships by host name, one per plane."""
        return self._jobs.memberships(job_id)

    async def set_acl(self, rules: Iterable[AclRule]) -> None:
        """Apply an access list on all switches; `punt` rules feed `packet_ins`."""
        await self.configure(AclSettings(tuple(rules)))

    async def set_ecn(self, profiles: Mapping[int, EcnProfile] | None, at: EcnDepth | None = None) -> None:
        """Apply ECN thresholds by class; None scales the defaults to each port's rate.

        `at` selects the queue depth that decides about marking; None leaves it unchanged.
        """
        now = self._settings.of(EcnSettings)
        await self.configure(EcnSettings(profiles, at or now.at, now.scales))

    async def configure(self, chosen: object) -> None:
        """Apply a feature's settings, such as `EcnSettings`, on all switches."""
        self._settings = self._settings.with_feature(chosen)
        await self.apply()

    async def route_demand(self, matrix: tuple[Demand, ...]) -> tuple[DemandLoads, ...]:
        """Choose routes for this traffic, if the kind of routing follows demand; return the loads of each plane."""
        await self.configure(DemandSettings(matrix))
        return self._planner.demand_loads()

    async def route_all(self) -> None:
        """Add routes to every address; see `ALL_ROUTES`."""
        self._settings = replace(self._settings, routes=ALL_ROUTES)
        await self.apply()

    async def link_down(self, link: FabricLink) -> Repair:
        """Route around a link, recompute groups and rebuild the trees that used it."""
        return await self._replan(self._failures.with_link(link))

    async def links_down(self, links: Iterable[FabricLink]) -> Repair:
        """Do the same as `link_down` for several links at once."""
        ends = frozenset(link.ends for link in links)
        return await self._replan(self._failures | Failures(links=ends))

    async def rewire(self, fabric: FabricSpec, removed: Iterable[FabricLink]) -> Repair:
        """Route over new circuits: `fabric` is this fabric in another configuration, without the `removed` links."""
        self.fabric = fabric
        self._planner = Planner(fabric)
        self._jobs.rewire(fabric)
        gone = {link.ends for link in removed}
        return await self._replan(Failures(self._failures.links - gone, self._failures.switches))

    async def link_up(self, link: FabricLink) -> Repair:
        """Use a link again; trees stay in place."""
        return await self._replan(self._failures.without_link(link))

    async def switch_down(self, name: str) -> Repair:
        """Route around a switch and stop writing to it."""
        self.fabric.switch(name)
        self._switches.forget(name)
        return await self._replan(self._failures.with_switch(name))

    async def switch_up(self, name: str) -> Repair:
        """Reconnect to a switch, load its program and use it again."""
        self.fabric.switch(name)
        await self._switches.session(name).close()
        self._switches.begin(name, self._take_event)
        await self._connect_one(name)
        repair = await self._replan(self._failures.without_switch(name))
        if self.on_event is not None:
            self.on_event(SwitchStarted(name))
        return repair

    async def read_counters(self) -> dict[str, SwitchCounters]:
        """Read all counters of all switches that are up, by switch name."""
        names = self._switches_up()
        counters = await on_all(self._read_counters_of, names)
        return dict(zip(names, counters, strict=True))

    async def read_aggregated_packets(self) -> int:
        """Read how many packets the aggregation slots of all switches that are up processed."""
        counters = await on_all(lambda name: read_aggregation(self._switches.session(name)), self._switches_up())
        return sum(each.aggregated_packets for each in counters)

    async def read_ports(
        self, ports: Mapping[str, Collection[int]], counters: Collection[str] = ALL_OF_PORTS
    ) -> dict[str, dict[int, PortCounters]]:
        """Read counters of some ports of switches that are up, by switch name and port; zeros are omitted.

        Only the named `counters` are read; the others stay zero.
        """
        names = [name for name in ports if name not in self._failures.switches]
        found = await on_all(
            lambda name: read_port_counters(self._switches.session(name), ports[name], counters), names
        )
        return dict(zip(names, found, strict=True))

    async def read_int_md(self) -> dict[str, dict[str, int]]:
        """Read what all switches that are up counted of INT-MD, by name and event."""
        names = self._switches_up()
        events = await on_all(lambda name: read_int_md(self._switches.session(name)), names)
        return dict(zip(names, events, strict=True))

    async def read_watched(self) -> dict[str, dict[int, int]]:
        """Read how many packets each item of INT-MD's watchlist matched, by switch that is up and the item's number.

        The fabric's program must have INT-MD.
        """
        names = self._switches_up()
        found = await on_all(lambda name: read_watched(self._switches.session(name)), names)
        return dict(zip(names, found, strict=True))

    async def read_depth_ages(self) -> dict[str, DepthAges]:
        """Read the age of the queue depths used by adaptive choices, for all switches that are up, by name."""
        names = self._switches_up()
        target = self._settings.target
        ages = await on_all(lambda name: read_depth_ages(self._switches.session(name), target), names)
        return dict(zip(names, ages, strict=True))

    def _switches_up(self) -> list[str]:
        return [name for name in self._switches.names if name not in self._failures.switches]

    async def _read_counters_of(self, name: str) -> SwitchCounters:
        ports = [port.number for port in self.fabric.switch(name).ports]
        return await read_counters(self._switches.session(name), [*ports, CPU_PORT])

    def packet_ins(self) -> AsyncIterator[PacketIn]:
        """Packets that switches send to the controller, in order of arrival.

        Up to `PACKET_QUEUE_LENGTH` packets wait here; further packets are dropped and counted.
        """
        return self._packet_ins.fetched()

    async def packet_out(self, switch: str, port: int, payload: bytes) -> None:
        """Send a packet out of a switch's port, bypassing its tables."""
        self.fabric.switch(switch).port(port)
        await self.session(switch).send_packet(payload, egress_port=port, reserved=0)

    async def close(self) -> None:
        """End all sessions; the switches keep their entries."""
        self._packet_ins.close()
        await self._switches.close()

    async def _connect_one(self, name: str) -> None:
        entries = self._settings.of(EntriesSettings)
        await self._switches.connect(name, entries, self.first_election_id, self.written)

    async def write_own(self, name: str, operation: OwnOperation, entity: Entity) -> None:
        """Insert, modify or delete a user's entity, which overrides a planned entity with the same key.

        Raises:
            SettingError: the key already exists, or does not. RequestRefusedError: the switch rejected the update.

        """
        await self._switches.write_own(name, operation, entity)

    async def keep_what_is_written(self, name: str) -> None:
        """Treat a switch's unplanned entities as the user's, as if `write_own` had written them."""
        await self._switches.keep_what_is_written(name)

    async def _replan(self, failures: Failures) -> Repair:
        before = self._failures
        self._failures = failures
        rebuilt, lost = self._jobs.rebuild(failures, self.avoided)
        # Now, because a job may be removed or fail again while this is written.
        memberships = {job.job_id: self._jobs.memberships(job.job_id) for job in rebuilt}
        written = await self.apply()
        if self.on_event is not None:
            for event in link_changes(self.fabric, before, failures):
                self.on_event(event)
        return Repair(memberships, lost, written=written, cycle=self._cycle())

    def _cycle(self) -> str:
        """Return the value of `Repair.cycle` for the present routes."""
        return cycle_text(self._planner.cycle()) if self._settings.of(LosslessSettings).classes else ""

    def _take_event(self, switch: str, event: StreamEvent) -> None:
        if self.on_event is not None:
            self.on_event(SwitchEvent(switch, event))
        elif isinstance(event, finsy.P4PacketIn):
            self._packet_ins.take(switch, event, self._switches.session(switch).schema)


def _with_single_paths(pipelines: Pipelines) -> frozenset[str]:
    """Return the switches running a program without ECMP; each program is checked once."""
    # By identity: hundreds of switches share a program.
    known = {id(each): takes_single_paths(each.names) for each in pipelines.values()}
    return frozenset(name for name, each in pipelines.items() if known[id(each)])


def _in_groups(names: Sequence[str], order: Iterable[Collection[str]]) -> Iterator[list[str]]:
    """Yield the non-empty groups of an order, restricted to `names`; names in no group go with the last."""
    groups = [set(group) for group in order] or [set()]
    groups[-1] |= set(names) - set().union(*groups)
    for group in groups:
        if chosen := [name for name in names if name in group]:
            yield chosen
