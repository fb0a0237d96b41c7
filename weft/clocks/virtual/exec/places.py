"""Places for programs of a virtual run's hosts: namespaces with the hosts' interfaces, names and RDMA devices.

The interfaces lead to each other through bridges, past the fabric and in no time: for programs that exchange keys, or
start each other, over TCP. All of it goes with the processes that hold the namespaces.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from weft.cache.files import read_text
from weft.clocks.hosts_file import hosts_file
from weft.engine import _core
from weft.errors import BadInputError, EnvironmentLacksError
from weft.hints import did_you_mean
from weft.quantities.units import shown
from weft.topologies import FabricSpec, HostSpec
from weft.verbs.device import device_of
from weft.verbs.libraries import VIRTUAL_TIME, missing_because
from weft.verbs.places import put_devices
from weft.verbs.sysfs import write_sysfs

_HUB = "ip link set lo up && echo ready && exec cat"
_HOLDER = f'mount --bind "$1" /etc/hosts && mount --bind "$2" /proc/cpuinfo && hostname "$0" && {_HUB}'
_WITHOUT_ROOT = (
    "`unshare --user --map-root-user --net --mount weft run …` does it without root, where the kernel allows"
)


PLACES_VARIABLE = "WEFT_PLACES"
"""Names the file of a run's hosts, for `weft exec` in one of them."""
_MOST_PLACES_BYTES = 1 << 24


class HostPlaces:
    """Namespaces of some hosts of a fabric. Use as a context manager.

    Args:
        fabric: that has the hosts.
        hosts: which of them.
        directory: for files.
        variables: environment variables of a host's programs.

    Attributes:
        pids: of the process that holds each host's namespaces, by name.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        hosts: Iterable[str],
        directory: Path,
        variables: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._fabric, self._variables = fabric, variables
        self._file = directory / "places.json"
        self._hosts = [fabric.host(name) for name in hosts]
        self._directory = directory
        self._exit = contextlib.ExitStack()
        self.pids: dict[str, int] = {}
        self._namespaces: dict[str, int] = {}

    def __enter__(self) -> HostPlaces:
        with contextlib.ExitStack() as stack:
            names, processors = self._directory / "hosts", self._directory / "cpuinfo"
            names.write_text(hosts_file(self._fabric), encoding="ascii")
            processors.write_text(_virtual_processors(Path("/proc/cpuinfo").read_text()), encoding="ascii")
            hub = _hold(stack, ["unshare", "--net", "sh", "-c", _HUB])
            trees = {}
            for host in self._hosts:
                holder = ["unshare", "--net", "--mount", "--uts", "sh", "-c", _HOLDER]
                pid = self.pids[host.name] = _hold(stack, [*holder, host.name, str(names), str(processors)])
                self._namespaces[host.name] = os.stat(f"/proc/{pid}/ns/net").st_ino
                tree = self._directory / "devices" / host.name
                write_sysfs(tree, device_of(host))
                trees[pid] = tree
            self._connect(hub)
            put_devices(trees)
            places = {host: {"pid": pid, "variables": dict(self._variables(host))} for host, pid in self.pids.items()}
            self._file.write_text(json.dumps(places), encoding="utf-8")
            stack.callback(self._end_programs)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def enter(self, host: str, line: str) -> list[str]:
        """Return the command that gives a line to a shell in a host, in the present directory.

        The line may name other hosts by `weft exec`.
        """
        own = {**self._variables(host), PLACES_VARIABLE: str(self._file)}
        return [*_enter(self.pids[host], own), "sh", "-c", line]

    def processes(self) -> Iterator[tuple[str, int]]:
        """Yield the host and the identifier of each process in the hosts, by host and identifier."""
        hosts = {number: host for host, number in self._namespaces.items()}
        found = []
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with contextlib.suppress(OSError):
                    host = hosts.get(os.stat(f"/proc/{name}/ns/net").st_ino)
                    if host is not None and int(name) != self.pids[host]:
                        found.append((host, int(name)))
        order = list(self.pids)
        yield from sorted(found, key=lambda each: (order.index(each[0]), each[1]))

    def _connect(self, hub: int) -> None:
        """Give hosts their interfaces, and lead each to those of the same plane."""
        planes = sorted({nic.plane for host in self._hosts for nic in host.nics})
        _ip(hub, [f"link add name plane{plane} up type bridge" for plane in planes])
        lines = []
        for host in self._hosts:
            for nic in host.nics:
                end = f"{host.index}n{nic.number}"
                pair = f"name {nic.interface} netns {self.pids[host.name]} address {nic.mac}"
                lines.append(f"link add name {end} up type veth peer {pair}")
                lines.append(f"link set {end} master plane{nic.plane}")
        _ip(hub, lines)
        for host in self._hosts:
            _ip(self.pids[host.name], list(self._addresses(host)))

    def _addresses(self, host: HostSpec) -> Iterator[str]:
        for nic in host.nics:
            yield f"address add {nic.ipv4.with_prefixlen} dev {nic.interface} noprefixroute"
            yield f"address add {nic.ipv6.with_prefixlen} dev {nic.interface} noprefixroute nodad"
            yield f"link set {nic.interface} up"
            for peer in (each for other in self._hosts if other is not host for each in other.nics):
                if peer.plane == nic.plane:
                    for address, own in ((peer.ipv4.ip, nic.ipv4.ip), (peer.ipv6.ip, nic.ipv6.ip)):
                        yield f"neighbour add {address} lladdr {peer.mac} dev {nic.interface} nud permanent"
                        yield f"route add {address} dev {nic.interface} src {own}"

    def _end_programs(self) -> None:
        """End what still runs in the hosts."""
        for _ in range(100):  # one may be just beginning another
            left = [pid for _, pid in self.processes()]
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)


def enter_from_another(places: Path, host: str, line: str) -> list[str]:
    """Return the command that gives a line to a shell in a host, for a program of another host of the same run.

    Args:
        places: the file that `PLACES_VARIABLE` names there.
        host: which the run may not have.
        line: the command line.

    Raises:
        BadInputError: the run has no such host, or none with a command.
    """
    known = json.loads(read_text(places, _MOST_PLACES_BYTES))
    if host not in known:
        raise BadInputError(f"no host '{host}' with a command in this run; {did_you_mean(host, known)}")
    own = {**known[host]["variables"], PLACES_VARIABLE: str(places)}
    return [*_enter(known[host]["pid"], own), "sh", "-c", line]


def _enter(pid: int, variables: Mapping[str, str]) -> list[str]:
    """Return the command that runs another one in a host with environment variables."""
    inside = ["nsenter", f"--target={pid}", "--net", "--mount", "--uts", "sh", "-c", 'cd "$0" && exec "$@"']
    return [*inside, os.getcwd(), "env", *(f"{name}={value}" for name, value in variables.items())]


def require_places() -> None:
    """Raise EnvironmentLacksError where this machine has no place for programs of hosts in virtual time."""
    if problem := missing_because():
        raise EnvironmentLacksError(f"exec: {problem}")
    if not VIRTUAL_TIME.exists():
        raise EnvironmentLacksError("exec: programs live in virtual time on x86-64 only; `clock: real` runs them here")
    if os.geteuid() != 0:
        raise EnvironmentLacksError(f"exec: hosts of programs are namespaces, which root makes ({_WITHOUT_ROOT})")


def _hold(stack: contextlib.ExitStack, command: Sequence[str]) -> int:
    """Start a process that keeps its namespaces until the stack unwinds or this process ends; return its identifier."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    # It ends with its standard input, and is waited for.
    stack.enter_context(process)
    stack.callback(process.stdin.close)
    if process.stdout.readline() != b"ready\n":
        problem = process.stderr.read().decode(errors="replace").strip()
        raise EnvironmentLacksError(
            f"exec: this machine gives programs no namespaces: {shown(problem)}; {_WITHOUT_ROOT}"
        )
    return process.pid


def _ip(namespace: int, lines: Sequence[str]) -> None:
    """Carry out lines of `ip -batch` in a process's network namespace."""
    command = ["nsenter", f"--target={namespace}", "--net", "ip", "-batch", "-"]
    done = subprocess.run(command, input="\n".join(lines), text=True, capture_output=True, check=False)
    if done.returncode:
        raise EnvironmentLacksError(f"exec: ip: {done.stderr.strip()}")


def _virtual_processors(text: str) -> str:
    """Return /proc/cpuinfo with the frequency of the virtual counter of time stamps, from which programs take it."""
    mhz = _core.TIME_COUNTER_HZ / 1e6
    text = re.sub(r"^(cpu MHz\s*:).*$", rf"\1 {mhz:.3f}", text, flags=re.MULTILINE)
    return re.sub(r"^(model name\s*:).*$", rf"\1 Weft virtual time @ {mhz / 1000:.2f}GHz", text, flags=re.MULTILINE)
