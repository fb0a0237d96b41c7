"""Puts a host's RDMA device where programs look for it, in the host's own mount namespace.

The machine's /dev and /sys stay as they are: what is mounted here is seen in the host only, and goes with it.
The device's files are /dev/null, mounted under other names, because containers may not use mknod.
"""

from __future__ import annotations

import ctypes
import os
import stat
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from weft.errors import EnvironmentLacksError
from weft.verbs.device import UVERBS
from weft.verbs.sysfs import STANDS_FOR_DEVICES

_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000  # sched.h
_MS_NOSUID, _MS_BIND, _MS_REC = 0x2, 0x1000, 0x4000  # sys/mount.h

_DEV = Path("/dev")
_PTMX = "/dev/ptmx"
_CLASS = Path("/sys/class")
RDMA_CM = "rdma_cm"

_libc = ctypes.CDLL(None, use_errno=True)


def put_devices(trees: Mapping[int, Path]) -> None:
    """Mount trees of `write_sysfs` and the files of their devices in hosts' mount namespaces.

    Args:
        trees: by process in the host.

    Raises:
        EnvironmentLacksError: the kernel, or a container's security profile, refuses it.
    """

    def put_all() -> None:
        for pid, tree in trees.items():
            _enter(pid)
            _put(tree)

    _in_thread(put_all)


_TAKEN_AWAY = """
if ! umount --lazy "$0/infiniband" 2>/dev/null; then umount --lazy "$0"; fi && umount --lazy "$1" && shift && exec "$@"
"""


def without_devices() -> list[str]:
    """Return the command that runs another one of a host where the machine's own /dev and /sys are seen again."""
    return ["unshare", "--mount", "sh", "-c", _TAKEN_AWAY, str(_DEV), str(_CLASS)]


def _in_thread(action: Callable[[], None]) -> None:
    """Run an action in a thread that ends with it, so that only this thread changes its namespace."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            # A thread that shares its directories with others may not change its mount namespace (setns(2)).
            _checked(_libc.unshare(_CLONE_FS), "unshare(CLONE_FS)")
            action()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="verbs devices")
    thread.start()
    thread.join()
    for failure in failures:
        if isinstance(failure, OSError):
            raise EnvironmentLacksError(f"an RDMA device cannot be put into a host: {failure}") from None
        raise failure


def _enter(pid: int) -> None:
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _checked(_libc.setns(namespace, _CLONE_NEWNS), f"setns({pid})")
    finally:
        os.close(namespace)


def _put(tree: Path) -> None:
    folder = _DEV / "infiniband"
    if folder.is_dir():
        _mount_empty(folder)
    else:
        _cover(_DEV)
        folder.mkdir()
    for name in (UVERBS, RDMA_CM):
        _bind(str(STANDS_FOR_DEVICES), str(folder / name), is_folder=False)
    # Devices of the machine, if it has any, are no NICs of the host.
    _cover(_CLASS, without=[each.name for each in _CLASS.iterdir() if each.name.startswith("infiniband")])
    misc = _CLASS / "misc"
    if misc.is_dir():
        _cover(misc, without=[RDMA_CM])
    else:
        misc.mkdir()
    for name in ("infiniband", "infiniband_verbs", f"misc/{RDMA_CM}"):
        _bind(str(tree / "class" / name), str(_CLASS / name), is_folder=True)


def _cover(directory: Path, without: Collection[str] = ()) -> None:
    """Mount a new folder over one, with all that the old one has, so that more can be added."""
    old = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _mount_empty(directory)
        with os.scandir(old) as entries:
            for entry in entries:
                source, target = f"/proc/self/fd/{old}/{entry.name}", f"{directory}/{entry.name}"
                if entry.name in without:
                    continue
                if entry.is_symlink():
                    # Relative ones lead to the same place, because the directory's path is the same.
                    os.symlink(os.readlink(source), target)
                elif target == _PTMX:
                    _make_ptmx(source)
                else:
                    _bind(source, target, entry.is_dir(follow_symlinks=False))
    finally:
        os.close(old)


def _make_ptmx(source: str) -> None:
    """Make the multiplexer of pseudo-terminals again: mounted under another name it finds no devpts at its side."""
    status = os.stat(source)
    try:
        os.mknod(_PTMX, status.st_mode, status.st_rdev)
        os.chmod(_PTMX, stat.S_IMODE(status.st_mode))
    except PermissionError:  # as containers have it (Linux, Documentation/filesystems/devpts.rst)
        os.symlink("pts/ptmx", _PTMX)


def _mount_empty(directory: Path) -> None:
    made = _libc.mount(b"weft", os.fsencode(directory), b"tmpfs", _MS_NOSUID, b"mode=755")
    _checked(made, f"mount(tmpfs, {directory})")


def _bind(source: str, target: str, is_folder: bool) -> None:
    """Mount a file or folder, with what is mounted in it, under a new name."""
    if is_folder:
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
    made = _libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND | _MS_REC, None)
    _checked(made, f"mount({source}, {target})")


def _checked(result: int, call: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
