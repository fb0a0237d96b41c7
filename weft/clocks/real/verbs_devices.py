"""RDMA devices of a lab's hosts, for programs on the distribution's libibverbs (`weft.verbs`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weft.clocks.real.access import LabAccess
from weft.errors import EnvironmentLacksError
from weft.topologies import FabricSpec
from weft.topologies.networks import NetworkHost
from weft.verbs.device import DEVICE, device_of
from weft.verbs.libraries import missing_because, variables
from weft.verbs.places import put_devices
from weft.verbs.sysfs import write_sysfs

if TYPE_CHECKING:
    from weft.clocks.real.network import FabricNetwork


def device_folder(directory: Path, host: str) -> Path:
    """Return the folder of a host's device, `class/infiniband/weft0` of its sysfs, in the lab's directory."""
    return _tree(directory, host) / "class" / "infiniband" / DEVICE


def _tree(directory: Path, host: str) -> Path:
    return directory / "verbs" / host


class VerbsDevices:
    """Gives each host of a lab its device.

    Attributes:
        sockets: where each host's NIC process takes RDMA programs, by the host's name; empty without devices.
        missing: why hosts have no device; "" if they have one.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        network: FabricNetwork,
        directory: Path,
        access: LabAccess,
        plain_hosts: Mapping[str, NetworkHost],
    ) -> None:
        """Write the devices' files in the lab's directory and mount them in the hosts, or record why not."""
        self.sockets: dict[str, str] = {}
        self.missing = (
            "hosts of a network file have their kernel's interfaces only" if plain_hosts else missing_because()
        )
        if self.missing:
            return
        trees = {}
        for host in fabric.hosts:
            tree = _tree(directory, host.name)
            write_sysfs(tree, device_of(host))
            trees[network.net.get(host.name).pid] = tree
        try:
            put_devices(trees)
        except EnvironmentLacksError as error:
            # A lab without RDMA programs needs no device.
            self.missing = str(error)
            return
        for host in fabric.hosts:
            self.sockets[host.name] = str(access.verbs_socket(host.index))
            network.net.get(host.name).use_variables(variables(self.sockets[host.name]))
