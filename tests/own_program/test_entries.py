"""All kinds of entries of files in running switches: what they hold, what packets meet, and what a restart keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import finsy
import pytest
from plain_forwarding import TOPOLOGY, entries_of, held

from tests.refusals import refused
from weft.errors import EnvironmentLacksError
from weft.run.fabric import Fabric
from weft.scenario.entries_files import entries_settings
from weft.topologies import SwitchSpec

CHOICES_P4 = Path(__file__).parent / "programs" / "choices.p4"
RATES = {"cir": 10**6, "cburst": 100, "pir": 10**6, "pburst": 100}
NO_RATES = {"cir": 0, "cburst": 0, "pir": 0, "pburst": 0}


def content(switch: SwitchSpec) -> dict[str, Any]:
    """Hosts by turns through a member, a group and a one-shot set."""
    tables, members, groups = [], [], []
    for number, plain in enumerate(entries_of(TOPOLOGY, switch)["table_entries"], 1):
        address, params = plain["match"]["hdr.ipv4.dstAddr"][0], plain["action_params"]
        action = {
            "action_name": "forward",
            "action_params": {"port": params["port"], "mac": params["dstAddr"]},
        }
        entry = {"table": "routes", "match": {"address": address}}
        if number == 3:
            tables.append({**entry, "table": "one_shots", "action_set": [{**action, "weight": 2}, action]})
            continue
        members.append({"action_profile": "ways", "member_id": number, **action})
        if number == 2:
            groups.append({"action_profile": "ways", "group_id": 1, "members": [{"member_id": number}]})
            tables.append({**entry, "group_id": 1})
        else:
            tables.append({**entry, "member_id": number})
    source = str(TOPOLOGY.hosts[1].nics[0].ipv4.ip)
    counted = {"table": "hosts", "match": {"address": source}, "action_name": "count_host"}
    return {
        "table_entries": [*tables, {**counted, "meter_config": RATES}],
        "action_profile_members": members,
        "action_profile_groups": groups,
        "register_entries": [{"register": "limits", "value": 9}, {"register": "limits", "index": 1, "value": 2}],
        "meter_entries": [{"meter": "rates", **NO_RATES}, {"meter": "rates", "index": 0, **RATES}],
        "counter_entries": [{"counter": "seen", "index": 3, "packet_count": 5}],
        "value_set_entries": [{"value_set": "ip_types", "members": ["0x0800"]}],
    }  # fmt: skip


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, Path]:
    files = {}
    for switch in TOPOLOGY.switches:
        files[switch.name] = tmp_path / f"{switch.name}.json"
        files[switch.name].write_text(json.dumps(content(switch)), encoding="utf-8")
    return files


def cells(fabric: Fabric) -> dict[str, Any]:
    """What the first leaf's arrays have, by name."""
    read = fabric.lab.controller.read
    return {
        "limits": [each.data for each in read("p0l0", [finsy.P4RegisterEntry("limits")])],
        "seen": [each.packet_count for each in read("p0l0", [finsy.P4CounterEntry("seen")])],
        "rates": [each.config for each in read("p0l0", [finsy.P4MeterEntry("rates")])],
    }


def test_packets_meet_what_the_files_say(entries: dict[str, Path]) -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=CHOICES_P4, entries=entries) as fabric:
        for host in TOPOLOGY.hosts:
            fabric.incast(host.name, 4096)
        summary = fabric.summary()
        assert not summary.drops
        assert summary.retransmissions == 0
        found = cells(fabric)
        assert found["limits"] == [9, 2, 9, 9]
        assert found["seen"][2] > 20, "the cell that the register names"
        assert [found["seen"][each] for each in (0, 1, 3)] == [0, 0, 5]
        assert [each.cir for each in found["rates"]] == [10**6, 0, 0, 0]
        (host,) = fabric.lab.controller.read("p0l0", [finsy.P4TableEntry("hosts", counter_data=finsy.P4CounterData())])
        assert host.counter_data.packet_count > 5


def test_a_restart_keeps_them_and_a_new_program_has_them_again(entries: dict[str, Path]) -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=CHOICES_P4, entries=entries) as fabric:
        lab = fabric.lab
        before = held(lab, "p0l0")
        assert len(before) == 9
        lab.controller.recover()
        assert lab.controller.apply().entries == 0, "what is read is what is planned"
        fabric.incast("h0", 4096)
        changed = cells(fabric)["seen"]
        assert changed[2]
        lab.controller.switch_down("p0l0")
        lab.controller.switch_up("p0l0")
        assert held(lab, "p0l0") == before
        assert cells(fabric)["seen"] == [0, 0, 0, 5]


def test_bmv2_cannot_be_given_registers(entries: dict[str, Path]) -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=CHOICES_P4, entries=entries) as fabric:
        options = fabric.lab.options.changed(target="bmv2")
        with refused(EnvironmentLacksError, place="p0l0.json", problem="register_entries[0]: BMv2 has"):
            entries_settings(TOPOLOGY, options, fabric.lab.programs)
