"""Reads a network file of limited size; the top-level keys determine its format."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from weft.cache.files import UnreadableFileError, read_bytes
from weft.errors import translated
from weft.quantities.plain_data import repeated_name
from weft.quantities.units import shown
from weft.topologies.errors import TopologyError, in_file, require_path
from weft.topologies.networks.fields import Fields
from weft.topologies.networks.model import Network
from weft.topologies.networks.p4_utils import read_p4_utils
from weft.topologies.networks.tutorials import read_tutorials

MAX_FILE_BYTES = 8 * 1024 * 1024
_MOST_NAMED = 8
_MOST_NODES = 10_000
_KEYS = {"hosts", "switches", "links"}
_KEY = re.compile(rb'"(hosts|switches|links)"\s*:')


def is_network_file(path: Path) -> bool:
    """Return whether a file has the top-level keys of a network file; never raises.

    Two of the three keys are enough, because no other file has them: `read_network` reports the missing one. Invalid
    JSON that contains all three keys counts, too: `read_network` reports where the mistake is.
    """
    try:
        tree = _parsed(path)
    except TopologyError:
        return _names_all_keys(path)
    return isinstance(tree, dict) and ("topology" in tree or len(tree.keys() & _KEYS) > 1)


def _names_all_keys(path: Path) -> bool:
    try:
        data = read_bytes(path, MAX_FILE_BYTES)
    except (OSError, ValueError):
        return False
    return {found.decode() for found in _KEY.findall(data)} == _KEYS


def read_network(path: Path) -> Network:
    """Return the network of a file, tutorials' topology.json or p4-utils' p4app.json.

    Raises:
        TopologyError: the file is unreadable, too large or malformed; the message names the file and the place.

    """
    tree = _parsed(path)
    with translated(TopologyError, in_file, path):
        fields = Fields(tree, "")
        _require_few_nodes(fields.child("topology") if "topology" in fields else fields)
        if "topology" in fields:
            network = read_p4_utils(fields, path)
        elif all(name in fields for name in _KEYS):
            network = read_tutorials(fields, path)
        else:
            raise TopologyError(
                f"has {shown(', '.join(fields))} at the top",
                valid="hosts, switches and links, as p4lang/tutorials' "
                "topology.json; or topology, as p4-utils' p4app.json",
            )
        _require_sound(network)
    return network


def _require_few_nodes(fields: Fields) -> None:
    """Check the number of nodes before any lookups among them."""
    for name in ("hosts", "switches"):
        count = sum(1 for _ in fields.child(name))
        if count > _MOST_NODES:
            raise TopologyError(f"there are {count:,}", place=fields.at(name), valid=f"at most {_MOST_NODES:,}")


def _parsed(path: Path) -> object:
    require_path(path)
    try:
        text = read_bytes(path, MAX_FILE_BYTES).decode("utf-8-sig")
        tree: object = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_number)
        if r"\u" in text:  # no path or command contains an unpaired surrogate
            json.dumps(tree, ensure_ascii=False).encode()
    except UnreadableFileError as error:
        raise TopologyError(error) from None
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise TopologyError(f"is not JSON: {error.msg}", place=f"{path}, line {error.lineno}") from None
    except (RecursionError, ValueError) as error:
        raise TopologyError(f"is not JSON in UTF-8: {error}", place=path) from None
    return tree


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    twice = repeated_name(pairs)
    if twice is not None:
        raise ValueError(f"key {shown(twice)} is repeated")
    return dict(pairs)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _require_sound(network: Network) -> None:
    """Check the file as a whole: names and ports are unique, and every host has one NIC."""
    hosts = {host.name for host in network.hosts}
    if not hosts:
        raise TopologyError("hosts: there are none", valid="at least one")
    both = hosts & {switch.name for switch in network.switches}
    if both:
        raise TopologyError(f"{min(both)} is a host and a switch", valid="one of them")
    nics: dict[str, int] = dict.fromkeys(hosts, 0)
    taken: dict[tuple[str, int], int] = {}
    for number, link in enumerate(network.links):
        place = f"links[{number}]"
        if link.b in hosts:
            raise TopologyError(f"joins hosts {link.a} and {link.b}", place=place, valid="a switch to each")
        if link.a == link.b:
            raise TopologyError(f"joins {link.a} to itself", place=place, valid="two different nodes")
        for node, port in ((link.a, link.a_port), (link.b, link.b_port)):
            if node in hosts:
                nics[node] += 1
            elif (node, port) in taken:
                raise TopologyError(
                    f"port {port} of {node} has links[{taken[node, port]}] already",
                    place=place,
                    valid="one link",
                )
            else:
                taken[node, port] = number
    for host in network.hosts:
        if nics[host.name] != 1:
            raise TopologyError(f"host {host.name} has {nics[host.name]} links", valid="one; a host has one NIC")
    addresses: dict[str, str] = {}
    for host in network.hosts:
        address = host.ipv4.split("/")[0]
        if address in addresses:
            raise TopologyError(f"hosts {addresses[address]} and {host.name} both have {address}")
        addresses[address] = host.name
    _require_different((setup.grpc_port for setup in network.setups.values()), "gRPC port")
    thrift_ports = (setup.thrift_port for setup in network.setups.values())
    _require_different((port for port in thrift_ports if port is not None), "Thrift port")
    _require_different((switch.device_id for switch in network.switches), "device id")
    _require_joined(network)


def _require_joined(network: Network) -> None:
    """Check that links lead from the first host to all others, because Weft's ranks and pings use all pairs."""
    neighbours: dict[str, list[str]] = {}
    for link in network.links:
        neighbours.setdefault(link.a, []).append(link.b)
        neighbours.setdefault(link.b, []).append(link.a)
    first = network.hosts[0].name
    seen, waiting = {first}, [first]
    while waiting:
        found = [each for each in neighbours.get(waiting.pop(), ()) if each not in seen]
        seen.update(found)
        waiting += found
    apart = [host.name for host in network.hosts if host.name not in seen]
    if apart:
        named = ", ".join(apart[:_MOST_NAMED]) + (" …" if len(apart) > _MOST_NAMED else "")
        raise TopologyError(f"links: none lead from {first} to {named}", valid="links that join all hosts")


def _require_different(numbers: Iterable[int], what: str) -> None:
    number, count = max(Counter(numbers).items(), key=lambda each: each[1], default=(0, 0))
    if count > 1:
        raise TopologyError(f"two switches have the {what} {number}", valid="one for each")
