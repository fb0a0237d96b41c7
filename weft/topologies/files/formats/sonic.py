"""SONiC's config_db.json of each switch: PORT, DEVICE_NEIGHBOR, DEVICE_METADATA and DEVICE_NEIGHBOR_METADATA.

The tables are SONiC's configuration's (github.com/sonic-net/sonic-buildimage, src/sonic-yang-models). A file's
name does not matter; the switch's name is DEVICE_METADATA's hostname.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError
from weft.topologies.files.format import FileFormat
from weft.topologies.files.json_text import parsed_json
from weft.topologies.files.listed import ListedGraph
from weft.topologies.files.neighbours import Device, Neighbour, joined

_HOSTS = ("server", "smartcable", "endpoint", "host")
"""Types of neighbours that are no switches, in small letters."""
_MOST_MBPS = 100_000_000
_MOST_DIGITS = 12


def read_sonic_folder(files: Mapping[str, bytes]) -> ListedGraph:
    """Return the graph of the switches and their neighbours. Raises TopologyError with file, table and key."""
    down: list[str] = []
    devices = [_device(file, content, down) for file, content in files.items()]
    return joined(devices, [f"ports with admin_status down, left out: {len(down)}"] if down else [])


def _device(file: str, content: bytes, down: list[str]) -> Device:
    try:
        tree = parsed_json(content)
    except TopologyError as error:
        raise TopologyError(error.moved(f"{file}, {error.place}" if error.place else file)) from None
    if not isinstance(tree, dict):
        raise TopologyError(f"must be a mapping of tables, is {shown(tree)}", place=file)
    about = _table(tree, "DEVICE_METADATA", file).get("localhost", {})
    name = about.get("hostname")
    if not isinstance(name, str) or not name:
        place = f"{file}: DEVICE_METADATA.localhost.hostname"
        raise TopologyError(f"{shown(name)} is not a name", place=place, valid="the name of the switch")
    device = Device(name, file, is_switch=True)
    ports = _table(tree, "PORT", file)
    for port, keys in ports.items():
        if "speed" in keys:
            device.rates[port] = _rate(keys["speed"], f"{file}: PORT.{port}.speed")
        if isinstance(keys.get("alias"), str):
            device.aliases[keys["alias"]] = port
    kinds = _table(tree, "DEVICE_NEIGHBOR_METADATA", file)
    for key, keys in _table(tree, "DEVICE_NEIGHBOR", file).items():
        place = f"{file}: DEVICE_NEIGHBOR.{key}"
        # Before 2018 the key was the neighbour's name.
        port, neighbour = (keys["local_port"], key) if "local_port" in keys else (key, keys.get("name"))
        if not isinstance(neighbour, str) or not isinstance(port, str):
            raise TopologyError(f"name {shown(neighbour)} is not valid", place=place, valid="the name of a neighbour")
        if ports and port not in ports:
            raise TopologyError(
                f"no port is named {shown(port)}", place=place, valid=f"{', '.join(list(ports)[:8])}, …"
            )
        if port in device.neighbours:
            raise TopologyError(f"port {shown(port)} has two neighbours", place=place, valid="one neighbour a port")
        if ports.get(port, {}).get("admin_status") == "down":
            down.append(port)
            continue
        kind = kinds.get(neighbour, {}).get("type", keys.get("type"))
        other = keys.get("port")
        device.neighbours[port] = Neighbour(
            neighbour,
            (other,) if isinstance(other, str) and other else (),
            None if not isinstance(kind, str) else kind.lower() not in _HOSTS,
        )
    return device


def _table(tree: dict[str, Any], name: str, file: str) -> dict[str, dict[str, Any]]:
    table = tree.get(name, {})
    if not isinstance(table, dict):
        raise TopologyError(f"must be a table, is {shown(table)}", place=f"{file}: {name}")
    for key, keys in table.items():
        if not isinstance(keys, dict):
            raise TopologyError(f"must be a mapping, is {shown(keys)}", place=f"{file}: {name}.{key}")
    return table


def _rate(speed: object, place: str) -> str:
    text = str(speed) if isinstance(speed, str | int) and not isinstance(speed, bool) else ""
    is_number = len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal()
    if not is_number or not 1 <= int(text) <= _MOST_MBPS:
        raise TopologyError(f"{shown(speed)} is not valid", place=place, valid=f"1 to {_MOST_MBPS}, in Mb/s")
    return f"{int(text)}Mb/s"


def _recognised(content: bytes) -> bool:
    return content.lstrip()[:1] == b"{" and b'"DEVICE_METADATA"' in content


KIND = FileFormat(
    "sonic",
    lambda content: read_sonic_folder({"config_db.json": content}),
    _recognised,
    suffixes=(".json",),
    read_folder=read_sonic_folder,
)
