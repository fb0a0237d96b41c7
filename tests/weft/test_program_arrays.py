"""A user's own counters and registers: read by name, kept in results, asked for by a scenario."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import finsy
import numpy as np
import pytest

from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.paths import FABRIC_P4
from weft.pytest_plugin import fabric_of
from weft.results.results_file import read_results
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import ObserveSection, parse_scenario

SMALL = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2}
DECLARED = "    table acl {"
APPLIED = "        port_received.count((bit<32>)standard_metadata.ingress_port);\n"
OWN = """
    counter(8, CounterType.packets_and_bytes) my_packets;
    register<bit<32>>(4) my_last_port;
    register<int<16>>(2) my_balance;
    register<bit<128>>(1) my_wide;
    direct_counter(CounterType.packets) my_sizes_counter;
    table my_sizes {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { NoAction; }
        default_action = NoAction();
        counters = my_sizes_counter;
        const entries = { 1: NoAction(); }
    }
"""
USED = """
        my_packets.count((bit<32>)standard_metadata.ingress_port);
        my_last_port.write(1, (bit<32>)standard_metadata.ingress_port);
        my_balance.write(1, -16s5);
        my_wide.write(0, 128w1 << 100);
        my_sizes.apply();
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """Return fabric.p4 with a user's counters and registers added."""
    folder = tmp_path_factory.mktemp("p4") / "p4"
    shutil.copytree(FABRIC_P4.parent, folder)
    path = folder / FABRIC_P4.name
    text = path.read_text(encoding="utf-8")
    assert DECLARED in text
    assert APPLIED in text
    path.write_text(text.replace(DECLARED, OWN + DECLARED).replace(APPLIED, APPLIED + USED), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(program: Path):
    """A fabric on which an all-reduce has run; its program is given as a string."""
    topology = topologies.leaf_spine(**SMALL)
    with Fabric(topology, clock="virtual", p4=str(program)) as fabric:
        fabric.run(CollectiveRequest("allreduce", [np.ones(1000, np.int32)] * 2, algorithm="ring"))
        yield fabric


def test_counters_are_read_by_name_and_index(run: Fabric) -> None:
    count = run.read_counter("p0l0", "FabricIngress.my_packets", 1)
    assert count.packets > 0
    assert count.bytes > count.packets * 64
    assert run.read_counter("p0l0", "my_packets", 1) == count  # P4Info's alias
    cells = run.read_counters("p0l0", "my_packets")
    assert list(cells) == list(range(8))
    assert cells[1] == count
    assert cells[5].packets == 0


def test_registers_are_read_by_name_and_index(run: Fabric) -> None:
    assert run.read_register("p0l0", "my_last_port", 1) in (1, 2)
    assert run.read_registers("p0l0", "my_last_port").keys() == {0, 1, 2, 3}
    assert run.read_registers("p0l0", "my_balance") == {0: 0, 1: -5}
    assert run.read_register("p0l0", "my_wide", 0) == 1 << 100


def test_direct_counters_are_read_by_entry(run: Fabric) -> None:
    counts = {each.entry: each.count.packets for each in run.read_direct_counter("p0l0", "my_sizes_counter")}
    assert counts == {
        "port=1": run.read_counter("p0l0", "my_packets", 1).packets,
        "default": run.read_counter("p0l0", "my_packets", 2).packets,
    }


def test_any_entity_is_read(run: Fabric) -> None:
    (cell,) = run.read("p0l0", [finsy.P4RegisterEntry("my_last_port", index=1)])
    assert cell.data == run.read_register("p0l0", "my_last_port", 1)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda run: run.read_counter("p0l9", "my_packets", 1), ["p0l9", "p0l0"]),
        (lambda run: run.read_counter("p0l0", "mine", 1), ["no counter 'mine'", "FabricIngress.my_packets"]),
        (
            lambda run: run.read_register("p0l0", "mine", 1),
            ["no register 'mine'", "FabricIngress.my_balance"],
        ),
        (lambda run: run.read_counter("p0l0", "my_packets", 8), ["index 8 is out of range (valid: 0 to 7)"]),
        (lambda run: run.read_register("p0l0", "my_wide", -1), ["index -1"]),
        (lambda run: run.read_counter("p0l0", "my_sizes_counter", 1), ["a table's direct counter"]),
    ],
)
def test_what_is_not_there_is_reported_with_what_is(run: Fabric, read, words) -> None:
    with pytest.raises(BadInputError) as caught:
        read(run)
    for word in words:
        assert word in str(caught.value)


def test_a_scenario_keeps_them_in_results_and_tables(program: Path, tmp_path: Path) -> None:
    scenario = parse_scenario(
        {
            "clock": "virtual",
            "p4": str(program),
            "fabric": SMALL,
            "traffic": [{"collective": "allreduce", "sizes": ["4K"]}],
            "observe": {"counters": ["*.my_*"], "registers": ["my_balance", "FabricIngress.my_wide"]},
        },
        "test",
    )
    result = run_scenario(scenario)
    result.save(tmp_path)
    saved = json.loads((tmp_path / "results.json").read_text())
    assert {each["counter"] for each in saved["counters"]} == {
        "FabricIngress.my_packets",
        "FabricIngress.my_sizes_counter",
    }
    assert saved["registers"] == [
        {"switch": "p0l0", "register": "FabricIngress.my_balance", "index": 1, "value": -5},
        {"switch": "p0l0", "register": "FabricIngress.my_wide", "index": 0, "value": 1 << 100},
    ]
    assert read_results(tmp_path / "results.json").ok  # as a report does
    with (tmp_path / "counters.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{**row, "index": int(row["index"])} for row in rows] == [
        {name: value if name == "index" else str(value) for name, value in each.items()} for each in saved["counters"]
    ]
    with (tmp_path / "registers.csv").open(newline="") as file:
        assert [row["value"] for row in csv.DictReader(file)] == ["-5", str(1 << 100)]


@pytest.mark.parametrize(
    ("observe", "words"),
    [
        ({"counters": ["mine"]}, ["observe.counters: the program has no counter 'mine'", "port_received"]),
        (
            {"registers": ["nothing_*"]},
            ["observe.registers: the program has no register 'nothing_*'", "slot_tag"],
        ),
    ],
)
def test_names_that_the_program_lacks(observe: dict[str, list[str]], words: list[str]) -> None:
    fabric = Fabric(topologies.leaf_spine(**SMALL), clock="virtual", observe=ObserveSection(**observe))
    with pytest.raises(BadInputError) as caught, fabric:
        pass
    for word in words:
        assert word in str(caught.value)


def test_nothing_is_read_unless_asked_for(run: Fabric) -> None:
    summary = run.summary()
    assert "counters" not in summary.as_dict()
    assert "registers" not in summary.observations.tables


def test_the_mark_spelled_out() -> None:
    mark = fabric_of(clock="virtual", leaves=2, p4="mine.p4").mark
    assert mark.name == "fabric"
    assert mark.kwargs == {"clock": "virtual", "leaves": 2, "p4": "mine.p4"}
