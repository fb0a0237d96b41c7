"""Which running switch has which Thrift port: simple_switch_CLI and p4-utils' controllers name switches by it.

A file per port in a folder of root's says where the switch serves P4Runtime. `weft.thrift` listens on the ports.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.errors import BadInputError, EnvironmentLacksError
from weft.system.processes import ProcessId
from weft.system.writing import write_errors_named, written_whole

DEFAULT_FOLDER = Path("/run/weft/thrift")
_MOST_PORT = 65535
_MOST_BYTES = 4096


@dataclass(frozen=True)
class Served:
    """Where a switch serves P4Runtime: address and device id."""

    address: str
    device_id: int


_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}


def reachable(address: str) -> str:
    """Return an address at which a switch that listens on all addresses is reached."""
    host, colon, port = address.rpartition(":")
    return _EVERY_ADDRESS.get(host, host) + colon + port


def folder() -> Path:
    """Return the folder of the files; it is next to the labs' state file, which WEFT_STATE_FILE may move."""
    moved = os.environ.get("WEFT_STATE_FILE")
    return Path(moved).parent / DEFAULT_FOLDER.name if moved else DEFAULT_FOLDER


@contextlib.contextmanager
def announced(switches: Mapping[int, Served]) -> Iterator[None]:
    """Let others find switches by their Thrift ports as long as this process is in the context.

    Raises:
        EnvironmentLacksError: a file cannot be written.
    """
    owner = ProcessId.of(os.getpid())
    assert owner is not None
    files = {port: folder() / f"{port}.json" for port in switches}
    try:
        if files:
            with write_errors_named(folder()):
                folder().mkdir(mode=0o755, parents=True, exist_ok=True)
                _require_own(folder())
        for port, served in switches.items():
            with written_whole(files[port]) as partial:
                partial.write_text(json.dumps({"owner": asdict(owner), **asdict(served)}), encoding="utf-8")
        yield
    finally:
        for file in files.values():
            if _owner(file) == owner:  # another process may have announced the port since
                file.unlink(missing_ok=True)


def _require_own(path: Path) -> None:
    """Raise OSError if others may put files or links into a folder. Links of theirs would lead writes elsewhere."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "it is no folder of this user's or root's that only they may write")


def find(port: int) -> Served:
    """Return where the switch with a Thrift port serves P4Runtime.

    Raises:
        BadInputError: `port` is out of range.
        EnvironmentLacksError: no switch with this port runs.
    """
    if not 1 <= port <= _MOST_PORT:
        raise BadInputError(f"{port} is not a Thrift port", valid=f"1 to {_MOST_PORT}")
    tree = _read(folder() / f"{port}.json")
    owner = _owner_of(tree)
    if owner is None or not owner.alive:
        running = ", ".join(map(str, running_ports())) or "none; no switch runs"
        raise EnvironmentLacksError(f"no switch with the Thrift port {port} runs", valid=running)
    return Served(str(tree["address"]), int(str(tree["device_id"])))


def running_ports() -> list[int]:
    """Return the Thrift ports of the switches that run, in ascending order."""
    found = (file for file in folder().glob("*.json") if file.stem.isdecimal())
    return sorted(int(file.stem) for file in found if (owner := _owner(file)) is not None and owner.alive)


def _owner(file: Path) -> ProcessId | None:
    return _owner_of(_read(file))


def _owner_of(tree: Mapping[str, object]) -> ProcessId | None:
    owner = tree.get("owner")
    if not isinstance(owner, dict) or not {"address", "device_id"} <= tree.keys():
        return None
    try:
        return ProcessId(int(owner["pid"]), int(owner["start_ticks"]))
    except (KeyError, TypeError, ValueError):
        return None


def _read(file: Path) -> dict[str, object]:
    """Return a file's object; empty if it is missing, unreadable, or neither root's nor this user's."""
    try:
        # Not to wait for the other end of a named pipe.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            found = os.fstat(opened.fileno())
            if found.st_uid not in (0, os.geteuid()) or not stat.S_ISREG(found.st_mode):
                return {}
            tree = json.loads(opened.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}
