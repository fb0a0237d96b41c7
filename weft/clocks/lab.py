"""A running fabric under either clock: switches, the controller that programs them, and a way to start hosts."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from weft.cache import cache_directory, unusable_because
from weft.clocks.environment import require_for
from weft.clocks.exec_commands import CommandOutcome, ExecRun
from weft.clocks.frame_sizes import any_frame_bytes, int_md_bytes, write_frame_bytes
from weft.clocks.host_programs import ProgramOutcome, ProgramRun
from weft.clocks.link_events import LinkEvents
from weft.clocks.lossless import require_classes, require_lossless_routes
from weft.clocks.marking import marking_features
from weft.clocks.program_checks import left_out_lines, options_of_programs, require_aggregation
from weft.clocks.switch_configs import depth_cell_bytes, require_depths, switch_configs
from weft.clocks.virtual.processes import ALONE, Processes
from weft.clocks.watching import Sample
from weft.controller.blocking import BlockingFabricController
from weft.controller.circuits import CircuitControl
from weft.controller.features import Settings
from weft.controller.operations import Operations
from weft.controller.route_scope import ALL_ROUTES, RouteScope
from weft.controller.runtime_entries import EntriesSettings
from weft.controller.target import TargetFacts, target_facts
from weft.error_translation import raised_as_weft_errors
from weft.errors import BadInputError, EnvironmentLacksError, WeftError
from weft.recording.observations import Recorded
from weft.scenario.entries_files import entries_settings
from weft.scenario.options import FabricOptions
from weft.scenario.programs import Programs, compile_programs
from weft.scenario.switch_choice import by_switch
from weft.switch.daemon.config import SwitchConfig
from weft.switch.daemon.stats import SwitchesStats
from weft.system.signals import interruptions_first, signals_unwind, signals_wait
from weft.topologies import FabricSpec, LinkEnds
from weft.topologies.int_rates import STANDARD_INT_RATES, IntRates, int_rates
from weft.topologies.kinds import network
from weft.traffic.control import EndpointGroup
from weft.traffic.extensions import ClassSpec
from weft.traffic.host_metrics import HostMetrics

if TYPE_CHECKING:
    from weft.clocks.user_controller.running import RunningController
    from weft.controller.switch_cli import Manage
    from weft.engine.records import ConservationCounts

Progress = Callable[[str], None]


class NotRunningError(WeftError, AttributeError):
    """Something was requested that a fabric has only while it runs."""


class Lab(abc.ABC):
    """A fabric without its traffic. Use as a context manager; leaving it cleans everything up.

    Each clock has its subclass: `weft.clocks.real.lab`, `weft.clocks.virtual.lab`.
    """

    shares_memory: ClassVar[bool] = False
    """Whether hosts are in this process, so that they can work on its arrays."""
    controller_stays: ClassVar[bool] = True
    """Whether the controller remains primary, follows links and takes requests, once the switches are programmed."""
    circuits: CircuitControl | None = None
    """Changes circuits' configurations; None without circuits, and before hosts have been started."""

    def __init__(self, fabric: FabricSpec, options: FabricOptions, progress: Progress = lambda _: None) -> None:
        self.fabric = fabric
        self.options = options
        self.directory = Path()
        self.programs: Programs
        self.entries = EntriesSettings()
        self.said_by_commands: dict[str, list[str]] = {}
        self.user_controller: RunningController | None = None
        self._has_lost_int = False
        self.reducing_key = ""
        """The scenario's item that reduces in the network, so switches' programs must aggregate; "" if none does."""
        self.before_building: Callable[[], None] = lambda: None
        """Called once the plan has been checked, before anything is built."""
        self.sends_any_packets = False
        """Whether users write the packets of some traffic, which may then have any address."""
        self.largest_packet_bytes = 0
        """The largest IP packet of traffic other than the hosts' transport; 0 without any."""
        self.runs_commands = False
        """Whether hosts run commands; in virtual time nothing of the fabric may then be ahead of the rest."""
        self.controller: BlockingFabricController
        self.operations: Operations
        self._progress = progress
        self._signals = contextlib.ExitStack()
        self._exit = contextlib.ExitStack()

    def require_plan(self) -> None:
        """Check all that can be checked without the machine and before anything is built. Raises BadInputError."""
        self._require_queues_for_a_frame()
        require_classes(self.fabric, self.options)
        require_depths(self.fabric, self.options, self.target_facts)
        require_lossless_routes(self.fabric, self.options, self.settings())

    def __enter__(self) -> Self:
        self._require_queues_for_a_frame()
        require_for(self.fabric, self.options)
        self.require_plan()
        self.before_building()
        self._signals.enter_context(signals_unwind())
        try:
            with raised_as_weft_errors():
                self._build(self._exit)
                self._run_commands()
        except BaseException as error:
            with interruptions_first(error):
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        # The handlers stay in place during teardown and are restored in reverse order.
        with self._signals, signals_wait():
            self._exit.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise NotRunningError(f"{name}: the fabric was left, or not entered yet: use it within its 'with'")

    @abc.abstractmethod
    def _build(self, stack: contextlib.ExitStack) -> None:
        """Build everything; each step pushes its cleanup onto the stack before the next begins."""

    def _compile(self) -> None:
        """Compile the switches' programs, and adapt the options to what these can do. Raises KeyProblem."""
        names = dict.fromkeys(path.name for path in (self.options.p4, *self.options.programs.values()))
        self._progress(f"compiling {', '.join(names)}")
        self.programs = compile_programs(self.fabric, self.options, self.directory)
        asked = self.options
        self.options = options_of_programs(asked, self.programs.pipelines)
        self._has_lost_int = asked.int_telemetry and not self.options.int_telemetry
        if self.reducing_key:
            require_aggregation(self.programs.pipelines, self.reducing_key)
        self.entries = entries_settings(self.fabric, self.options, self.programs)

    def _say_what_is_compiled(self) -> None:
        """Say which programs have no machine code in the cache: making it may take a minute without another word."""
        from weft.switch.lowering import is_compiled  # needs LLVM, which BMv2 does without

        names = {program.source.name: None for program in self.programs.distinct if not is_compiled(program.p4_hash)}
        if names:
            problem = unusable_because()
            kept = f"once; kept in {cache_directory()}" if problem is None else f"not kept: {problem}"
            self._progress(f"making machine code of {', '.join(names)} ({kept})")

    def _run_commands(self) -> None:
        """Run the files of simple_switch_CLI's commands that the options name, switch by switch.

        What they said is in `said_by_commands`. Raises BadInputError with the file and the line.
        """
        chosen = by_switch(self.fabric, self.options.commands, "commands")
        if not chosen:
            return
        from weft.controller.switch_cli import CommandSession

        for switch, path in chosen.items():
            self._progress(f"running {path.name} on {switch}")
            session = CommandSession(
                self.controller.session(switch),
                manage=self._manage_switch(switch),
                may_write_files=False,
            )
            self.said_by_commands[switch] = self.controller.call(session.run_file(path))
            self.controller.keep_what_is_written(switch)

    @abc.abstractmethod
    def _manage_switch(self, switch: str) -> Manage:
        """Return what asks a switch for what P4Runtime has not; the switches are up."""

    @property
    def aggregates(self) -> bool:
        """Whether the programs of all switches do; the fabric is up."""
        return all(each.slot_capacity() for each in self.programs.pipelines.values())

    def start_user_controller(self, stack: contextlib.ExitStack) -> None:
        """Start the scenario's own controller, if it has one; the hosts have been started. Raises ExtensionError.

        Packets that it sends find every port connected.
        """
        section = self.options.controller
        if section.controller_class is None:
            return
        from weft.clocks.user_controller.running import RunningController

        operations = self.operations

        def fail(error: BaseException) -> None:
            operations.failure = operations.failure or error
            operations.on_losses()

        chosen = ClassSpec(section.controller_class, section.parameters)
        running = self.user_controller = RunningController(chosen, self.controller.controller, operations.clock, fail)
        stack.callback(running.close)
        self.controller.call(running.begin())
        self.controller.call(operations.begin(running.run()))

    def left_out(self) -> list[str]:
        """Return a sentence for each Weft feature that switches' programs have no tables for, so it is disabled.

        Empty in a network file's fabric: its programs and entries are written without Weft in mind.
        """
        if self.fabric.parameters.get("kind") == network.NAME:
            return []
        return left_out_lines(self.programs.pipelines, self.controller.left_out, has_lost_int=self._has_lost_int)

    @abc.abstractmethod
    def hosts(self) -> contextlib.AbstractContextManager[EndpointGroup]:
        """Start every host's endpoint, configured; leaving ends them."""

    @property
    @abc.abstractmethod
    def link_events(self) -> LinkEvents:
        """Links that fail and come back; the hosts have been started."""

    def run_sample(self, hosts: EndpointGroup, runs: Sequence[int]) -> Sample:
        """Return the progress of runs; `emulated_ps` and `packets` count from when the fabric was built."""
        done, count = hosts.steps(runs)
        return Sample(hosts.now_ps(), done, count, None)

    @abc.abstractmethod
    def settle(self, draw: int = 0) -> bool:
        """Restore the fabric to its state before its first traffic, as far as the clock can; see `VirtualLab.settle`.

        Returns whether nothing is in flight any more, so that queue pair numbers may be reused.
        """

    @cached_property
    def switch_configs(self) -> list[SwitchConfig]:
        """The configuration of every switch. Raises KeyProblem if a switch's memory does not hold what it must."""
        return switch_configs(self.fabric, self.options, self.largest_frame_bytes)

    @abc.abstractmethod
    def packet_conservation(self) -> ConservationCounts | None:
        """Return the packet conservation of the run so far; None under the real clock, which cannot know it."""

    @abc.abstractmethod
    def run_programs(self, asked: ProgramRun) -> list[ProgramOutcome]:
        """Run hosts' programs to their end; the hosts have been started.

        Raises CheckFailedError: they have not ended in time. ExtensionError: one has raised. EnvironmentLacksError:
        the lab cannot run them.
        """

    @abc.abstractmethod
    def run_commands(self, asked: ExecRun) -> list[CommandOutcome]:
        """Run commands of hosts to their end; the hosts have been started.

        Raises CheckFailedError: they have not ended in time, or never will. EnvironmentLacksError: the lab or the
        machine cannot run them.
        """

    def outputs(self, arrays: Sequence[NDArray[Any]], hosts: Sequence[int]) -> list[NDArray[Any]]:
        """Return hosts' data after a run, given what this process has of it; `hosts` are their indices."""
        return list(arrays)

    @abc.abstractmethod
    def switch_stats(self) -> SwitchesStats | None:
        """Return the embedded switches' counters (`WiredSwitches.stats`); None for BMv2, which reports none."""

    def host_metrics(self) -> dict[str, HostMetrics]:
        """Return what hosts that are processes say of themselves, by name, from any thread; none that are silent."""
        return {}

    def links_down(self) -> frozenset[LinkEnds]:
        """Return the links that the lab knows to be down at this moment, including all links of failed switches."""
        failures = self.controller.failures
        of_switches = {
            link.ends
            for link in (self.fabric.links if failures.switches else ())
            if not failures.switches.isdisjoint((link.a.node, link.b.node))
        }
        return failures.links | of_switches

    @abc.abstractmethod
    def reset_switch_stats(self) -> None:
        """Set these counters to zero."""

    def count_loads(self) -> None:
        """Have every port count from now on what it sends of each kind of traffic; the hosts have been started.

        EnvironmentLacksError: the clock cannot know it.
        """
        raise EnvironmentLacksError("observe: loads are counted under the virtual clock only")

    def loads(self) -> dict[str, dict[int, int]]:
        """Return the bytes that each port has sent, by the number of the kind of traffic; {} unless counted."""
        return {}

    @abc.abstractmethod
    def capture_port(self, switch: str, port: int, path: Path | None) -> None:
        """Record a switch's port into a pcap file; None ends it. EnvironmentLacksError: on BMv2."""

    @abc.abstractmethod
    def start_recording(self) -> None:
        """Record from now on what `options.observe` asks for; the hosts have been started."""

    @abc.abstractmethod
    def recorded(self) -> tuple[list[Recorded], int]:
        """Return what each probe recorded since the last call, and how many rows were beyond the limit."""

    def let_answers_arrive(self) -> None:
        """Wait until answers to what hosts have just been told to send have come, or are lost."""
        self.let_packets_arrive()

    @abc.abstractmethod
    def let_packets_arrive(self) -> bool:
        """Let time pass until no packet is in flight; return whether that is so, as far as the clock can know."""

    @property
    def frame_bytes(self) -> int:
        """Largest frame of an RDMA WRITE, on any link."""
        return write_frame_bytes(self.options, self._int_md_bytes)

    @cached_property
    def _int_md_bytes(self) -> int:
        return int_md_bytes(self.fabric, self.options)

    @property
    def largest_frame_bytes(self) -> int:
        """Largest frame on any link, of a WRITE or of in-network aggregation."""
        return any_frame_bytes(self.options, self._int_md_bytes)

    @cached_property
    def int_rates(self) -> IntRates:
        """Rates that INT's codes stand for."""
        return int_rates(self.fabric) if self.options.int_telemetry else STANDARD_INT_RATES

    @cached_property
    def target_facts(self) -> TargetFacts:
        """The units in which the switches' programs read queues and times."""
        options = self.options
        if options.target != "embedded":
            return target_facts(options.target, nominal_packet_bytes=self.frame_bytes)
        units = options.switching
        cell_bytes = depth_cell_bytes(self.fabric, options)
        return target_facts(options.target, units.depth_unit, units.time_unit, self.frame_bytes, cell_bytes)

    def settings(self) -> Settings:
        """Return what the controller is to install."""
        return Settings(
            target=self.target_facts,
            features=(*self.options.of_features, *marking_features(self.fabric, self.options), self.entries),
            routing=self.options.routing.kind,
            placement=self.options.aggregation.placement,
            hash_seed=self.options.hash_seed_in_force,
            routes=self._route_scope(),
        )

    def _route_scope(self) -> RouteScope:
        """Return the addresses for which switches need routes: all, as hosts may run any program."""
        return ALL_ROUTES

    def allow_any_packets(self) -> None:
        """Route packets to every address from now on; the fabric is up."""
        if self.controller.settings.routes != ALL_ROUTES:
            self.controller.route_all()

    def _require_queues_for_a_frame(self) -> None:
        smallest = min(port.link.queue_capacity_bytes for switch in self.fabric.switches for port in switch.ports)
        if smallest < self.largest_frame_bytes:
            raise BadInputError(
                f"a queue of {smallest} B never holds a frame of {self.largest_frame_bytes} B, "
                f"the largest with an mtu of {self.options.mtu_bytes} and {self.options.aggregation.lane_count} lanes"
            )


def make_lab(
    fabric: FabricSpec,
    options: FabricOptions,
    progress: Progress = lambda _: None,
    processes: Processes = ALONE,
) -> Lab:
    """Return a lab of the clock that the options name, not yet built; several processes have a virtual one."""
    # Imported here so that neither clock needs the other's dependencies.
    if options.clock == "virtual":
        from weft.clocks.virtual.lab import VirtualLab

        return VirtualLab(fabric, options, progress, processes)
    from weft.clocks.real.lab import MininetLab

    return MininetLab(fabric, options, progress)
