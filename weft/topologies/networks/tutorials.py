"""p4lang/tutorials' topology.json: `hosts`, `switches` and `links` of `["h1", "s1-p1", latency, bandwidth]`.

Fields mean the same as in the tutorials' runner: latency as Linux's tc reads it, but a number is milliseconds;
bandwidth in Mbit/s. Switches listen on TCP 50051, 50052, … and have the device ids 0, 1, … in the order of their
names. Paths are relative to the directory in which the runner is started (`program_folder`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from weft.hints import did_you_mean
from weft.quantities.units import PS_PER_MS, shown
from weft.topologies.addressing import CPU_PORT
from weft.topologies.errors import TopologyError
from weft.topologies.networks import fields as read
from weft.topologies.networks import model
from weft.topologies.networks.fields import Fields
from weft.topologies.networks.model import natural_order

FORMAT = "tutorials"
_FIRST_GRPC_PORT = 50051
_HOST_FIELDS = ("ip", "mac", "commands")
_SWITCH_FIELDS = ("program", "runtime_json", "cli_input", "cpu_port", "priority_queues")
_END = re.compile(r"\A([^-]+)-p([0-9]{1,5})\Z")


def read_tutorials(tree: Fields, path: Path) -> model.Network:
    """Return the network of a parsed file. Raises TopologyError with the place."""
    notes: list[str] = [f"{name}: means nothing here" for name in tree if name not in ("hosts", "switches", "links")]
    folder = program_folder(path, tree)
    hosts = tuple(_host(name, tree.child("hosts"), notes) for name in tree.child("hosts"))
    names = sorted(tree.child("switches"), key=natural_order)
    setups = {}
    for number, name in enumerate(names):
        read.node_name(name, "switches")
        setups[name] = _setup(tree.child("switches").child(name), _FIRST_GRPC_PORT + number, folder, notes)
    return model.Network(
        path=path,
        folder=folder,
        format=FORMAT,
        hosts=hosts,
        switches=tuple(model.NetworkSwitch(name, number) for number, name in enumerate(names)),
        links=_links(tree, {host.name: host for host in hosts}, dict.fromkeys(names)),
        setups=setups,
        notes=tuple(notes),
    )


def program_folder(path: Path, tree: Fields) -> Path:
    """Return the base folder of a file's paths: the nearest folder upwards in which the first path exists.

    The tutorials' runner is started in the exercise's folder, and the topology may be in a subfolder
    (`pod-topo/topology.json` names `pod-topo/s1-runtime.json`).
    """
    switches = tree.child("switches")
    named = (
        (fields, key)
        for fields in map(switches.child, switches)
        for key in ("runtime_json", "cli_input")
        if key in fields
    )
    first = next(named, None)
    folders = [path.parent, *list(path.parent.parents)[:2]]
    for folder in folders:
        if first and (file := first[0].path(first[1], folder)) and file.is_file():
            return folder
    if not first:
        # No paths: take the folder with the program, as an exercise's Makefile uses the one *.p4 in its folder.
        return next((folder for folder in folders[:2] if any(folder.glob("*.p4"))), path.parent)
    return path.parent


def _host(name: str, hosts: Fields, notes: list[str]) -> model.NetworkHost:
    fields = hosts.child(read.node_name(name, "hosts"))
    notes += [f"{fields.at(each)}: means nothing here" for each in fields if each not in _HOST_FIELDS]
    return model.NetworkHost(
        name=name,
        ipv4=read.ipv4_interface(fields.get("ip"), fields.at("ip")),
        mac=read.mac_address(fields.get("mac"), fields.at("mac")),
        interface="eth0",
        commands=fields.texts("commands"),
    )


def _setup(fields: Fields, grpc_port: int, folder: Path, notes: list[str]) -> model.SwitchSetup:
    notes += [f"{fields.at(each)}: means nothing here" for each in fields if each not in _SWITCH_FIELDS]
    if fields.whole("cpu_port", 0, 2**31) not in (None, CPU_PORT):
        raise TopologyError(f"{shown(fields.get('cpu_port'))}", place=fields.at("cpu_port"), valid=f"{CPU_PORT}")
    return model.SwitchSetup(
        grpc_port,
        program=fields.path("program", folder),
        runtime_json=fields.path("runtime_json", folder),
        commands=fields.path("cli_input", folder),
        priority_queues=read.priority_queues(fields.get("priority_queues"), fields.at("priority_queues")),
    )


def _links(tree: Fields, hosts: Collection[str], switches: Collection[str]) -> tuple[model.NetworkLink, ...]:
    links = []
    for place, item in read.link_items(tree, 2, 4):
        (a, a_port), (b, b_port) = (_end(end, hosts, switches, place) for end in item[:2])
        if b in hosts:
            a, a_port, b, b_port = b, b_port, a, a_port
        links.append(
            model.NetworkLink(
                a,
                a_port,
                b,
                b_port,
                model.DEFAULT_RATE_BPS if len(item) < 4 or item[3] is None else read.rate_bps(item[3], f"{place}[3]"),
                0 if len(item) < 3 else read.delay_ps(item[2], f"{place}[2]", PS_PER_MS),
                model.DEFAULT_QUEUE_PACKETS * model.PACKET_BYTES,
            )
        )
    return tuple(links)


def _end(text: str, hosts: Collection[str], switches: Collection[str], place: str) -> tuple[str, int]:
    """Return node and port of a link's end such as `h1` or `s1-p3`."""
    if text in hosts:
        return text, 0
    match = _END.match(text)
    if match is None:
        raise TopologyError(
            f"{shown(text)} is not an end of a link",
            place=place,
            valid=f"a host, {', '.join(islice(hosts, 3))}…, or a switch and its port, such as s1-p3",
        )
    if match[1] not in switches:
        raise TopologyError(f"{shown(text)} names no switch; {did_you_mean(match[1], switches)}", place=place)
    return match[1], read.switch_port(match[2], f"{place}: port of {text}")
