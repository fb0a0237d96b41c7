"""A lab of the virtual clock: all switches, links and hosts in partitions, and the controller outside them."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from weft.cache import set_up_kept
from weft.clocks.endpoint_settings import (
    ip_settings,
    nic_settings,
    patient_timeout_ps,
    plane_addresses,
    recording_of,
)
from weft.clocks.exec_commands import CommandOutcome, ExecRun
from weft.clocks.host_programs import ProgramOutcome, ProgramRun
from weft.clocks.lab import Lab, Progress
from weft.clocks.link_events import LinkEvents
from weft.clocks.losses import losses_of
from weft.clocks.switch_configs import links_between_switches
from weft.clocks.switch_memory import host_credits, host_pfc_quanta, lossless_memory_bytes
from weft.clocks.virtual.channel import InProcessChannel
from weft.clocks.virtual.circuits import VirtualCircuits
from weft.clocks.virtual.deadlocks import DeadlockWatch
from weft.clocks.virtual.endpoint import VirtualEndpoint
from weft.clocks.virtual.event_pump import EventPump
from weft.clocks.virtual.flow_paths import FlowPaths
from weft.clocks.virtual.host_programs import VirtualPrograms
from weft.clocks.virtual.link_ends import LinkEnds
from weft.clocks.virtual.link_events import VirtualLinkEvents
from weft.clocks.virtual.loop import VirtualTimeLoop, VirtualTimeRunner
from weft.clocks.virtual.management import ManagementNetwork
from weft.clocks.virtual.placement import engines_by_node, place
from weft.clocks.virtual.probes import FabricProbes
from weft.clocks.virtual.processes import ALONE, Processes, of_all
from weft.clocks.virtual.registers import clear_registers, registers_of_runs
from weft.clocks.virtual.scale_up import scale_up_links
from weft.clocks.virtual.specialised_code import SpecialisedCode
from weft.clocks.virtual.stats_of_all import stats_of_all
from weft.clocks.watching import Sample
from weft.controller.blocking import BlockingFabricController
from weft.controller.circuits import CircuitControl
from weft.controller.errors import CommandError
from weft.controller.fabric import FabricController
from weft.controller.failures import Failures
from weft.controller.grpc_targets import embedded_targets
from weft.controller.lossless import LosslessSettings
from weft.controller.operations import Operations
from weft.controller.queue_keys import repeatable_queue_keys
from weft.controller.route_scope import ALL_ROUTES, RouteScope
from weft.controller.routing.ev_paths import EvPaths, EvPathsOfHost
from weft.engine import Engine, Partitions, TransmitPort, _core
from weft.errors import EnvironmentLacksError, translated
from weft.paths import FABRIC_P4
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_NS
from weft.recording.observations import Recorded
from weft.results.packet_conservation import packets_under_way
from weft.scenario.options import FabricOptions
from weft.switch.daemon.manage_service import ManageRequest, UnmanageableError, manage
from weft.switch.daemon.stats import SwitchesStats
from weft.switch.daemon.wired_switches import WiredPort, WiredSwitches
from weft.switch.native import NativeSwitch
from weft.switch.p4runtime.device import Device
from weft.system.scratch import scratch_directory
from weft.topologies import FabricSpec, HostSpec
from weft.topologies.int_rates import IntRates
from weft.topologies.round_trips import RoundTrips, path_round_trip_ps, round_trips_of_planes, slowest_configuration
from weft.traffic.attachment import Attachment, LinkAttachment
from weft.traffic.control import EndpointGroup
from weft.traffic.host import Host
from weft.traffic.host_config import HostConfig
from weft.traffic.host_inside import HostInside
from weft.traffic.jobs.fast_forward import FastForwardGroups
from weft.traffic.transport_settings import PathTraits, TransportSettings

if TYPE_CHECKING:
    from weft.clocks.virtual.exec.commands import VirtualCommands
    from weft.controller.switch_cli import Manage
    from weft.engine.records import ConservationCounts

# What a lab has only while it runs.
_WHILE_RUNNING = (
    "partitions",
    "engines",
    "switches",
    "devices",
    "controller",
    "operations",
    "_loop",
    "_endpoints",
    "_probes",
    "_deadlocks",
    "_link_events",
    "user_controller",
    "circuits",
    "_circuit_ports",
    "specialised_code",
    "_commands",
)
_ROUND_TRIPS_BETWEEN_LOOKS = 16
_MOST_SETTLING_STEPS = 10_000
"""Round trips; what is under way for longer stands still."""


class VirtualLab(Lab):
    """A fabric in virtual time. Needs nothing of the machine; any number at once.

    `partitions` is its clock; `engines` are the nodes' by name. `processes` serve them together.
    """

    shares_memory = True

    def __init__(
        self,
        fabric: FabricSpec,
        options: FabricOptions,
        progress: Progress = lambda _: None,
        processes: Processes = ALONE,
    ) -> None:
        super().__init__(fabric, options, progress)
        self._processes = processes
        self._owners: dict[str, int] = {}
        """Which process serves a node, by name."""
        self.partitions: Partitions
        self.engines: dict[str, Engine]
        self.switches: WiredSwitches
        self.devices: dict[int, Device]
        """P4Runtime's view of the switches, by device id."""
        self._loop: VirtualTimeLoop
        self._endpoints: list[VirtualEndpoint] = []
        self._probes: FabricProbes | None = None
        routes = self.options.routing.ev_routes
        self.ev_paths = None if routes is None else EvPaths(fabric, routes)
        """The paths that EVs name; None: switches hash them."""
        self._link_events: VirtualLinkEvents
        self._deadlocks: DeadlockWatch | None
        self._circuit_ports: VirtualCircuits
        self._commands: VirtualCommands | None = None
        self.specialised_code: SpecialisedCode

    def _build(self, stack: contextlib.ExitStack) -> None:
        stack.callback(self._let_go)
        self.directory = stack.enter_context(scratch_directory())
        self._compile()
        with set_up_kept():
            self._build_fabric(stack)

    def _fail_if_unwound(self) -> None:
        # Before the controller is closed, which takes virtual time: others, who may not fail, would not take part.
        if (error := sys.exception()) is not None:
            self._processes.fail(error)

    def _let_go(self) -> None:
        """Drop all that takes memory and descriptors, and the cycles in it.

        The collector then need not find them; it cannot find those that go through the engine. So a lab or a traceback
        that is still referenced keeps none of it alive.
        """
        if "partitions" in vars(self):
            self.partitions.forget_scheduled()
        for name in _WHILE_RUNNING:
            vars(self).pop(name, None)
        gc.unfreeze()

    def _close_captures(self) -> None:
        # A failed capture is reported where it is ended; here another error may be propagating.
        with contextlib.suppress(OSError):
            self.switches.close()

    def _build_fabric(self, stack: contextlib.ExitStack) -> None:
        hosts, switches = len(self.fabric.hosts), len(self.fabric.switches)
        self._progress(f"building {counted(hosts, 'host')} and {counted(switches, 'switch', 'switches')}")
        self.partitions = Partitions(seed=self.options.seed, workers=self.options.workers)
        self.engines = engines_by_node(self.fabric, self.partitions, together=self.runs_commands)
        self._loop = VirtualTimeLoop(self.partitions)
        stack.callback(self._loop.close)
        self.switches = WiredSwitches(
            place(self.fabric, self.partitions, self.engines),
            self.switch_configs,
            links_between_switches(self.fabric),
        )
        stack.callback(self._close_captures)
        self._circuit_ports = VirtualCircuits(self.fabric, self.switches)
        if self._processes.count > 1:
            self.partitions.distribute(self._processes.number, self._processes.count, self._processes.exchange)
        self._owners = {name: self.partitions.process_of(engine) for name, engine in self.engines.items()}

        self._progress("programming them over P4Runtime")
        self._say_what_is_compiled()
        self.controller = stack.enter_context(self._connect_controller(stack))
        stack.callback(self._fail_if_unwound)
        self.operations = Operations(self.controller.controller, self.options.controller.settings(), self._loop)

    def _route_scope(self) -> RouteScope:
        """Return the addresses of Weft's own traffic, unless users may send or match others."""
        options = self.options
        is_extended = (
            options.p4 != FABRIC_P4
            or options.programs
            or options.entries
            or options.commands
            or options.controller.controller_class is not None
        )
        if self.sends_any_packets or is_extended:
            return ALL_ROUTES
        return RouteScope((options.ip_version,), is_compact=True)

    def _connect_controller(self, stack: contextlib.ExitStack) -> BlockingFabricController:
        devices = self.devices = {}
        pumps: dict[int, EventPump] = {}
        partitions = self.partitions
        for number, wired in self.switches.switches.items():
            devices[number] = wired.device(clock_ns=lambda: partitions.now_ps // PS_PER_NS)
            owner = self._owners[wired.config.name]
            pumps[number] = EventPump(devices[number], wired.switch, self._loop, self._processes, owner)
            stack.callback(pumps[number].close)

        def pump(device_id: int) -> None:
            # What was written may fall due some time: an entry with an idle timeout. Capabilities name no device.
            if device_id in pumps:
                pumps[device_id].pump()

        owners = {number: self._owners[each.config.name] for number, each in self.switches.switches.items()}
        processes = self._processes

        def shared(device_id: int, answers: list[bytes]) -> list[bytes]:
            return processes.of(owners[device_id], f"a Read of switch {device_id}", lambda: answers)

        outages = [(each.at, each.until) for each in self.options.control.outages]
        self._management = ManagementNetwork(self._loop, outages)
        channel = InProcessChannel(devices, self._loop, self.options.control.latency, pump, self._management, shared)
        stack.callback(channel.let_go)
        return BlockingFabricController(
            FabricController(
                self.fabric,
                self.programs.pipelines,
                embedded_targets(self.fabric, "this process"),
                self.settings(),
                queue_keys=repeatable_queue_keys(self.options.seed),
                open_channel=lambda _address: channel,
            ),
            VirtualTimeRunner(self._loop),
        )

    def _manage_switch(self, switch: str) -> Manage:
        wired = self.switches.switches[self.fabric.switch(switch).device_id]

        async def ask(request: dict[str, Any]) -> dict[str, Any]:
            asked = ManageRequest(device_id=wired.config.device_id, **request)
            with translated(UnmanageableError, CommandError):
                return manage(wired, asked, epoch_us=None).model_dump()

        return ask

    @contextlib.contextmanager
    def hosts(self) -> Iterator[EndpointGroup]:
        """Make every host within this process; see Lab."""
        with contextlib.ExitStack() as stack:
            with set_up_kept():
                endpoints = self._make_endpoints(stack)
            stack.callback(self._close_commands)
            group = EndpointGroup(
                endpoints,
                [endpoint.host.config for endpoint in endpoints],
                ip_version=self.options.ip_version,
                clock=self._loop,
                shares_memory=self.shares_memory,
                ways=self,
                losses=partial(losses_of, self.fabric, self.operations),
                repeated=self._fast_forward(endpoints),
            )
            self.operations.on_losses = self._interrupt_waits
            self.operations.on_avoided = self._leave_avoided
            self._endpoints = endpoints
            ends = LinkEnds(
                self.fabric,
                self.switches,
                [endpoint.host for endpoint in endpoints],
                self._processes,
                self._owners,
            )
            if self.fabric.circuits is not None:
                self._circuit_ports.begin(ends)
                self.circuits = CircuitControl(self.operations, self._circuit_ports)
            self._link_events = VirtualLinkEvents(
                self.fabric,
                self.options,
                ends,
                self._loop,
                self.controller,
                self.operations,
                self._management,
                self.circuits,
                group.host_of,
            )
            self._link_events.largest_packet_bytes = self.largest_packet_bytes
            group.follow_parted(self._link_events.parted)
            if self._deadlocks is not None:
                self._deadlocks.endless_storms = self._link_events.endless_storms
            switches = [each.switch for each in self.switches.switches.values()]
            self.specialised_code = SpecialisedCode(self.partitions, switches)
            self.specialised_code.begin()
            yield group

    def _fast_forward(self, endpoints: Sequence[VirtualEndpoint]) -> FastForwardGroups | None:
        """Return what says which operations of jobs may be repeated; None where none is."""
        tolerance = self.options.fidelity.fast_forward
        if tolerance is None:
            return None
        native = _core.FastForward(self.partitions, tolerance)
        for rank, endpoint in enumerate(endpoints):
            native.set_rank(rank, self.engines[endpoint.name], endpoint.host.executor)
        paths = FlowPaths(self.fabric, self.switches, [endpoint.host for endpoint in endpoints])
        return FastForwardGroups(native, self.fabric, paths.of if self.options.keeps_flows_on_paths else None)

    def _make_endpoints(self, stack: contextlib.ExitStack) -> list[VirtualEndpoint]:
        """Make every host; `stack` closes them."""
        latency_ps = self.options.switching.latency
        slowest = slowest_configuration(self.fabric, self.frame_bytes, latency_ps)
        added_ps = self.options.adapters_round_trip_ps(self.options.mtu_bytes)
        round_trips = round_trips_of_planes(slowest, self.frame_bytes, latency_ps, added_ps)
        # Once for all hosts: both look at every port or leaf of the fabric.
        paths = self.options.path_traits(
            patient_timeout_ps(
                slowest,
                self.frame_bytes,
                latency_ps,
                lossless_memory_bytes(slowest, self.options, self.frame_bytes),
                self.options.buffer.capacity,
            )
        )
        transport, rates = self.options.transport.settings(), self.int_rates
        scale_up = scale_up_links(self.fabric, self.engines)
        insides = self._host_insides()
        self._deadlocks = deadlocks = self._deadlock_watch()
        endpoints = []
        for host in self.fabric.hosts:
            config = self._host_config(host, round_trips, transport, paths, rates)
            attach = partial(self._attach, host)
            endpoint = VirtualEndpoint(
                config,
                self.engines[host.name],
                self._loop,
                attach,
                scale_up.get(host.index),
                insides.get(host.index),
                deadlocks,
                self._processes,
                self._owners[host.name],
            )
            stack.callback(endpoint.close)
            endpoints.append(endpoint)
            self._enable_uplink_retry(host, endpoint.host)
        return endpoints

    def _enable_uplink_retry(self, spec: HostSpec, host: Host) -> None:
        """Have a host's ports send again what gets lost on their links, as the switches' ports at the far ends do."""
        for nic, transmit in zip(spec.nics, host.transmit_ports(), strict=True):
            port = self.switches.switches[self.fabric.switch(nic.switch).device_id].ports[nic.switch_port]
            if port.config.retry is not None:
                assert port.uplink_link is not None
                port.uplink_link.enable_retry(transmit, **port.config.retry.model_dump())

    def require_path(self, source: int, destination: int, nic: int) -> None:
        """See FabricSpec.require_path: by the present circuits."""
        self.controller.fabric.require_path(source, destination, nic)

    def relay(self, source: int, destination: int, nic: int) -> int | None:
        """See FabricSpec.relay: by the present circuits."""
        return self.controller.fabric.relay(source, destination, nic)

    def _interrupt_waits(self) -> None:
        """Have the runner look at once which planes and hosts are lost."""
        for endpoint in self._endpoints:
            endpoint.interrupt()

    def _leave_avoided(self, avoided: Failures) -> None:
        """Have queue pairs leave planes out of use and, where EVs name paths, the paths over what is avoided."""
        if self.ev_paths is not None:
            self.ev_paths.avoided = avoided
        planes = self.operations.planes_not_cordoned
        for endpoint in self._endpoints:
            nics = self.fabric.host(endpoint.name).nics
            endpoint.host.leave_nics([nic.number for nic in nics if nic.plane not in planes])
            if endpoint.host.evs is not None:
                endpoint.host.evs.apply()

    def _deadlock_watch(self) -> DeadlockWatch | None:
        """Return what looks for deadlocks; None where nothing is lossless."""
        if not self.settings().of(LosslessSettings).classes:
            return None
        round_trip_ps = path_round_trip_ps(self.fabric, self.frame_bytes, self.options.switching.latency)
        return DeadlockWatch(
            self.fabric,
            self.switches,
            self.partitions,
            _ROUND_TRIPS_BETWEEN_LOOKS * round_trip_ps,
            self._processes,
            self._owners,
        )

    def _host_insides(self) -> dict[int, HostInside]:
        if self.options.host is None:
            return {}
        from weft.clocks.virtual.host_insides import host_insides  # it costs nothing where it is not used

        return host_insides(self.fabric, self.options, self.engines)

    def _attach(self, host: HostSpec, interface: str) -> Attachment:
        nic = next(each for each in host.nics if each.interface == interface)
        leaf = self.fabric.switch(nic.switch)
        port: WiredPort = self.switches.switches[leaf.device_id].ports[nic.switch_port]
        assert port.uplink_link is not None
        return LinkAttachment(port.uplink_link, port.link)

    def _host_config(
        self,
        host: HostSpec,
        round_trips: Sequence[RoundTrips],
        transport: TransportSettings,
        paths: PathTraits,
        rates: IntRates,
    ) -> HostConfig:
        return HostConfig(
            name=host.name,
            rank=host.index,
            epoch_ns=0,
            dilation=1.0,
            seed=self.options.seed,
            entropy_seed=self.options.hash_seed_in_force,
            mtu_bytes=self.options.mtu_bytes,
            wall_clock_floor_ns=0,
            nics=nic_settings(
                host,
                round_trips,
                host_pfc_quanta(self.options),
                partial(host_credits, self.options, self.largest_frame_bytes),
                quantum_bytes=tuple(self.options.scheduling.quantum_by_class),
            ),
            transport=transport,
            paths=paths,
            segments=self.options.fidelity.settings(self.options.mtu_bytes),
            nic_costs=self.options.nic.costs(),
            protocols=self.options.protocols.settings(),
            compute_scale=self.options.faults.compute_scale(host.name),
            recording=recording_of(self.options.observe, self.fabric, host),
            int_rates_bps=rates,
            plane_addresses=self._plane_addresses if self.runs_commands and transport.kind.spans_planes else (),
            ip=ip_settings(self.fabric, host, self.options.link_mtu_bytes),
            ev_paths=None if self.ev_paths is None else EvPathsOfHost(self.ev_paths, host.name),
        )

    @cached_property
    def _plane_addresses(self) -> tuple[tuple[str, ...], ...]:
        return plane_addresses(self.fabric)

    def run_programs(self, asked: ProgramRun) -> list[ProgramOutcome]:
        """See Lab."""
        if self._processes.count > 1:
            raise EnvironmentLacksError("rdma: programs of hosts run in one process: leave mpirun out")
        hosts = {endpoint.name: endpoint.host for endpoint in self._endpoints}
        return VirtualPrograms(self._loop, hosts, self.options.ip_version).run(asked)

    def run_commands(self, asked: ExecRun) -> list[CommandOutcome]:
        """See Lab."""
        from weft.clocks.virtual.exec.commands import VirtualCommands

        if self._processes.count > 1:
            raise EnvironmentLacksError("exec: commands of hosts run in one process: leave mpirun out")
        if self._commands is None:
            hosts = {endpoint.name: endpoint.host for endpoint in self._endpoints}
            self._commands = VirtualCommands(self._loop, self.partitions, self.fabric, hosts, self.directory)
        return self._commands.run(asked)

    def _close_commands(self) -> None:
        if self._commands is not None:
            self._commands.close()

    @property
    def loop(self) -> VirtualTimeLoop:
        """Its clock for Python: what is to happen at a time, or after what happened in the fabric."""
        return self._loop

    def native_switch(self, name: str) -> NativeSwitch:
        """Return the switch itself. TopologyError names valid choices."""
        return self.switches.switches[self.fabric.switch(name).device_id].switch

    @property
    def link_events(self) -> LinkEvents:
        """See Lab."""
        return self._link_events

    def settle(self, draw: int = 0) -> bool:
        """Wait until no packet is in flight, then restart random draws and clear registers of switches.

        `draw` numbers the streams that marking and faults are drawn from: the same number, the same draws. A fabric in
        which packets stand still (a deadlock of flow control) is left as it is.
        """
        if not self.let_packets_arrive():
            return False
        self.switches.restart_draws(draw)
        registers = registers_of_runs(
            self.options.load_balancing, has_intermediates=self.options.routing.has_intermediates
        )
        for wired in self.switches.switches.values():
            clear_registers(wired.switch, registers)
        return True

    def let_packets_arrive(self) -> bool:
        """See Lab."""
        for _ in range(_MOST_SETTLING_STEPS):
            if not packets_under_way(self.partitions.packet_conservation()):
                return True
            self._let_a_round_trip_pass()
        return False

    def let_answers_arrive(self) -> None:
        """See Lab."""
        self._let_a_round_trip_pass()  # what was asked for is no packet before
        self.let_packets_arrive()

    def _let_a_round_trip_pass(self) -> None:
        step_ps = path_round_trip_ps(self.fabric, self.frame_bytes, self.options.switching.latency)
        self._loop.run_here(self._loop.sleep_ps(step_ps))

    def run_sample(self, hosts: EndpointGroup, runs: Sequence[int]) -> Sample:
        """See Lab."""
        with self.partitions.lock():
            done, count = hosts.steps(runs)
            counts = self.partitions.packet_conservation()
            sent, delivered = counts["entered"].get("sent"), counts["left"].get("delivered")
            return Sample(
                self.partitions.now_ps,
                done,
                count,
                sent["packets"] if sent else 0,
                delivered["bytes"] if delivered else 0,
            )

    def packet_conservation(self) -> ConservationCounts:
        """See Lab."""
        return self.partitions.packet_conservation()

    def switch_stats(self) -> SwitchesStats:
        """See Lab."""
        self.partitions.agree_on_links()
        return stats_of_all(self.fabric, self.switches.stats(), self._owners, self._processes)

    def reset_switch_stats(self) -> None:
        """See Lab."""
        self.switches.reset_stats()

    def capture_port(self, switch: str, port: int, path: Path | None) -> None:
        """See Lab."""
        if self.fabric.switch(switch).port(port).leads_to_controller:
            raise EnvironmentLacksError(
                f"{switch}:{port} leads to a controller: in virtual time no line has its packets, and so no capture"
            )
        wired = self.switches.switches[self.fabric.switch(switch).device_id].ports[port]
        wired.set_capture(path, f"{switch}:{port}", self.options.observe.removes_shims)

    def count_loads(self) -> None:
        """See Lab."""
        for port in self._transmit_ports().values():
            port.count_by_kind()

    def loads(self) -> dict[str, dict[int, int]]:
        """See Lab."""
        if not self.options.observe.loads:
            return {}
        own = {
            name: port.transmitted_by_kind()
            for name, port in self._transmit_ports().items()
            if self._is_served(name.rpartition(":")[0])
        }
        of_ports = {name: sent for each in of_all(self._processes, "loads", own) for name, sent in each.items()}
        return {name: of_ports[name] for name in self._transmit_ports()}

    def _transmit_ports(self) -> dict[str, TransmitPort]:
        ports = {
            f"{switch.config.name}:{number}": port.transmit
            for switch in self.switches.switches.values()
            for number, port in switch.ports.items()
        }
        for host, endpoint in zip(self.fabric.hosts, self._endpoints, strict=True):
            for plane, port in enumerate(endpoint.host.transmit_ports()):
                ports[f"{host.name}:{plane}"] = port
        return ports

    def start_recording(self) -> None:
        """See Lab."""
        host_ports = [endpoint.host.transmit_ports() for endpoint in self._endpoints]
        self._probes = FabricProbes(
            self.fabric,
            self.options.observe,
            self.switches.switches.values(),
            host_ports,
            self._is_served,
        )

    def _is_served(self, node: str) -> bool:
        return self._owners[node] == self._processes.number

    def outputs(self, arrays: Sequence[NDArray[Any]], hosts: Sequence[int]) -> list[NDArray[Any]]:
        """See Lab."""
        names = [self.fabric.hosts[host].name for host in hosts]
        return [
            self._processes.of(self._owners[name], f"data of {name}", partial(_itself, array))
            for name, array in zip(names, arrays, strict=True)
        ]

    def recorded(self) -> tuple[list[Recorded], int]:
        """See Lab."""
        if self._probes is None:
            return [], 0
        own = self._probes.take(self._loop.now_ps()), self._probes.rows_lost()
        of_each = of_all(self._processes, "what was recorded", own)
        return [each for recorded, _ in of_each for each in recorded], sum(lost for _, lost in of_each)


def _itself(array: NDArray[Any]) -> NDArray[Any]:
    return array
