"""A lab of a network file: plain hosts, and all where users of p4lang's tutorials and of p4-utils look for it.

Switches listen on a TCP port each, as well. The lab's controller writes entries and commands with election id 1, the
lowest, and leaves: any P4Runtime controller may then become primary, and may load the program again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from google.protobuf import text_format

from weft.clocks.lab import Progress
from weft.clocks.real.access import hand_over, owner
from weft.clocks.real.lab import MininetLab
from weft.clocks.real.lab_files import end_of, write_whole
from weft.clocks.real.port_watch import PortWatch
from weft.clocks.real.scripts_beside import ScriptsBeside
from weft.controller.fabric import FabricController
from weft.controller.grpc_targets import GrpcTarget
from weft.errors import BadInputError, EnvironmentLacksError
from weft.scenario.options import FabricOptions
from weft.switch.daemon.config import DaemonConfig
from weft.system.thrift_ports import Served, announced
from weft.thrift.server import ThriftServers
from weft.topologies import Endpoint, FabricSpec, LinkEnds
from weft.topologies.networks import Network, NetworkHost, p4_utils, p4_utils_graph
from weft.topologies.networks.model import SwitchSetup

LOWEST_ELECTION_ID = 1
"""Election id of the tutorials' controllers, so that they become primary when the lab's has left."""
_COMMAND_TIMEOUT_S = 60
_BESIDE_SOURCES = "."
_WEFT_PYTHON = Path(sys.executable)


@dataclass(frozen=True)
class _Places:
    """Where users of a format look, below the folder of the network's paths."""

    logs: str
    captures: str
    programs: str
    p4info_suffix: str


_PLACES = {
    "tutorials": _Places("logs", "pcaps", "build", ".p4.p4info.txtpb"),
    "p4_utils": _Places("log", "pcap", _BESIDE_SOURCES, "_p4rt.txt"),
}


class NetworkLab(MininetLab):
    """A network file's lab; see the module."""

    controller_stays: ClassVar[bool] = False

    def __init__(
        self,
        fabric: FabricSpec,
        options: FabricOptions,
        network: Network,
        progress: Progress = lambda _: None,
    ) -> None:
        if options.target != "embedded":
            raise EnvironmentLacksError(f"a network file's lab has embedded switches, not {options.target}'s")
        super().__init__(fabric, options, progress)
        self.source = network
        self._places = _PLACES[network.format]
        self._ports_down: set[Endpoint] = set()

    def _build(self, stack: contextlib.ExitStack) -> None:
        super()._build(stack)
        if self.daemon is not None:
            watch = PortWatch(self.fabric, self.daemon.grpc_address, self._note_port)
            watch.start()
            stack.callback(watch.close)

    def _note_port(self, switch: str, port: int, up: bool) -> None:
        """Record that a port has gained or lost its carrier; `PortWatch` calls this in its thread."""
        # A new set each time: another thread may be reading the old one.
        ends = self._ports_down - {Endpoint(switch, port)}
        self._ports_down = ends if up else ends | {Endpoint(switch, port)}

    def links_down(self) -> frozenset[LinkEnds]:
        """See Lab. The controller has left, so links count as down when their ports have no carrier."""
        return frozenset(self.fabric.link_at(end).ends for end in self._ports_down)

    @property
    def addresses(self) -> dict[str, str]:
        """The TCP address of each switch's P4Runtime server."""
        return {name: f"127.0.0.1:{setup.grpc_port}" for name, setup in self.source.setups.items()}

    @cached_property
    def _path(self) -> str:
        """PATH in the hosts. Their scripts, which begin with `#!/usr/bin/env python3`, find a Python that has Scapy."""
        path = os.environ.get("PATH", os.defpath)
        return path if _has_scapy(shutil.which("python3", path=path)) else f"{_WEFT_PYTHON.parent}{os.pathsep}{path}"

    def where_to_look(self) -> list[str]:
        """Return where controllers find the switches, and users the files, in words."""
        folder, places = self.source.folder, self._places
        ids = {switch.name: switch.device_id for switch in self.fabric.switches}
        return [
            *(
                f"{name}: P4Runtime at {address}, device id {ids[name]}{_named_by(self.source.setups[name])}"
                for name, address in self.addresses.items()
            ),
            *(
                f"{switch.name}: port {port.number} leads to a controller at {port.peer_interface}"
                for switch in self.fabric.switches
                for port in switch.ports
                if port.leads_to_controller
            ),
            f"programs in {folder / places.programs}, logs in {folder / places.logs}, "
            f"captures in {folder / places.captures}",
        ]

    def _plain_hosts(self) -> Mapping[str, NetworkHost]:
        return {host.name: host for host in self.source.hosts}

    def _daemon_config(self, address: str) -> DaemonConfig:
        config = super()._daemon_config(address)
        addresses = tuple(self.addresses.values())
        return config.model_copy(update={"more_grpc_addresses": addresses, "grpc_users": self._callers})

    @property
    def _callers(self) -> tuple[int, ...] | None:
        """Users who may call the switches by TCP; None for all.

        A TCP port on loopback is open to every user of the machine, so servers ask whose process calls.
        """
        return None if self.options.grpc == "tcp" else tuple(sorted({0, owner()[0]}))

    def _new_controller(self, targets: Mapping[str, GrpcTarget]) -> FabricController:
        controller = super()._new_controller(targets)
        # The tutorials' controllers bid with 1, and a server takes no bid below the highest that it has seen.
        controller.first_election_id = LOWEST_ELECTION_ID
        controller.written = {}
        return controller

    def _run_commands(self) -> None:
        """As all labs; then hand the switches over to whoever comes, run the hosts' commands, and begin the scripts."""
        super()._run_commands()
        # Before the user's controllers begin: two primaries would write over each other.
        self.controller.close()
        self._announce()
        compiled = self._write_programs()
        if self.source.format == p4_utils.FORMAT:
            self._write_graph(compiled)
        self._write_logs()
        self._start_captures()
        self._run_host_commands()
        self._begin_scripts()

    def _announce(self) -> None:
        """Let simple_switch_CLI and p4-utils' controllers find the switches by their Thrift ports, and serve these."""
        ids = {switch.name: switch.device_id for switch in self.fabric.switches}
        served = {
            setup.thrift_port: Served(self.addresses[name], ids[name])
            for name, setup in self.source.setups.items()
            if setup.thrift_port is not None
        }
        self._exit.enter_context(announced(served))
        servers = self._exit.enter_context(ThriftServers(served, self._callers))
        for port, error in servers.failures.items():
            self._progress(f"Thrift port {port} is not served: {error.strerror}")

    def _write_programs(self) -> dict[Path, tuple[Path, Path]]:
        """Write each program and its P4Info where controllers read them, and return both by source.

        Raises BadInputError.
        """
        own = {self.source.path, *self._files_of_switches()}
        written: set[Path] = set()
        found = {}
        for program in self.programs.distinct:
            stem = program.json.stem
            folder = self._program_folder(program.source)
            compiled = folder / f"{stem}.json", folder / f"{stem}{self._places.p4info_suffix}"
            for path, source in zip(compiled, (program.json, program.p4info), strict=True):
                if path in own | written:
                    raise BadInputError(
                        f"the compiled {stem}.p4 would take its place",
                        place=path,
                        valid="another name for the program",
                    )
                write_whole(path, source.read_bytes())
                written.add(path)
            found[program.source] = compiled
        return found

    def _write_graph(self, compiled: Mapping[Path, tuple[Path, Path]]) -> None:
        """Write topology.json, which p4-utils' controllers load; a file of that name that is another one stays."""
        path = self.source.graph_file or self.source.folder / p4_utils_graph.FILE_NAME
        of_switch = {name: compiled[program.source] for name, program in self.programs.of_switch.items()}
        if path.exists() and not p4_utils_graph.is_graph_file(path):
            self._progress(f"{path} is not p4-utils' graph of a network, and stays: controllers find no graph")
            return
        graph = p4_utils_graph.graph_of(self.source, self.fabric, of_switch)
        write_whole(path, json.dumps(graph).encode())

    def _begin_scripts(self) -> None:
        if self.source.scripts:
            self._exit.enter_context(
                ScriptsBeside(
                    self.source.scripts,
                    self.source.folder,
                    self._folder(self._places.logs),
                    self._progress,
                )
            )

    def _files_of_switches(self) -> Iterator[Path]:
        """Yield the files of entries and commands that the network file names."""
        for setup in self.source.setups.values():
            yield from (each for each in (setup.runtime_json, setup.commands) if each is not None)

    def _program_folder(self, source: Path) -> Path:
        """Return the folder for a program's compiled files: p4-utils' stand by their source. Raises BadInputError."""
        if self._places.programs == _BESIDE_SOURCES and source.parent.is_relative_to(self.source.folder):
            return source.parent
        return self._folder(self._places.programs)

    def _write_logs(self) -> None:
        """Write what switches were sent over P4Runtime, and what their commands said."""
        folder = self._folder(self._places.logs)
        for name, updates in (self.controller.written or {}).items():
            text = "".join(f"---\n{text_format.MessageToString(each.message)}" for each in updates)
            write_whole(folder / f"{name}-p4runtime-requests.txt", text.encode())
        for name, said in self.said_by_commands.items():
            write_whole(folder / f"{name}_cli_output.log", "".join(f"{line}\n" for line in said).encode())

    def _start_captures(self) -> None:
        """Record every port's frames to INTERFACE_in.pcap and INTERFACE_out.pcap."""
        if self.daemon is None:
            return
        folder = self._folder(self._places.captures)
        for switch in self.fabric.switches:
            for port in switch.ports:
                if not port.is_cabled:
                    continue
                files = [folder / f"{port.interface}_{direction}.pcap" for direction in ("in", "out")]
                for file in files:
                    file.unlink(missing_ok=True)  # a link of somebody's is not followed
                without_shims = self.options.observe.removes_shims
                self.daemon.pcap_by_direction(switch.device_id, port.number, folder, without_shims)
                hand_over(files)

    def _run_host_commands(self) -> None:
        folder = shlex.quote(str(self.source.folder))
        if self._path != os.environ.get("PATH"):
            self._progress(f"hosts' python3 is {_WEFT_PYTHON}: the one on PATH has no Scapy")
        for host in self.source.hosts:
            # For what is typed at the prompt, too.
            self.network.net.get(host.name).cmd(f"cd {folder}; export PATH={shlex.quote(self._path)}")
            for command in host.commands:
                self._run_on(host.name, command)

    def _run_on(self, host: str, command: str) -> None:
        """Run a command in a host; one that fails is reported with its output, as the tutorials go on, too."""
        if command.rstrip().endswith("&"):
            # A child of the host's shell, with which it ends. Quoted, because that shell would wait for a quote's end.
            self.network.net.get(host).cmd(f"sh -c {shlex.quote(command)}")
            return
        # To a file: what a command leaves running would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            process = self.network.popen(
                host,
                ["sh", "-c", command],
                cwd=str(self.source.folder),
                env={**os.environ, "PATH": self._path},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                ended = f"ended with {process.wait(_COMMAND_TIMEOUT_S)}"
            except subprocess.TimeoutExpired:
                _kill(process)
                ended = f"was stopped after {_COMMAND_TIMEOUT_S} s (a command that goes on needs & at its end)"
            except BaseException:
                _kill(process)
                raise
            if process.returncode:
                self._progress(": ".join(filter(None, (host, f"{command!r} {ended}", end_of(output)))))

    def _folder(self, name: str) -> Path:
        """Return a folder next to the network's file, made if it does not exist. Raises BadInputError."""
        folder = self.source.folder / name
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise BadInputError(f"{folder} is not a folder, which the lab's files are to go to")
        if not folder.exists():
            folder.mkdir()
            hand_over([folder])
        return folder


def _named_by(setup: SwitchSetup) -> str:
    return "" if setup.thrift_port is None else f", Thrift port {setup.thrift_port}"


def _has_scapy(python: str | None) -> bool:
    if python is None:
        return False
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('scapy') is None)"
    try:
        found = subprocess.run([python, "-c", look], timeout=_COMMAND_TIMEOUT_S, capture_output=True, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return found.returncode == 0


def _kill(process: subprocess.Popen[str]) -> None:
    """End a host's command, and what it has started: Mininet makes it the leader of a process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
