"""The files in which libibverbs, librdmacm and tools find a host's RDMA device, as Linux writes them in sysfs.

Names and forms: Linux, Documentation/ABI/stable/sysfs-class-infiniband and drivers/infiniband/core/sysfs.c; what
libraries read: rdma-core, libibverbs/init.c, cmd_device.c and librdmacm/cma.c.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from weft.hints import DISTRIBUTION
from weft.verbs.counters import (
    HARDWARE_FOLDER,
    PORT_COUNTERS,
    REFRESH_S,
    SHARED_FOLDERS,
    counters_folder,
    shared_files,
)
from weft.verbs.device import DEVICE, MODALIAS, UVERBS, Device, Port, gid, link_speed

STANDS_FOR_DEVICES = Path("/dev/null")
"""Programs open it as the device: libraries look at its numbers only, and no kernel answers behind it."""

# Of the kernel's interface: ib_uverbs (IB_USER_VERBS_ABI_VERSION) and rdma_ucm (RDMA_USER_CM_ABI_VERSION).
_UVERBS_ABI = 6
_RDMA_CM_ABI = 4
_PROVIDER_ABI = 1
_LEAF_RIGHTS, _FOLDER_RIGHTS = 0o444, 0o755
_COUNTER_RIGHTS = 0o644
"""The host's process writes counters, and need not be able to override rights."""


def write_sysfs(root: Path, device: Device) -> Path:
    """Write the tree below a new folder, as a host's sysfs has it; return the device's folder in it.

    Everybody may read it, whatever the process's umask.
    """
    numbers = os.stat(STANDS_FOR_DEVICES).st_rdev
    dev = f"{os.major(numbers)}:{os.minor(numbers)}"
    tree = root / "class"
    own = tree / "infiniband" / DEVICE
    files: dict[Path, object] = {
        tree / "infiniband_verbs" / "abi_version": _UVERBS_ABI,
        tree / "infiniband_verbs" / UVERBS / "ibdev": DEVICE,
        tree / "infiniband_verbs" / UVERBS / "dev": dev,
        tree / "infiniband_verbs" / UVERBS / "abi_version": _PROVIDER_ABI,
        tree / "infiniband_verbs" / UVERBS / "device" / "modalias": MODALIAS,
        tree / "misc" / "rdma_cm" / "abi_version": _RDMA_CM_ABI,
        tree / "misc" / "rdma_cm" / "dev": dev,
        own / "node_type": "1: CA",
        own / "node_guid": device.guid,
        own / "sys_image_guid": device.guid,
        own / "node_desc": f"{device.host} {DEVICE}",
        own / "fw_ver": _version(),
        own / "hca_type": "Weft",
        own / "board_id": "WEFT",
        own / "device" / "modalias": MODALIAS,
        own / "device" / "numa_node": -1,
    }
    for port in device.ports:
        files |= _port_files(own, port)
        files[own / "device" / "net" / port.interface / "address"] = port.mac
    counters = {counters_folder(own, port.number) / name for port in device.ports for name in PORT_COUNTERS}
    counters |= {path for path, _ in shared_files(own)}
    files[own / HARDWARE_FOLDER / "lifespan"] = int(REFRESH_S * 1000)
    writer = _Writer(root)
    for path, content in files.items():
        writer.write(path, f"{content}\n", _LEAF_RIGHTS)
    for path in sorted(counters):
        writer.write(path, "0\n", _COUNTER_RIGHTS)
    if len(device.ports) == 1:
        # Where programs look first. Of several ports it is not known which of them sent a CNP.
        for name in SHARED_FOLDERS:
            (own / "ports" / "1" / name).symlink_to(f"../../{name}")
    return own


def _port_files(own: Path, port: Port) -> dict[Path, object]:
    folder = own / "ports" / str(port.number)
    files: dict[Path, object] = {
        folder / "state": "4: ACTIVE",
        folder / "phys_state": "5: LinkUp",
        folder / "link_layer": "Ethernet",
        folder / "rate": _rate(port.rate_bps),
        # IsCommunicationManagementSupported, as of every RoCE port.
        folder / "cap_mask": "0x00010000",
        folder / "lid": "0x0",
        folder / "sm_lid": "0x0",
        folder / "sm_sl": 0,
        folder / "lid_mask_count": 0,
        folder / "pkeys" / "0": "0xffff",
    }
    for index, address in enumerate(port.addresses):
        files[folder / "gids" / str(index)] = gid(address)
        files[folder / "gid_attrs" / "types" / str(index)] = "RoCE v2"
        files[folder / "gid_attrs" / "ndevs" / str(index)] = port.interface
    return files


def _rate(rate_bps: int) -> str:
    speed = link_speed(rate_bps)
    return f"{speed.rate_bps / 1e9:g} Gb/sec ({speed.lanes}X {speed.name})"


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # of a checkout that was not installed
        return "0.0.0"


class _Writer:
    """Writes files below a root, and the folders that they need; every lab writes some 140 for each host."""

    def __init__(self, root: Path) -> None:
        self._made = {str(root)}
        root.mkdir(parents=True)
        root.chmod(_FOLDER_RIGHTS)

    def write(self, path: Path, content: str, rights: int) -> None:
        name = str(path)
        self._make(os.path.dirname(name))
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, rights)
        try:
            os.fchmod(descriptor, rights)
            os.write(descriptor, content.encode("ascii"))
        finally:
            os.close(descriptor)

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            self._make(os.path.dirname(folder))
            os.mkdir(folder)
            os.chmod(folder, _FOLDER_RIGHTS)
            self._made.add(folder)
