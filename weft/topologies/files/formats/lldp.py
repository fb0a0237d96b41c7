"""LLDP neighbours, as `lldpcli -f json show neighbors` or lldpctl prints them: a folder with NAME.json of each device.

lldpd's JSON has an object in place of a list of one, and a neighbour's chassis below its system name. A device is a
switch if its neighbours see that it is a Bridge or a Router, else a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError
from weft.topologies.files.format import FileFormat
from weft.topologies.files.json_text import parsed_json
from weft.topologies.files.listed import ListedGraph
from weft.topologies.files.neighbours import Device, Neighbour, joined

_SWITCHES = ("Bridge", "Router")
_MANAGEMENT = re.compile(r"(eth0|mgmt\d*|ma\d+|management\d+(/\d+)*|fxp\d|em0|me0|oob\w*)", re.IGNORECASE)
"""Names of management ports on switches of SONiC, Cumulus, NX-OS, EOS and Junos."""


def read_lldp_folder(files: Mapping[str, bytes]) -> ListedGraph:
    """Return the graph of devices that are named like their files. Raises TopologyError with file and port."""
    devices, management = [], 0
    for file, content in files.items():
        device = Device(file.removesuffix(".json"), file)
        try:
            tree = parsed_json(content)
        except TopologyError as error:
            raise TopologyError(error.moved(f"{file}, {error.place}" if error.place else file)) from None
        if isinstance(tree, dict) and "lldp_loc_chassis" in tree:
            _add_own(device, tree["lldp_loc_chassis"], file)
        for port, entry in _ports(tree, file):
            neighbour = _neighbour(entry, f"{file}: {port}")
            if _MANAGEMENT.fullmatch(port) and neighbour.is_switch:
                management += 1
                continue
            if port in device.neighbours:
                raise TopologyError(
                    f"has neighbours {shown(device.neighbours[port].name)} and {shown(neighbour.name)}",
                    place=f"{file}: {port}",
                    valid="one neighbour a port",
                )
            device.neighbours[port] = neighbour
        devices.append(device)
    return joined(devices, [f"management ports, left out: {management}"] if management else [])


def _ports(tree: object, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    lldp = _mapping(_mapping(tree, file).get("lldp"), f"{file}: lldp")
    for item in _items(lldp.get("interface", [])):
        for port, entry in _mapping(item, f"{file}: lldp.interface").items():
            yield port, _mapping(entry, f"{file}: {port}")


def _add_own(device: Device, own: object, file: str) -> None:
    """Take name and kind of a device from what SONiC's lldp_syncd adds to lldpctl's output."""
    place = f"{file}: lldp_loc_chassis"
    local = _mapping(_mapping(own, place).get("local-chassis"), f"{place}.local-chassis")
    device.name, device.is_switch = _system(local, f"{place}.local-chassis")


def _system(entry: dict[str, Any], place: str) -> tuple[str, bool | None]:
    """Return the name of a system, and whether it says that it is a switch."""
    chassis = _mapping(entry.get("chassis"), f"{place}: chassis")
    # A neighbour that sends no system name is not below one.
    name, about = next(iter(chassis.items()), ("", {}))
    if "id" in chassis:
        about, name = chassis, str(chassis.get("name") or _value(chassis["id"]))
    capabilities = list(_items(about.get("capability", []))) if isinstance(about, dict) else []
    enabled = {each.get("type") for each in capabilities if isinstance(each, dict) and each.get("enabled") is True}
    return name, any(each in enabled for each in _SWITCHES) if capabilities else None


def _neighbour(entry: dict[str, Any], place: str) -> Neighbour:
    name, is_switch = _system(entry, place)
    port = _mapping(entry.get("port"), f"{place}: port")
    identity = port.get("id")
    kind = identity.get("type") if isinstance(identity, dict) else None
    names = [_value(identity), port.get("descr")]
    ports = tuple(each for each in (reversed(names) if kind == "mac" else names) if isinstance(each, str) and each)
    return Neighbour(name, ports, is_switch)


def _value(identity: object) -> str:
    value = identity.get("value") if isinstance(identity, dict) else None
    return value if isinstance(value, str) else ""


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _mapping(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TopologyError(f"must be a mapping, is {shown(value)}", place=place)
    return value


def _recognised(content: bytes) -> bool:
    # SONiC's configurations have a feature of this name.
    found = re.search(rb'"lldp"\s*:\s*\{\s*("interface"|\})', content)
    return found is not None and b'"DEVICE_METADATA"' not in content


KIND = FileFormat(
    "lldp",
    lambda content: read_lldp_folder({"switch.json": content}),
    _recognised,
    suffixes=(".json",),
    read_folder=read_lldp_folder,
)
