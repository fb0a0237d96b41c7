"""A lab of the real clock: Mininet's hosts and links, the switches, and the controller that programs them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft.clocks.environment import CIRCUITS_STAY
from weft.clocks.ev_control import EvControl
from weft.clocks.exec_commands import CommandOutcome, ExecRun
from weft.clocks.host_programs import ProgramOutcome, ProgramRun
from weft.clocks.lab import Lab, Progress
from weft.clocks.link_events import LinkEvents
from weft.clocks.real import lab_state
from weft.clocks.real.access import LabAccess, hand_over
from weft.clocks.real.bmv2 import Bmv2Switches
from weft.clocks.real.endpoints import Endpoints, control_socket, counters_socket, metrics_socket
from weft.clocks.real.host_control import ask_hosts
from weft.clocks.real.host_metrics import read_host_metrics
from weft.clocks.real.host_programs import RealPrograms
from weft.clocks.real.interfaces import new_group
from weft.clocks.real.link_events import EmulatedLinkEvents
from weft.clocks.real.operations_server import OperationsServer
from weft.clocks.real.port_watch import PortWatch
from weft.clocks.real.switch_daemon import SwitchDaemon, daemon_config, new_epoch_ns
from weft.clocks.real.verbs_devices import VerbsDevices
from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import FabricController
from weft.controller.grpc_targets import GrpcTarget, embedded_targets
from weft.controller.operations import Operations
from weft.controller.switch_cli import Manage
from weft.controller.switch_cli.management import over_grpc
from weft.errors import EnvironmentLacksError
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_NS, PS_PER_S
from weft.recording.observations import Recorded, read_recorded
from weft.scenario.options import FabricOptions
from weft.scenario.tenants import tenant_settings
from weft.switch.daemon.config import DaemonConfig
from weft.switch.daemon.stats import SwitchesStats
from weft.system.child_processes import ChildError, WatchedProcess
from weft.system.processes import ProcessId
from weft.system.scratch import scratch_directory
from weft.topologies import FabricSpec
from weft.topologies.networks import NetworkHost
from weft.topologies.round_trips import path_round_trip_ps
from weft.traffic.control import EndpointGroup
from weft.traffic.host_metrics import HostMetrics

if TYPE_CHECKING:
    from weft.clocks.real.network import FabricNetwork

# For the last packets of a run: round trips of an idle path, and time for the processes that carry them.
_LAST_ROUND_TRIPS = 20
_LAST_PACKETS_S = 0.3


@dataclass(frozen=True)
class DilatedClock:
    """A `weft.controller.operations.OperationsClock`: emulated time is real time, `dilation` times slower."""

    epoch_ns: int
    dilation: float

    def now_ps(self) -> int:
        """Return the emulated time."""
        return int((time.monotonic_ns() - self.epoch_ns) * PS_PER_NS / self.dilation)

    async def sleep_ps(self, duration_ps: int) -> None:
        """Wait for so much emulated time."""
        await asyncio.sleep(duration_ps * self.dilation / PS_PER_S)


LOOPBACK = "127.0.0.1:0"


class MininetLab(Lab):
    """A fabric in Mininet. Needs root; one at a time on a machine."""

    def __init__(self, fabric: FabricSpec, options: FabricOptions, progress: Progress = lambda _: None) -> None:
        super().__init__(fabric, options, progress)
        self.epoch_ns = new_epoch_ns()
        self.network: FabricNetwork
        self.verbs: VerbsDevices
        self.daemon: SwitchDaemon | None = None
        self.switch_processes: list[WatchedProcess] = []
        self._state: lab_state.LabState
        self._access: LabAccess
        self._hosts: EndpointGroup
        self._programs: RealPrograms
        self.operations_server: OperationsServer
        self._link_events: EmulatedLinkEvents

    def own(self, *processes: int) -> None:
        """Record processes as the lab's, so that `weft clean` ends them if this process cannot."""
        for pid in processes:
            process = ProcessId.of(pid)
            if process is not None:
                self._state.processes.append(process)
        self._state.save()

    def _own_directory(self, directory: Path) -> None:
        """Record a directory that is about to be created."""
        self._state.directories.append(str(directory))
        self._state.save()

    def _build(self, stack: contextlib.ExitStack) -> None:
        # First: all that follows is written there before it is made, so that `weft clean` finds it.
        self._state = lab_state.claim()
        stack.callback(self._release)
        self.directory = stack.enter_context(scratch_directory())
        self._state.directories.append(str(self.directory))
        self._state.interface_group = new_group()
        self._access = LabAccess(lab_state.STATE_FILE.parent, self._own_directory)

        self._compile()
        self._build_network(stack)

        self._progress(f"starting {counted(len(self.fabric.switches), 'switch', 'switches')}")
        targets = self._start_switches(stack)

        self._progress("programming them over P4Runtime")
        if self.options.target == "embedded":
            self._say_what_is_compiled()
        self._connect_controller(stack, targets)
        self._describe(targets)

    def _build_network(self, stack: contextlib.ExitStack) -> None:
        """Have Mininet make hosts, namespaces and links."""
        hosts, links = len(self.fabric.hosts), len(self.fabric.links)
        self._progress(f"building {counted(hosts, 'host')} and {counted(links, 'link')} in Mininet")
        # Imported here, so that `require_for` can say that Mininet is missing.
        from weft.clocks.hosts_file import hosts_file
        from weft.clocks.real.network import FabricNetwork

        names = self.directory / "hosts"
        names.write_text(hosts_file(self.fabric), encoding="ascii")
        names.chmod(0o644)  # for programs of any user's in the hosts
        self.network = FabricNetwork(
            self.fabric,
            self._state.interface_group,
            internal_links=self.options.links == "internal",
            own=self.own,
            hosts_file=names,
            mtu_bytes=self.options.link_mtu_bytes,
            plain_hosts=self._plain_hosts(),
        )
        stack.callback(self.network.stop)
        # By process id and start time, which is how `weft exec` enters a host's namespaces.
        self._state.hosts = {
            host.name: process
            for host in self.fabric.hosts
            if (process := ProcessId.of(self.network.net.get(host.name).pid)) is not None
        }
        self.verbs = VerbsDevices(self.fabric, self.network, self.directory, self._access, self._plain_hosts())
        self._state.verbs_sockets, self._state.verbs_missing = self.verbs.sockets, self.verbs.missing
        self._state.verbs_counters = {
            host.name: str(counters_socket(self.directory, host)) for host in self.fabric.hosts if self.verbs.sockets
        }
        self._state.save()

    def _connect_controller(self, stack: contextlib.ExitStack, targets: Mapping[str, GrpcTarget]) -> None:
        """Have switches programmed, and what happens to links followed."""
        self.controller = stack.enter_context(BlockingFabricController(self._new_controller(targets)))
        self.operations = Operations(
            self.controller.controller,
            self.options.controller.settings(),
            DilatedClock(self.epoch_ns, self.options.dilation),
        )
        self._link_events = EmulatedLinkEvents(
            self.fabric,
            self.options,
            self.controller,
            self.operations,
            self.epoch_ns,
            self.network.restore_routes,
            # Not a method of the lab's, which would hold it after it was left.
            functools.partial(read_host_metrics, self._metrics_sockets()),
        )
        stack.callback(self._link_events.close)
        if self.controller_stays:
            self._stay_in_control(stack)

    def _describe(self, targets: Mapping[str, GrpcTarget]) -> None:
        """Write into the state file what `weft controller` and other commands need to know of the lab."""
        self._state.fabric = dict(self.fabric.parameters)
        self._state.target = self.options.target
        self._state.units = self.target_facts.units()
        self._state.routing = self.options.routing.kind
        self._state.hash_seed = self.options.hash_seed_in_force
        tenants = tenant_settings(self.options.tenants).tenants
        self._state.tenants = {tenant.name: tenant.quotas() for tenant in tenants}
        self._state.grpc = {name: (target.address, target.device_id) for name, target in targets.items()}
        published = {
            program: self._access.publish(program, number) for number, program in enumerate(self.programs.distinct)
        }
        first, *_ = self.programs.distinct
        self._state.p4info, self._state.json = published[first]
        self._state.programs = {
            name: published[program] for name, program in self.programs.of_switch.items() if program is not first
        }
        self._access.hand_over()
        self._state.save()

    def _plain_hosts(self) -> Mapping[str, NetworkHost]:
        """Return the hosts that have no more than a network file says, by name."""
        return {}

    def _new_controller(self, targets: Mapping[str, GrpcTarget]) -> FabricController:
        return FabricController(
            self.fabric,
            self.programs.pipelines,
            targets,
            self.settings(),
            on_dropped=self._state.note_dropped_packet_ins,
        )

    def _stay_in_control(self, stack: contextlib.ExitStack) -> None:
        """Have the controller follow links, and take requests of `weft controller`."""
        if self.daemon is not None:
            watch = PortWatch(self.fabric, self.daemon.grpc_address, self._link_events.notice)
            watch.start()
            stack.callback(watch.close)
        evs = EvControl(
            self.fabric,
            self.options.transport.protocol,
            functools.partial(ask_hosts, [control_socket(self.directory, host) for host in self.fabric.hosts]),
            functools.partial(time.sleep, self._last_packets_s()),
        )
        self.operations_server = OperationsServer(
            self._access.operations_socket, self.controller, self.operations, self.options.dilation, evs
        )
        stack.callback(self.operations_server.close)
        self._state.operations = str(self._access.operations_socket)
        self._state.dilation = self.options.dilation

    def log_packets(self, directory: Path) -> None:
        """Have every switch write what each packet meets from now on to SWITCH.log in a directory.

        Raises:
            EnvironmentLacksError: the switches are BMv2's.
        """
        if self.daemon is None:
            raise EnvironmentLacksError("BMv2's switches write logs of their own, if at all", place="--packet-logs")
        for switch in self.fabric.switches:
            path = directory / f"{switch.name}.log"
            self.daemon.log_packets(switch.device_id, path)
            hand_over([path])

    def _manage_switch(self, switch: str) -> Manage:
        address, device_id = self._state.grpc[switch]
        return over_grpc(address, switch, device_id)

    def _daemon_config(self, address: str) -> DaemonConfig:
        return daemon_config(self.fabric, self.options, self.switch_configs, self.epoch_ns, address)

    def _start_switches(self, stack: contextlib.ExitStack) -> dict[str, GrpcTarget]:
        if self.options.target == "bmv2":
            bmv2 = Bmv2Switches(self.fabric, self.directory, self.frame_bytes, own=self.own)
            stack.callback(bmv2.close)
            self.switch_processes = bmv2.watched
            return {name: GrpcTarget(address, device) for name, (address, device) in bmv2.addresses.items()}
        # A socket of the user's own: a TCP port on loopback is open to every user of the machine.
        address = self._access.grpc_address if self.options.grpc == "unix" else LOOPBACK
        self.daemon = SwitchDaemon(self._daemon_config(address), self.directory)
        stack.callback(self.daemon.close)
        stack.callback(self._report_incomplete_files, self.daemon)
        self.switch_processes = [self.daemon.child.watched]
        self.own(self.daemon.child.process.pid)
        return embedded_targets(self.fabric, self.daemon.grpc_address)

    def _report_incomplete_files(self, daemon: SwitchDaemon) -> None:
        # A daemon that is gone has said so already.
        with contextlib.suppress(ChildError):
            for path, number in daemon.finish_files().items():
                self._progress(f"{path} is incomplete: {os.strerror(number)}")

    @contextlib.contextmanager
    def hosts(self) -> Iterator[EndpointGroup]:
        """Start a process in every host's namespace; see Lab."""
        with Endpoints(self) as endpoints:
            self._hosts = endpoints.group
            self._programs = RealPrograms(endpoints.group, self.options.ip_version)
            self._hosts.follow_parted(self._link_events.parted)
            yield endpoints.group

    def run_programs(self, asked: ProgramRun) -> list[ProgramOutcome]:
        """See Lab."""
        return self._programs.run(asked)

    def run_commands(self, asked: ExecRun) -> list[CommandOutcome]:
        """See Lab."""
        from weft.clocks.real.exec_commands import run_commands

        return run_commands(self, asked, self._hosts.now_ps)

    @property
    def link_events(self) -> LinkEvents:
        """See Lab."""
        return self._link_events

    def settle(self, draw: int = 0) -> bool:
        """Return False, as it is unknown what is in flight; see Lab."""
        return False

    def packet_conservation(self) -> None:
        """See Lab."""

    def switch_stats(self) -> SwitchesStats | None:
        """See Lab."""
        return self.daemon.stats() if self.daemon is not None else None

    def host_metrics(self) -> dict[str, HostMetrics]:
        """See Lab."""
        return read_host_metrics(self._metrics_sockets())

    def _metrics_sockets(self) -> dict[str, Path]:
        return {host.name: metrics_socket(self.directory, host) for host in self.fabric.hosts}

    def reset_switch_stats(self) -> None:
        """See Lab."""
        if self.daemon is not None:
            self.daemon.reset_stats()

    def capture_port(self, switch: str, port: int, path: Path | None) -> None:
        """See Lab."""
        if self.daemon is None:
            raise EnvironmentLacksError(f"{self.options.target} does not capture the ports of switches")
        if not self.fabric.switch(switch).port(port).is_cabled:
            raise EnvironmentLacksError(f"{switch}:{port} is dark: {CIRCUITS_STAY}")
        self.daemon.pcap(self.fabric.switch(switch).device_id, port, path, self.options.observe.removes_shims)

    def let_packets_arrive(self) -> bool:
        """See Lab: nobody counts packets in flight, so it waits for several round trips, and for the processes."""
        time.sleep(self._last_packets_s())
        return True

    def _last_packets_s(self) -> float:
        round_trip_ps = path_round_trip_ps(self.fabric, self.frame_bytes, self.options.switching.latency)
        return _LAST_PACKETS_S + _LAST_ROUND_TRIPS * round_trip_ps / PS_PER_S * self.options.dilation

    def start_recording(self) -> None:
        """See Lab. Each endpoint records for itself, as its configuration says."""

    def recorded(self) -> tuple[list[Recorded], int]:
        """See Lab."""
        files = [self.directory / f"{host.name}-recorded.npz" for host in self.fabric.hosts]
        rows_lost = self._hosts.recorded(files)
        return [read_recorded(file) for file in files], sum(rows_lost)

    def _release(self) -> None:
        # Everything else has been taken down; the directory and the state file go last, and with them what an
        # interrupted or failed taking down left.
        lab_state.clean()
