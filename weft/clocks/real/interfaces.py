"""Network interfaces of a lab in the root namespace, distinguished from others of the same name by their group.

The kernel sets an interface's group as it creates it, so none of the lab's interfaces can ever be mistaken for
another's.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path

from weft.errors import EnvironmentLacksError

_SYSTEM = Path("/sys/class/net")
End = tuple[str, str, int]
"""An end of a veth pair: its name and MAC, and a process of its network namespace."""


def new_group() -> int:
    """Return a group (31 bits, never the kernel's default, 0) that nothing else on the machine has."""
    return secrets.randbelow(2**31 - 1) + 1


def is_of_group(interface: str, group: int) -> bool:
    """Return whether an interface of that name is there and was made in that group."""
    if not group:
        return False
    try:
        return int(_SYSTEM.joinpath(interface, "netdev_group").read_text(encoding="ascii")) == group
    except (OSError, ValueError):
        return False


def add_pairs(group: int, pairs: Sequence[tuple[End, End]]) -> None:
    """Create veth pairs in the group (`new_group`), their ends in the network namespaces of processes from the start.

    Raises:
        EnvironmentLacksError: the kernel refuses one: a name is taken, for instance. Those before it have been made.
    """
    lines = [f"link add {_end(group, *one)} type veth peer {_end(group, *other)}\n" for one, other in pairs]
    command = ["ip", "-batch", "-"]
    done = subprocess.run(command, input="".join(lines), check=False, capture_output=True, text=True)
    if done.returncode:
        said, _, line = done.stderr.strip().partition("\nCommand failed -:")
        one, other = pairs[int(line) - 1] if line.isdigit() else (pairs[0][0], pairs[-1][1])
        raise EnvironmentLacksError(f"the interfaces {one[0]} and {other[0]} cannot be made: {said}")


def delete(interface: str, group: int) -> bool:
    """Delete an interface if it is of the group; return whether it was, and is gone."""
    if not is_of_group(interface, group):
        return False
    done = subprocess.run(["ip", "link", "delete", interface], check=False, capture_output=True)
    return done.returncode == 0


def delete_all(group: int) -> list[str]:
    """Delete all interfaces of the group; return the names of those that are gone.

    They go at once: the kernel waits for packets in flight whenever it removes interfaces, up to 0.1 s, and after a
    request for each would wait for each.
    """
    if not group:
        return []
    found = [entry.name for entry in os.scandir(_SYSTEM) if is_of_group(entry.name, group)]
    if found:
        subprocess.run(["ip", "link", "delete", "group", str(group)], check=False, capture_output=True)
    return [name for name in sorted(found) if not is_of_group(name, group)]


def _end(group: int, name: str, mac: str, pid: int) -> str:
    return f"name {name} address {mac} netns {pid} group {group}"
