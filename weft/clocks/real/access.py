"""Access to a lab's switches: a directory of its own for the P4Runtime socket and the files that its clients read.

On a machine with several users a TCP port on the loopback is open to all of them, and P4Runtime does not authenticate
its clients. A Unix socket is a file with an owner.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from weft.errors import EnvironmentLacksError
from weft.scenario.program import Program

SOCKET = "p4runtime.sock"
OPERATIONS_SOCKET = "operations.sock"
# sun_path of unix(7) has 108 bytes, the last of which is 0.
MAX_PATH_BYTES = 107


def owner() -> tuple[int, int]:
    """Return the user and group that run the lab: those that called sudo, if it runs under sudo."""
    if os.geteuid() == 0:
        try:
            return int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
        except (KeyError, ValueError):
            pass
    return os.geteuid(), os.getegid()


class LabAccess:
    """The directory, which only its owner and root may enter, and the owner once it has been handed over."""

    def __init__(self, parent: Path, announce: Callable[[Path], None]) -> None:
        """Create it below `parent`, after announcing its path.

        Raises:
            EnvironmentLacksError: the path is too long for a socket.
        """
        self.directory = parent / f"lab-{secrets.token_hex(4)}"
        longest = max(self._socket, self.operations_socket, key=lambda path: len(os.fsencode(path)))
        if len(os.fsencode(longest)) > MAX_PATH_BYTES:
            raise EnvironmentLacksError(
                f"{longest}: a socket's path has at most {MAX_PATH_BYTES} bytes: "
                "choose a shorter WEFT_STATE_FILE, or `grpc: tcp`"
            )
        announce(self.directory)
        self.directory.mkdir(mode=0o700)

    @property
    def _socket(self) -> Path:
        return self.directory / SOCKET

    @property
    def operations_socket(self) -> Path:
        """Where the controller takes requests."""
        return self.directory / OPERATIONS_SOCKET

    def verbs_socket(self, index: int) -> Path:
        """Where the NIC process of a host, by its index, takes RDMA programs: no longer than the others' path."""
        return self.directory / f"verbs{index}.sock"

    @property
    def grpc_address(self) -> str:
        """gRPC's name of the socket."""
        return f"unix:{self._socket}"

    def publish(self, program: Program, number: int = 0) -> tuple[str, str]:
        """Copy P4Info and JSON here, where the owner can read them; returns both paths.

        `number` keeps the programs of a lab apart, since their files may have the same names.
        """
        folder = self.directory / f"program-{number}" if number else self.directory
        folder.mkdir(mode=0o700, exist_ok=True)
        copies = folder / program.p4info.name, folder / program.json.name
        for source, copy in zip((program.p4info, program.json), copies, strict=True):
            shutil.copyfile(source, copy)
        return str(copies[0]), str(copies[1])

    def hand_over(self) -> None:
        """Give the directory and all that is in it to the owner; as root nothing is written here after that."""
        user, group = owner()
        for path in (*self.directory.rglob("*"), self.directory):
            os.chown(path, user, group, follow_symlinks=False)


def hand_over(paths: Iterable[Path]) -> None:
    """Give existing files to the user who called sudo; skip missing ones."""
    user, group = owner()
    if user == os.geteuid():
        return
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.chown(path, user, group, follow_symlinks=False)
