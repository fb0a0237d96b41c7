"""Every example of the scenario reference is valid in a scenario, and the whole scenarios of it run."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from weft.errors import WeftError
from weft.jobs.plain_jobs import collectives_job
from weft.jobs.traces import read_trace, write_trace
from weft.paths import EXAMPLES_DIRECTORY
from weft.quantities.yaml_files import read_mapping, read_yaml
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import load_scenario
from weft.scenario.reference import example_file, example_of
from weft.scenario.schema import Key, SectionOfKeys, sections
from weft.scenario.traffic import TRAFFIC_KINDS
from weft.traffic.jobs import CollectiveCall

SECTIONS = sections()
# Files that examples name and a reader has: what is in them.
READERS_FILES = {
    "requests.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n",
    "groups.json": "{}",
    # Four hosts at each of two switches; switches' names come first.
    "pairs.json": json.dumps(
        {
            "nodes": [{"id": each, "type": "switch"} for each in ("s0", "s1")]
            + [{"id": f"h{number}", "type": "host"} for number in range(8)],
            "links": [{"source": "s0", "target": "s1"}]
            + [{"source": f"h{number}", "target": f"s{number // 4}"} for number in range(8)],
        }
    ),
}
# Changes of the scenario that a key's example needs, by the key's path: values, and keys that its own excludes (None).
TRANSFORMER = "{layers: 4, hidden: 256, heads: 8, feed_forward: 688, vocabulary: 2000, sequence: 256}"
EXPERTS = "{count: 4, top_k: 2, feed_forward: 1408}"
CONTEXTS: list[tuple[str, dict[str, str | None]]] = [
    (r"transport\.classes", {"scheduling.classes": "[2]"}),
    (r"pfc\.watchdog\..*", {"pfc.classes": "[3]"}),
    (r".*\((collective|training_step|training_run)\)\.clear_to_send\..*", {"traffic.0.algorithms": "[ring]"}),
    (r".*inference\.requests\.(arrivals|file)", {"traffic.0.inference.requests.rate": None}),
    (r".*inference\.requests\.file", {"traffic.0.inference.requests.prompt": None}),
    (r".*inference\.requests\.file", {"traffic.0.inference.requests.output": None}),
    (r".*\(model\)\.parallel\.(context|pipeline|virtual_stages|expert)", {"fabric.hosts_per_leaf": "4"}),
    (r".*\(model\)\.parallel\.(context|pipeline|virtual_stages|expert)", {"traffic.0.ranks": None}),
    (r".*\(model\)\.(parallel\.expert|routing\..*)", {"traffic.0.model.experts": EXPERTS}),
    (r".*\(model\)\.routing\.matrix", {"traffic.0.parallel": "{data: 4, expert: 2}", "traffic.0.ranks": None}),
    (r".*\(parameter_server\)\.mlp\..*", {"traffic.0.parameters": None}),
    (r".*\(remote_memory\)\.load", {"traffic.0.outstanding": None}),
    (r".*\(replay\)\.rate", {"traffic.0.speed": None}),
    (r".*\(storage\)\.(checkpoint|loading)\..*", {"traffic.0.access": None}),
    (r".*\(storage\)\.checkpoint\..*", {"traffic.0.checkpoint.model": TRANSFORMER, "traffic.0.clients": "[0]"}),
    (r".*\(storage\)\.checkpoint\.parallel\.(?!sequence|schedule|zero).*", {"traffic.0.clients": "[0, 1]"}),
    (r".*\(storage\)\.checkpoint\.parallel\.expert", {"traffic.0.checkpoint.model.experts": EXPERTS}),
    (r".*\(storage\)\.checkpoint\.parallel\.expert", {"traffic.0.checkpoint.parallel.data": "2"}),
    (r"fabric \(file\)\.(ranks_per_host|rail_optimised|scale_up|host_file)(\..*)?", {"fabric.path": "pairs.json"}),
    (r".*\(tcp\)\.tcp\[\]\.size", {"traffic.0.tcp.0.duration": None}),
    (r".*\(trace\)\.(groups|precision|accelerator.*)", {"traffic.0.send_overhead": None, "traffic.0.eager": None}),
    (r".*\(trace\)\.(groups|precision|accelerator.*)", {"traffic.0.format": "chakra", "traffic.0.trace": "chakra"}),
    (r".*\(trace\)\.clear_to_send\..*", {"traffic.0.send_overhead": None, "traffic.0.classes": None}),
    (r".*\(trace\)\.clear_to_send\..*", {"traffic.0.format": "chakra", "traffic.0.trace": "calls"}),
    (r".*\(workload\)\.workload\.flow_sizes_file", {"traffic.0.workload.flow_sizes": None}),
    (r".*\(trace\)\.precision", {"traffic.0.accelerator": "H100"}),
    (r"host\..*", {"host.numa": "[{}]", "host.nics": "[{at: numa0}, {at: numa0}]"}),
    (r"host\.layout", {"host.numa": None, "host.nics": None}),
    (r"schedule\.sizes\[\]\.run_time", {"schedule.sizes[].accelerators": "8"}),
]
# Sections by names or numbers of the reader's own.
NAMED = {"tenants": "tenants.blue", "transport.classes": "transport.classes.2"}


def test_every_kind_of_traffic_has_a_scenario() -> None:
    assert sorted(path.stem for path in (EXAMPLES_DIRECTORY / "traffic").glob("*.yaml")) == sorted(TRAFFIC_KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(TRAFFIC_KINDS))
def test_the_scenario_of_a_kind_of_traffic_runs(kind: str) -> None:
    if kind == "training_run":
        pytest.importorskip("sklearn")
    scenario = load_scenario(EXAMPLES_DIRECTORY / "traffic" / f"{kind}.yaml")
    assert scenario.clock == "virtual"
    assert any(item.kind == kind for item in scenario.traffic)
    assert run_scenario(scenario).ok


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.path or "scenario")
def test_every_example_is_valid_in_a_scenario(section: SectionOfKeys, tmp_path: Path) -> None:
    bases = bases_of(section.path)
    folder = folder_beside_examples(tmp_path, bases)
    failed = []
    for key in section.keys:
        errors = []
        for base in bases or [None]:
            scenario = folder / "scenario.yaml"
            with scenario.open("w", encoding="utf-8") as stream:
                YAML().dump(scenario_with(section, key, base), stream)
            try:
                run_spec(load_scenario(scenario))
                break
            except WeftError as error:
                errors.append(f"{key.path}: {example_of(key).value}: {error}")
        else:
            failed += errors
    assert not failed, "\n".join(failed)


def scenario_with(section: SectionOfKeys, key: Key, base: Path | None) -> dict[str, Any]:
    """Return the smallest scenario in which a key has its example, or a shipped one with it."""
    tree = copy.deepcopy(read_mapping(base, "scenario")) if base else {}
    tree["clock"] = "virtual"
    for pattern, changes in CONTEXTS:
        if re.fullmatch(pattern, key.path) or re.fullmatch(pattern, section.path):
            for path, value in changes.items():
                names = path.split(".")
                holder = at_path(tree, names[:-1])
                if value is None:
                    holder.pop(names[-1], None)
                else:
                    holder[names[-1]] = read_yaml(value, "context")
    parent = at_path(tree, place_of(section.path, tree))
    example = example_of(key)
    for need in example.needs:
        name, _, value = need.partition("=")
        into, _, own = name.rpartition(".")
        holder = parent if name.startswith(".") else at_path(tree, into.split(".") if into else [])
        holder[own] = read_yaml(value, "example")
    parent[last(key.path)] = read_yaml(example.value, "example")
    for other in section.keys:
        if other.field.is_required() and "preset" not in parent:
            parent.setdefault(last(other.path), read_yaml(example_of(other).value, "example"))
    return tree


def bases_of(path: str) -> list[Path]:
    """Return the shipped scenarios in which a section's examples may be tried; none: an empty one does."""
    if path.startswith("circuits"):
        return [EXAMPLES_DIRECTORY / "traffic" / "circuits.yaml"]
    file = example_file(path)
    if file is None or file.parent.name == "traffic":
        return [file] if file else []
    kind = load_scenario(file).fabric.kind
    return [each for each in sorted(file.parent.glob("*.yaml")) if load_scenario(each).fabric.kind == kind]


def folder_beside_examples(tmp_path: Path, bases: list[Path]) -> Path:
    """Return a folder where names of files in the examples, and in the scenario of a kind, lead to the same files."""
    folder = tmp_path / "examples_and_own" / "own"
    folder.mkdir(parents=True)
    for each in EXAMPLES_DIRECTORY.iterdir():
        (folder.parent / each.name).symlink_to(each)
    (folder / "examples").symlink_to(EXAMPLES_DIRECTORY)
    for each in bases[0].parent.iterdir() if bases else ():
        (folder / each.name).symlink_to(each)
    for name, text in READERS_FILES.items():
        (folder / name).write_text(text)
    calls = collectives_job("calls", [CollectiveCall("allreduce", 4096)], 2)
    write_trace(calls, folder / "calls", "chakra")
    write_trace(read_trace(EXAMPLES_DIRECTORY / "traces" / "pair.goal").job, folder / "chakra", "chakra")
    return folder


def last(path: str) -> str:
    return path.rpartition(".")[2]


def place_of(path: str, tree: dict[str, Any]) -> list[Any]:
    """Return where a section stands in a scenario."""
    if " (" not in path:
        return list(filter(None, NAMED.get(path, path).split(".")))
    key, _, rest = path.partition(" (")
    kind, _, inside = rest.partition(")")
    names = list(filter(None, inside.split(".")))
    if key == "fabric":
        return ["fabric", *names]
    number = next(number for number, item in enumerate(tree["traffic"]) if kind in item)
    return ["traffic", number, *names]


def at_path(tree: dict[str, Any], names: list[Any]) -> Any:
    """Return the mapping at a path, made if it is not there; a preset's name becomes a mapping with `preset`."""
    found: Any = tree
    for name in names:
        is_item = isinstance(name, str) and name.endswith("[]")
        own = name.removesuffix("[]") if isinstance(name, str) else name
        own = int(own) if isinstance(own, str) and own.isdigit() else own
        if isinstance(found, dict) and (own not in found or found[own] is None):
            found[own] = [{}] if is_item else {}
        if isinstance(found[own], str):
            found[own] = {"preset": found[own]}
        found = found[own][0] if is_item else found[own]
    return found
