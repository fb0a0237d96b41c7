"""The state file of the lab that runs on this machine: what the controller CLI finds it by and `weft clean` removes.

Everything that outlives a killed run is recorded here before it is made, with what distinguishes it from what others
have made (a process by its start time, an interface by its group): cleaning up needs no guess and touches nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weft.clocks.real import interfaces
from weft.controller.features.kind import DEFAULT_HASH_SEED, DEFAULT_ROUTING
from weft.errors import EnvironmentLacksError
from weft.system.processes import ProcessId, end
from weft.system.writing import written_whole

_saving = threading.Lock()
STATE_FILE = Path(os.environ.get("WEFT_STATE_FILE", "/run/weft/lab.json"))


@dataclass
class LabState:
    """One lab: its owner, what it made, and how to reach its switches.

    All interfaces that the lab makes are in `interface_group` (`weft.clocks.real.interfaces`). `hosts` gives the
    process that holds each host's namespaces, `grpc` each switch's P4Runtime address and device id, `operations` the
    socket where the controller takes requests, `dropped_packet_ins` how many packets of each switch it did not take,
    `tenants` the tenants' quotas. `verbs_sockets` belong to the hosts' RDMA devices, at `verbs_counters` hosts take who
    watches the devices' counters; `verbs_missing` says why there are no devices. `p4info` and `json` are the files of
    the switches' program, `programs` the files of switches that run another one. `routing` and `hash_seed` are the
    controller's. `units` are the program's units of queue depth and time.
    """

    owner: ProcessId
    processes: list[ProcessId] = field(default_factory=list)
    interface_group: int = 0
    directories: list[str] = field(default_factory=list)
    fabric: dict[str, Any] = field(default_factory=dict)
    target: str = "embedded"
    units: dict[str, Any] = field(default_factory=dict)
    routing: str = DEFAULT_ROUTING
    hash_seed: int = DEFAULT_HASH_SEED
    hosts: dict[str, ProcessId] = field(default_factory=dict)
    grpc: dict[str, tuple[str, int]] = field(default_factory=dict)
    p4info: str = ""
    json: str = ""
    programs: dict[str, tuple[str, str]] = field(default_factory=dict)
    operations: str = ""
    dropped_packet_ins: dict[str, int] = field(default_factory=dict)
    tenants: dict[str, dict[str, Any]] = field(default_factory=dict)
    verbs_sockets: dict[str, str] = field(default_factory=dict)
    verbs_counters: dict[str, str] = field(default_factory=dict)
    verbs_missing: str = ""

    def save(self, path: Path | None = None) -> None:
        """Write the state, replacing the file at once, so that a reader never sees half of it; from any thread."""
        path = path or STATE_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        with _saving, written_whole(path) as partial:
            partial.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    def note_dropped_packet_ins(self, by_switch: Mapping[str, int]) -> None:
        """Let `weft controller health` see what the controller has dropped."""
        self.dropped_packet_ins = dict(by_switch)
        self.save()


def load(path: Path | None = None) -> LabState | None:
    """Return the lab written down on this machine, None where there is none.

    Raises:
        EnvironmentLacksError: the file cannot be read or is not a state file.
    """
    path = path or STATE_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        data["owner"] = ProcessId(**data["owner"])
        data["processes"] = [ProcessId(**process) for process in data["processes"]]
        data["hosts"] = {name: ProcessId(**process) for name, process in data.get("hosts", {}).items()}
        data["grpc"] = {name: (address, device) for name, (address, device) in data["grpc"].items()}
        return LabState(**data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EnvironmentLacksError(f"is not a state file of a lab: {error}", place=path) from None


def claim(path: Path | None = None) -> LabState:
    """Make this process the owner of the machine's lab, after cleaning up what a dead owner left.

    Raises:
        EnvironmentLacksError: another living process owns a lab here.
    """
    path = path or STATE_FILE
    with _alone(path):
        previous = load(path)
        if previous is not None:
            if previous.owner.alive:
                raise EnvironmentLacksError(
                    f"a lab runs on this machine already (process {previous.owner.pid}); "
                    "wait for it or end it there; `weft clean --force` ends it from here"
                )
            clean(path)
        owner = ProcessId.of(os.getpid())
        assert owner is not None
        state = LabState(owner)
        # Before anything is made: a lab that is killed at once is found, too.
        state.save(path)
        return state


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time check that there is no lab and record its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def clean(path: Path | None = None, force: bool = False) -> list[str]:
    """Remove everything that the written-down lab made; return what was removed, in words.

    Raises:
        EnvironmentLacksError: the lab's owner still runs, and `force` is not set; or the lab is another user's.
    """
    path = path or STATE_FILE
    state = load(path)
    if state is None:
        return []
    try:
        return _remove(state, path, force)
    except PermissionError as error:
        raise EnvironmentLacksError(f"the lab was made by another user, clean up with sudo: {error}") from None


def _remove(state: LabState, path: Path, force: bool) -> list[str]:
    removed = []
    if state.owner.alive and state.owner.pid != os.getpid():
        if not force:
            raise EnvironmentLacksError(f"the lab still runs (process {state.owner.pid}); end it there, or use --force")
        if end(state.owner, patience_s=15.0):
            removed.append(f"process {state.owner.pid} (the lab's owner)")
    for process in state.processes:
        if end(process):
            removed.append(f"process {process.pid}")
    removed += [f"interface {name}" for name in interfaces.delete_all(state.interface_group)]
    for directory in state.directories:
        if Path(directory).is_dir():
            shutil.rmtree(directory, ignore_errors=True)
            removed.append(f"directory {directory}")
    path.unlink(missing_ok=True)
    return removed
