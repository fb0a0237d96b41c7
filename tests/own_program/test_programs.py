"""Programs that lack Weft's tables run under Weft: entries come from files, and what the programs cannot do is off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import finsy
import pytest
from plain_forwarding import FABRIC_SECTION, PLAIN_P4, TOPOLOGY, held, route, write_entries

from weft.clocks.virtual.lab import VirtualLab
from weft.errors import BadInputError
from weft.paths import FABRIC_P4
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.scenario import load_scenario

INCAST = "traffic: [{incast: h0, bytes_per_sender: 16KiB}]\n"


def scenario_file(folder: Path, text: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(f"clock: virtual\n{FABRIC_SECTION}{text}", encoding="utf-8")
    return path


def own_program(folder: Path) -> str:
    """The keys with which all switches run the plain program with their entries."""
    files = write_entries(folder)
    return f"p4: {PLAIN_P4}\nentries: {{{', '.join(f'{name}: {path.name}' for name, path in files.items())}}}\n"


def refusal(folder: Path, text: str) -> str:
    path = scenario_file(folder, text)
    with pytest.raises(BadInputError) as raised:
        run_scenario(load_scenario(path), directory=folder)
    return str(raised.value)


def test_a_program_of_ones_own_carries_the_traffic_by_entries_from_files(tmp_path: Path) -> None:
    observed = "observe: {queues: all, drops: true, loads: true, flows: true}\n"
    result = run_scenario(
        load_scenario(scenario_file(tmp_path, own_program(tmp_path) + observed + INCAST)), directory=tmp_path
    )
    assert result.retransmissions == 0
    assert not result.drops
    assert result.made_by.parameters["int"] is False
    assert list(result.all_warnings) == [
        "switches have no table ecn_thresholds: ECN marking is off. "
        "switches have no table identity: classes and switches' own addresses are not set. "
        "switches have no table arp_responder: they do not answer ARP and neighbour discovery. "
        "switches have no table time_exceeded: traceroute does not see them. "
        "switches have no key destination of table ipv4_lpm: there are no routes of Weft's. "
        "switches have no table int_port: INT is off."
    ]


def test_switches_of_one_fabric_run_different_programs(tmp_path: Path) -> None:
    files = write_entries(tmp_path)
    leaves = {name: path for name, path in files.items() if TOPOLOGY.switch(name).role == "leaf"}
    with Fabric(TOPOLOGY, clock="virtual", programs={"leaf": PLAIN_P4, "p0s*": FABRIC_P4}, entries=leaves) as fabric:
        hashes = {name: each.p4_hash for name, each in fabric.lab.programs.of_switch.items()}
        assert hashes["p0l0"] == hashes["p0l1"] != hashes["p0s0"]
        assert len(fabric.lab.programs.distinct) == 2
        fabric.incast("h0", 4096)
        summary = fabric.summary()
    assert not summary.drops
    (warning,) = summary.all_warnings
    assert "p0l0, p0l1 have no table ecn_thresholds: ECN marking is off." in warning
    assert summary.made_by.parameters["programs"] == {"leaf": PLAIN_P4.name, "p0s*": FABRIC_P4.name}


def test_counters_are_those_of_each_switch_s_own_program(tmp_path: Path) -> None:
    files = write_entries(tmp_path)
    leaves = {name: path for name, path in files.items() if name != "p0s0"}
    with Fabric(
        TOPOLOGY,
        clock="virtual",
        programs={"leaf": PLAIN_P4},
        entries=leaves,
        observe={"counters": ["port_sent"]},  # type: ignore[typeddict-item]
    ) as fabric:
        fabric.incast("h0", 4096)
        assert {each.switch for each in fabric.summary().counters} == {"p0s0"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("int: true\n", "int: true, and the program of p0l0, p0l1, p0s0 has no table int_port"),
        ("ecn: {at: enqueue}\n", "ecn: no switch's program has the table ecn_thresholds"),
        ("services: [synchronisation]\n", "the service synchronisation needs the table service_group"),
        (
            "routing: {load_balancing: round_robin}\n",
            "routing.load_balancing: no switch's program has the table",
        ),
        ("routing: {kind: shortest_paths}\n", "shortest_paths needs the table ecmp"),
        ("transport: {congestion_control: hpcc}\n", "hpcc follows what INT reports, and the program of p0l0"),
        ("observe: {int: all}\n", "observe.int: records INT, and the program of"),
        ("controller: {link_watch: {}}\n", "has no counter port_received"),
        ("scheduling: {classes: [3, 4]}\n", "has the table class_map"),
        (
            "traffic: [{collective: allreduce, algorithms: [in-network], sizes: [4KiB]}]\n",
            "reduces in the network, and the program of p0l0, p0l1, p0s0 has no register slot_tag",
        ),
    ],
)
def test_what_a_scenario_asks_for_by_name_and_the_program_cannot_do_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    message = refusal(tmp_path, own_program(tmp_path) + text)
    assert problem in message
    assert message.startswith(f"{tmp_path / 'scenario.yaml'}:5: ")


def test_a_reduction_from_python_is_refused_with_the_switch(tmp_path: Path) -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=PLAIN_P4) as fabric, pytest.raises(BadInputError) as raised:
        fabric.run(CollectiveRequest("allreduce", 4096, "in-network"))
    assert "p0l0 cannot aggregate: its program has no register slot_tag" in str(raised.value)


def test_auto_does_not_choose_what_the_program_cannot_do(tmp_path: Path) -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=PLAIN_P4, entries=write_entries(tmp_path)) as fabric:
        run = fabric.run(CollectiveRequest("allreduce", 65536, "auto")).result
    assert run.algorithm != "in-network"


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("programs: {p0l9: x.p4}\n", "no switch, pattern or role 'p0l9'; did you mean 'p0l"),
        ("programs: {leaves: x.p4}\n", "no switch, pattern or role 'leaves'"),
        ("programs: {leaf: none.p4}\n", "no such P4 program"),
        ("entries: {leaf: none.json}\n", "entries.leaf: {folder}/none.json: cannot be read"),
    ],
)
def test_choices_of_switches_and_files_are_checked(tmp_path: Path, keys: str, problem: str) -> None:
    message = refusal(tmp_path, f"p4: {PLAIN_P4}\n{keys}")
    assert problem.format(folder=tmp_path) in message
    assert f"{tmp_path / 'scenario.yaml'}:4: " in message


def test_a_wrong_entry_is_named_by_file_and_number(tmp_path: Path) -> None:
    wrong = {"table_entries": [route("10.0.0.1", 32, 1, "02:00:00:00:00:01"), route("10.0.0.2", 32, 512, "1")]}
    (tmp_path / "leaf.json").write_text(json.dumps(wrong), encoding="utf-8")
    message = refusal(tmp_path, f"p4: {PLAIN_P4}\nentries: {{leaf: leaf.json}}\n")
    assert message == (
        f"{tmp_path / 'scenario.yaml'}:4: entries.leaf: leaf.json: table_entries[1]: action_params.port: "
        "512 does not fit 9 bits (valid: 0 to 511)"
    )


def test_two_entries_of_one_key_have_their_places(tmp_path: Path) -> None:
    same = [route("10.0.0.1", 32, port, "02:00:00:00:00:01") for port in (1, 2)]
    tree = {"table_entries": [route("10.0.0.2", 32, 1, "02:00:00:00:00:02"), *same]}
    (tmp_path / "leaf.json").write_text(json.dumps(tree), encoding="utf-8")
    message = refusal(tmp_path, f"p4: {PLAIN_P4}\nentries: {{leaf: leaf.json}}\n")
    assert "leaf.json: table_entries[2]: has the same key as table_entries[1]" in message


def test_a_controller_that_is_restarted_keeps_the_entries(tmp_path: Path) -> None:
    everything: dict[str, Any] = {
        "table_entries": [route("10.0.0.1", 32, 1, "02:00:00:00:00:01")],
        "multicast_group_entries": [{"multicast_group_id": 7, "replicas": [{"egress_port": 1}, {"egress_port": 2}]}],
        "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 3}]}],
    }
    file = tmp_path / "all.json"
    file.write_text(json.dumps(everything), encoding="utf-8")
    with Fabric(TOPOLOGY, clock="virtual", p4=PLAIN_P4, entries={"p0l0": file}) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        before = held(lab, "p0l0")
        assert len(before) == 3
        lab.controller.recover()
        assert lab.controller.apply().entries == 0
        assert held(lab, "p0l0") == before
        (entry,) = lab.controller.read("p0l0", [finsy.P4TableEntry("ipv4_lpm")])
        assert entry.match["dstAddr"] == (0x0A000001, 32)


def test_an_entry_goes_before_one_of_weft_s_with_the_same_key(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "table_entries:\n"
        "  - {table: int_port, match: {port: 1}, action_name: set_int,\n"
        "     action_params: {port_rate_code: 15, ns_per_time_unit: 1, cells_per_depth_unit: 0}}\n",
        encoding="utf-8",
    )
    with Fabric(TOPOLOGY, clock="virtual", entries={"p0s0": file}) as fabric:
        for switch, code in (("p0s0", 15), ("p0l0", 4)):
            entries = fabric.lab.controller.read(switch, [finsy.P4TableEntry("int_port")])
            (found,) = (each for each in entries if each["port"] == 1)
            assert (found.action.args["port_rate_code"] == 15) == (code == 15)
        assert fabric.summary().all_warnings == []
