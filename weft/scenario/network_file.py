"""A network file as a scenario: its fabric, the programs of its switches, their entries and commands.

Programs are P4 sources. The tutorials name compiled files, `build/firewall.json`; the source, `firewall.p4`, is in the
exercise's folder. Switches without a program run the Makefile's `DEFAULT_PROG`, or the folder's only `*.p4`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cache import read_text
from weft.errors import BadInputError, translated
from weft.quantities.traffic_classes import CLASSES
from weft.scenario.model import Scenario
from weft.scenario.parsing import Change, apply_changes, load_scenario, parse_scenario
from weft.topologies import TopologyError

if TYPE_CHECKING:
    from weft.topologies.networks import Network

_MOST_MAKEFILE_BYTES = 1024 * 1024
_DEFAULT_PROGRAM = re.compile(r"^\s*DEFAULT_PROG\s*[:?]?=\s*(\S+)\s*$", re.MULTILINE)
_BMV2_UNITS = {"depth_unit": "packets", "time_unit": "us"}
"""In which programs of network files expect queues and times."""


def load_scenario_or_network(
    path: Path, changes: Sequence[Change] = (), clock: str | None = None
) -> tuple[Scenario, Network | None]:
    """Return the scenario of a file, and the network if it is a network file, with `clock` as its default.

    If that is the virtual clock, its default traffic is a ping between all hosts.

    Raises:
        BadInputError: as `load_scenario`; or the network file is wrong, or its program cannot be found.
    """
    if not _is_network(path):
        return load_scenario(path, changes), None
    network = _read(path)
    own = [Path(str(change.value)).resolve() for change in changes if change.key == "p4"]
    tree = network_tree(network, own[-1] if own else None)
    if clock is not None:
        tree["clock"] = clock
    if clock == "virtual" and len(network.hosts) > 1:
        tree["traffic"] = [{"ping": "all", "count": 1}]  # as Mininet's pingall
    options = apply_changes(tree, [change for change in changes if change.key != "p4"])
    return parse_scenario(tree, str(path), units_required=True, options=options), network


def load_fabric(path: Path, changes: Sequence[Change] = ()) -> Scenario:
    """Return the scenario of a file for its fabric's sake: of a network file, without programs and entries.

    Raises BadInputError, as `load_scenario`; or the network file is wrong.
    """
    if not _is_network(path):
        return load_scenario(path, changes)
    network = _read(path)
    tree = {"name": _scenario_name(network.path), "fabric": _fabric_tree(network)}
    return parse_scenario(tree, str(path), units_required=True, options=apply_changes(tree, changes))


def _is_network(path: Path) -> bool:
    if path.suffix != ".json":
        return False
    # Few scenarios are networks.
    from weft.topologies.networks import is_network_file

    return is_network_file(path)


def _read(path: Path) -> Network:
    from weft.topologies.networks import read_network

    with translated(TopologyError, BadInputError):
        return read_network(path.resolve())


def _fabric_tree(network: Network) -> dict[str, str]:
    return {"kind": "network", "path": str(network.path)}


def network_tree(network: Network, p4: Path | None = None) -> dict[str, Any]:
    """Return the scenario of a network as a file would have it.

    `p4` takes the place of the program of the same name, or of the one that switches have by default. Raises
    BadInputError.
    """
    programs = {
        name: _source(setup.program, network) for name, setup in network.setups.items() if setup.program is not None
    }
    same_name = [name for name, path in programs.items() if p4 is not None and path.name == p4.name]
    for name in same_name:
        assert p4 is not None
        programs[name] = p4
    tree: dict[str, Any] = {
        "name": _scenario_name(network.path),
        "fabric": _fabric_tree(network),
        "int": False,
        "dilation": 1,
        "switching": dict(_BMV2_UNITS),
        "programs": {name: str(path) for name, path in programs.items()},
        "entries": _files(network, "runtime_json"),
        "commands": _files(network, "commands"),
        "faults": {"links": _losses(network)},
        "buffer": _priority_queues(network),
    }
    if len(programs) < len(network.switches):
        tree["p4"] = str(p4 if p4 is not None and not same_name else _default_program(network))
    else:
        tree["p4"] = next(iter(tree["programs"].values()))
    return {key: value for key, value in tree.items() if value not in ({}, {"links": []})}


def what_is_not_done(network: Network, is_virtual: bool) -> list[str]:
    """Return what a network file asks for and does not get, as sentences."""
    said = [f"{network.path.name}: {note}" for note in network.notes]
    if is_virtual:
        from weft.topologies.networks.host_commands import understand

        said += [
            f"{network.path.name}: hosts.{host.name}.commands: {command!r} is not run in virtual time"
            for host in network.hosts
            for command in understand(host.commands).others
        ]
        said += [
            f"{network.path.name}: exec_scripts: {command!r} is not run in virtual time (valid: a controller class)"
            for command in network.scripts
        ]
    return said


def _files(network: Network, kind: str) -> dict[str, str]:
    return {name: str(path) for name, setup in network.setups.items() if (path := getattr(setup, kind)) is not None}


def _priority_queues(network: Network) -> dict[str, str]:
    """Return the memory of switches that keep priorities apart; empty if none of the network does.

    Each queue has the memory of the network's largest port and cannot take another's, so that a full queue of a low
    priority does not drop packets of a high one. All of it is reserved: ports share nothing.
    """
    if not any(setup.priority_queues for setup in network.setups.values()):
        return {}
    ports = Counter(end for link in network.links for end in (link.a, link.b))
    queue_bytes = max(link.queue_capacity_bytes for link in network.links)
    queues = CLASSES * (max(ports.values()) + 1)  # one more for a controller's port
    return {"capacity": f"{queues * queue_bytes}B", "reserved": f"{queue_bytes}B"}


def _losses(network: Network) -> list[dict[str, Any]]:
    return [
        {"link": f"{link.a}:{link.a_port}<->{link.b}:{link.b_port}", "loss": link.loss}
        for link in network.links
        if link.loss
    ]


def _source(program: Path, network: Network) -> Path:
    """Return the P4 source of a program that a file names, which may be the compiled one."""
    if program.suffix != ".json":
        return program
    source = network.folder / f"{program.stem}.p4"
    if not source.is_file():
        raise BadInputError(f"the source of {program.name} is not there: {source}", place=network.path)
    return source


def _default_program(network: Network) -> Path:
    if network.program is not None:
        return _source(network.program, network)
    named = _of_makefile(network.folder / "Makefile")
    if named is not None:
        return network.folder / named
    found = sorted(network.folder.glob("*.p4"))
    if len(found) != 1:
        there = ", ".join(path.name for path in found) or "none"
        raise BadInputError(
            f"which program switches run is not clear: P4 files in {network.folder}: {there}",
            place=network.path,
            valid="exactly one, a Makefile's DEFAULT_PROG, or --p4 FILE",
        )
    return found[0]


def _of_makefile(path: Path) -> str | None:
    try:
        match = _DEFAULT_PROGRAM.search(read_text(path, _MOST_MAKEFILE_BYTES))
    except (OSError, UnicodeDecodeError):
        return None
    return match[1] if match else None


def _scenario_name(path: Path) -> str:
    name = re.sub("[^a-z0-9]+", "-", path.parent.name.lower()).strip("-")[:40].strip("-")
    return name or "network"
