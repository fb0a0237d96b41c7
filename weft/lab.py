"""A fabric that runs: Mininet's hosts and links, the switches, and the controller that programs them."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller.blocking import BlockingFabricController
from controller.ecn import EcnProfile
from controller.fabric import GrpcTarget, embedded_targets
from controller.identity import DATA_CLASS
from controller.pipeline import Pipeline
from controller.plan import Settings
from controller.target import target_facts
from topologies import FabricSpec
from weft import lab_state
from weft.bmv2 import Bmv2Switches
from weft.child import WatchedProcess
from weft.daemon import SwitchDaemon, daemon_config, new_epoch_ns
from weft.environment import require_for
from weft.errors import BadInputError
from weft.options import FabricOptions
from weft.processes import ProcessId
from weft.program import Program, compile_program
from weft.told_errors import told_as_weft_errors

if TYPE_CHECKING:
    from weft.network import FabricNetwork

# Ethernet, INT shim, UDP, BTH, RETH, immediate and iCRC around the payload of a path MTU, and the IP header.
FRAME_OVERHEAD_BYTES = 14 + 46 + 8 + 12 + 16 + 4 + 4
IP_HEADER_BYTES = {4: 20, 6: 40}
Progress = Callable[[str], None]


class Lab:
    """Everything of a fabric but the traffic. Use as a context manager; leaving it leaves nothing behind."""

    def __init__(
        self, fabric: FabricSpec, options: FabricOptions, progress: Progress = lambda _: None
    ) -> None:
        self.fabric = fabric
        self.options = options
        self.epoch_ns = new_epoch_ns()
        self.directory = Path()
        self.program: Program
        self.network: FabricNetwork
        self.daemon: SwitchDaemon | None = None
        self.switch_processes: list[WatchedProcess] = []
        self.controller: BlockingFabricController
        self._progress = progress
        self._state: lab_state.LabState
        self._signals = contextlib.ExitStack()
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Lab:
        self._require_queues_for_a_frame()
        require_for(self.fabric, self.options)
        self._signals.enter_context(_termination_unwinds())
        try:
            with told_as_weft_errors():
                self._build(self._exit)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # The handlers outlast the taking down, and are put back in the reverse order.
        with self._signals, _uninterrupted():
            self._exit.close()

    def own(self, *processes: int) -> None:
        """Write processes down as the lab's, so that `weft clean` ends them if this process cannot."""
        for pid in processes:
            process = ProcessId.of(pid)
            if process is not None:
                self._state.processes.append(process)
        self._state.save()

    def _build(self, stack: contextlib.ExitStack) -> None:
        self._state = lab_state.claim()
        stack.callback(self._release)
        self.directory = Path(tempfile.mkdtemp(prefix="weft-"))
        self._state.directories.append(str(self.directory))
        self._state.interfaces = [port.interface for switch in self.fabric.switches for port in switch.ports]
        self._state.save()

        self._progress(f"compiling {self.options.p4.name}")
        self.program = compile_program(self.options.p4, self.directory, self.options.compiler)

        self._progress(
            f"building {len(self.fabric.hosts)} hosts and {len(self.fabric.links)} links in Mininet"
        )
        # Imported here, so that a machine without Mininet is told so by require_for.
        from weft.network import FabricNetwork

        self.network = FabricNetwork(
            self.fabric, internal_links=self.options.links == "internal", own=self.own
        )
        stack.callback(self.network.stop)

        self._progress(f"starting {len(self.fabric.switches)} switches")
        targets = self._start_switches(stack)

        self._progress("programming them over P4Runtime")
        self.controller = stack.enter_context(self._make_controller(targets))
        self._state.fabric = dict(self.fabric.parameters)
        self._state.target = self.options.target
        self._state.grpc = {name: (target.address, target.device_id) for name, target in targets.items()}
        self._state.p4info, self._state.json = str(self.program.p4info), str(self.program.json)
        self._state.save()

    def _require_queues_for_a_frame(self) -> None:
        smallest = min(
            port.link.queue_capacity_bytes for switch in self.fabric.switches for port in switch.ports
        )
        if smallest < self.frame_bytes:
            raise BadInputError(
                f"a queue of {smallest} B never holds a frame of {self.frame_bytes} B, "
                f"the largest with an mtu of {self.options.mtu_bytes}"
            )

    def _start_switches(self, stack: contextlib.ExitStack) -> dict[str, GrpcTarget]:
        if self.options.target == "bmv2":
            bmv2 = Bmv2Switches(self.fabric, self.directory, self.frame_bytes, own=self.own)
            stack.callback(bmv2.close)
            self.switch_processes = bmv2.watched
            return {name: GrpcTarget(address, device) for name, (address, device) in bmv2.addresses.items()}
        config = daemon_config(self.fabric, self.options, self.epoch_ns, "127.0.0.1:0")
        self.daemon = SwitchDaemon(config, self.directory)
        stack.callback(self.daemon.close)
        self.switch_processes = [self.daemon.child.watched]
        self.own(self.daemon.child.process.pid)
        return embedded_targets(self.fabric, self.daemon.grpc_address)

    def _make_controller(self, targets: dict[str, GrpcTarget]) -> BlockingFabricController:
        ecn = self.options.ecn
        profiles = None
        if ecn.kmin is not None and ecn.kmax is not None and ecn.pmax is not None:
            profiles = {DATA_CLASS: EcnProfile(ecn.kmin, ecn.kmax, ecn.pmax)}
        settings = Settings(
            target=target_facts(self.options.target, nominal_packet_bytes=self.frame_bytes),
            ecn=profiles,
            int_enabled=self.options.int_telemetry,
        )
        pipeline = Pipeline.load(self.program.p4info, self.program.json)
        return BlockingFabricController(self.fabric, pipeline, targets, settings, seed=self.options.seed)

    @property
    def frame_bytes(self) -> int:
        """Largest frame of an RDMA WRITE."""
        return self.options.mtu_bytes + FRAME_OVERHEAD_BYTES + IP_HEADER_BYTES[self.options.ip_version]

    def _release(self) -> None:
        # Everything else has been taken down; the directory and the state file go last, and with them what an
        # interrupted or failed taking down left.
        lab_state.clean()


@contextlib.contextmanager
def _termination_unwinds() -> Iterator[None]:
    """While a lab exists, let SIGTERM and SIGHUP unwind the stack, so that everything is taken down."""
    with _handlers(_raise_exit, signal.SIGTERM, signal.SIGHUP):
        yield


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let taking down finish: a second Ctrl-C waits."""
    with _handlers(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield


@contextlib.contextmanager
def _handlers(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    # Only the main thread may set handlers; elsewhere its owner decides what signals do.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, before in zip(numbers, previous, strict=True):
            signal.signal(number, before)


def _raise_exit(number: int, frame: Any) -> None:
    # Not KeyboardInterrupt, which Mininet's prompt survives. 128 + number is what a shell says of such an end.
    raise SystemExit(128 + number)
