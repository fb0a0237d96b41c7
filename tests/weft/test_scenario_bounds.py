"""Any value at any key of a scenario gives a scenario, or an error in Weft's words with key and value."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.refusals import refused
from tests.weft.scenario_mutations import (
    WRONG_VALUES,
    all_keys,
    example_file,
    quantities_of,
    tree_with,
)
from weft import topologies
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.quantities.definitions import RATE, TIME
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.scenario import load_scenario, parse_scenario
from weft.scenario.schema import Key, SectionOfKeys, sections
from weft.scenario.topology import build_topology
from weft.traffic.training import Layer, TrainingStep

# Pydantic's own words.
FOREIGN_WORDS = ("Input should", "Field required", "validation error", "pydantic", "Extra inputs", "string_")
SECTIONS = [each for each in sections() if each.keys]
WITH_BOUNDS = [(section, key) for section, key in all_keys() if quantities_of(key)]
# At their upper bound these give fabrics and runs that take too long for a test.
LARGE = ("gradients", "bytes_per_sender", "permutation", "sizes", ".count", "repetitions", "planes", "leaves", "spines",
         "pods", "cores_per_spine", "hosts_per_leaf", "ranks_per_host", "warmup", ".block", "y).reads", "steps",
         "micro_batches", "mlp.hidden")  # fmt: skip


def outcome_of(section: SectionOfKeys, key: Key, value: Any) -> Any:
    """Return the parsed scenario, or the error's text if it is refused."""
    tree, place = tree_with(section, key, value)
    try:
        return parse_scenario(tree)
    except BadInputError as error:
        message = str(error)
        assert not any(word in message for word in FOREIGN_WORDS), message
        assert place.split("[")[0].split(".")[0] in message, message
        assert len(message) < 1500, message
        return message


@contextlib.contextmanager
def named(key: Key, value: Any) -> Iterator[None]:
    """Say with what fails within which key and value it was: a section's keys share a test."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"with {key.path}: {str(value)[:100]}")
        raise


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.path or "top")
def test_a_wrong_value_is_refused_in_our_words(section: SectionOfKeys) -> None:
    for key in section.keys:
        for value in WRONG_VALUES:
            with named(key, value):
                outcome_of(section, key, value)


def test_a_quantity_ends_at_its_bounds() -> None:
    for section, key in WITH_BOUNDS:
        for quantity in quantities_of(key):
            for value in (quantity.lowest - 1, quantity.highest * 2 + 1):
                with named(key, value):
                    assert isinstance(outcome_of(section, key, value), str)


@pytest.mark.slow
@pytest.mark.parametrize(("section", "key"), WITH_BOUNDS, ids=[key.path for _, key in WITH_BOUNDS])
def test_what_is_accepted_at_its_bounds_runs(section: SectionOfKeys, key: Key) -> None:
    """A run may fail (a packet that waits a second outlives seven timeouts), or be refused; nothing else may happen."""
    for quantity in quantities_of(key):
        for value in (quantity.lowest, quantity.highest):
            scenario = outcome_of(section, key, value)
            if isinstance(scenario, str):
                continue
            with contextlib.suppress(BadInputError, CheckFailedError):
                if value == quantity.highest and any(name in key.path for name in LARGE):
                    build_topology(scenario.fabric)
                else:
                    run_scenario(scenario)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("seed: 2024-99-99\n", 1, ["seed", "2024-99-99", "not a whole number"]),
        ("fabric:\n  delay: 2024-01-01 25:61:61\n", 2, ["fabric.delay", "not a time"]),
        (f"name: x\nseed: {'9' * 1000}\n", 2, ["a number of 1,000 digits"]),
        (f"seed: {'9' * 5000}\n", 1, ["5,000 characters"]),
        ("seed: .nan\n", 1, ["seed", "nan"]),
        ("fabric: &a\n  planes: *a\n", 2, ["*a stands within what it stands for"]),
        (f"traffic: {'[' * 5000}\n", 1, ["nested more than 32 deep"]),
        ("".join(f"{' ' * depth}a:\n" for depth in range(400)), 33, ["nested more than 32 deep"]),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in ["ab", "bc", "cd", "de", "ef"]),
            5,
            ["more than 20,000 keys and values"],
        ),
        ("\n".join(f"k{number}: 1" for number in range(19_000)), 10_000, ["more than 20,000 keys and values"]),
        ("seed: 1\nseed: 2\n", 2, ["'seed' is given twice"]),
        ("seed: !!python/object:os.system 1\n", 1, ["the tag"]),
        ("fabric:\n  planes: [1\n", 3, ["is not YAML"]),
        ("a: *nothing\n", 1, ["is not YAML", "nothing"]),
        ("? [a, b]\n: c\n", 1, ["is no key"]),
        ("!" * 100_000 + "\n", 1, ["the tag", " characters) means nothing here"]),
        ("1: 2\n", 1, ["unknown key"]),
    ],
)  # fmt: skip
def test_hostile_yaml_is_refused_with_its_line(tmp_path, text, line, words):
    path = example_file(tmp_path, text)
    began = time.process_time()
    with pytest.raises(BadInputError) as caught:
        load_scenario(path)
    assert time.process_time() - began < 5, "these take milliseconds; a bomb takes for ever"
    assert str(caught.value).startswith(f"{path}:{line}: "), str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("version", ["9.9", "1.9999999999999999999"])
def test_a_version_of_yaml_that_nobody_knows_is_refused(tmp_path, version):
    with pytest.raises(BadInputError, match=r"scenario\.yaml: is not YAML|scenario\.yaml:1: is not YAML"):
        load_scenario(example_file(tmp_path, f"%YAML {version}\n---\nseed: 1\n"))


def test_a_giant_file_is_refused_before_it_is_parsed(tmp_path):
    path = example_file(tmp_path, "# " + "x" * 300_000)
    with refused(BadInputError, place="scenario.yaml", valid="up to 262,144 B"):
        load_scenario(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("host_rate: 100", ["fabric.host_rate: 100 has no unit", "did you mean 100Gb/s?"]),
        ("host_rate: 100G", ["did you mean 100Gb/s?"]),
        ("host_rate: 100GB/s", ["B is bytes", "did you mean 800Gb/s?"]),
        ("host_rate: 100gbps", ["did you mean 100Gb"]),
        ("host_rate: 1b/s", ["valid: 1Mb/s to 100Tb/s"]),
        ("delay: 500", ["fabric.delay: 500 has no unit", "did you mean 500us?"]),
        ("delay: 2s", ["valid: 0 to 1s"]),
        ("queue_capacity: 64kib", ["did you mean 64KiB?"]),
    ],
)
def test_a_quantity_in_a_file_says_its_unit(tmp_path, text, words):
    with pytest.raises(BadInputError) as caught:
        load_scenario(example_file(tmp_path, f"fabric:\n  {text}\n"))
    assert "scenario.yaml:2: " in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["100Gb/s", "100 Gb/s", "100Gbps", "100Gbit/s", "100000 Mb/s", "0.1Tb/s"])
def test_rates_as_people_write_them(tmp_path, text):
    scenario = load_scenario(example_file(tmp_path, f"fabric: {{host_rate: {text}}}\n"))
    assert scenario.fabric.host_rate == 10**11


def test_of_many_errors_the_first_are_reported():
    traffic = [{"collective": "allreduce", "sizes": ["1TB"] * 50}]
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"traffic": traffic})
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "… and 45 more"


@pytest.mark.parametrize(
    "traffic",
    [
        {"collective": "allreduce", "sizes": ["64GiB"] * 100},
        {"training_step": "data-parallel", "layers": [{"gradients": "64GiB", "count": 1000}]},
    ],
)
def test_data_that_no_memory_holds_is_refused_before_anything_is_built(traffic):
    built: list[str] = []
    with refused(EnvironmentLacksError, problem="TiB of memory"):
        run_scenario(parse_scenario({"clock": "virtual", "traffic": [traffic]}), built.append)
    assert built == []


def test_the_python_api_has_the_same_bounds():
    with refused(topologies.TopologyError, valid="1000000 to 100000000000000", problem="host_rate_bps"):
        topologies.leaf_spine(host_rate_bps=RATE.highest * 2)
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric:
        with refused(BadInputError, place="h0-p0l0 is to be down after", valid="0 to 1000s"):
            fabric.schedule_link("h0", "p0l0", "down", after_ps=10**30)
        with refused(BadInputError, place="a workload's duration", valid="1ps to 1000s"):
            fabric.workload("websearch", 0.5, 10**30)
        with refused(BadInputError, place="the step's compute times", valid="0 to 1000s"):
            fabric.training_step(TrainingStep((Layer(4, TIME.highest, TIME.highest),), 64))
        with refused(BadInputError, place="a collective's size", valid="1B to 64GiB"):
            fabric.run(CollectiveRequest("allreduce", 10**30))
