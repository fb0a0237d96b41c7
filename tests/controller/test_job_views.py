"""`weft controller jobs`, `slots` and `tenants` say what the switches hold, and no secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from p4info_fixture import fabric_p4info
from test_controller_cli import Invoke, P4RuntimeDouble, rows, with_lab
from test_controller_cli import state as state  # a fixture

from weft import Fabric
from weft.controller.cli import controller as command
from weft.controller.fabric import FabricController
from weft.controller.job_notes import JobNote
from weft.controller.job_views import FabricJobs, SwitchJobs, job_rows, slot_rows, tenant_rows
from weft.controller.recovery import HeldJob, read_job_entries
from weft.run.collectives import CollectiveRequest
from weft.scenario.tenants import TenantSection, tenant_settings
from weft.topologies import leaf_spine

TENANTS = {"blue": TenantSection(hosts=["h0", "h1", "h2"], slots=512, bandwidth=0.5)}


def found_on(fabric: Fabric) -> FabricJobs:
    """What the switches of a fabric in virtual time hold."""
    blocking = fabric.lab.controller
    held = {
        switch.name: blocking.call(read_job_entries(blocking.session(switch.name)))
        for switch in fabric.topology.switches
    }
    switches = {name: SwitchJobs(4096, jobs) for name, jobs in held.items()}
    return FabricJobs(fabric.topology, tenant_settings(TENANTS), switches)


def without(found: FabricJobs, switch: str) -> FabricJobs:
    return replace(found, switches={**found.switches, switch: SwitchJobs(4096, None)})


def test_rows_are_what_switches_hold_after_reductions() -> None:
    topology = leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual", slots=64, tenants=TENANTS) as fabric:
        inputs = [np.ones(6400, np.int32)] * 2
        assert fabric.run(CollectiveRequest("allreduce", inputs, "in-network", ranks=[2, 0], tenant="blue")).result.ok
        fabric.lab.controller.add_job(9, ["h3", "h1"], 32, planes=[1])
        found = found_on(fabric)
        secrets = {job.q_key for job in fabric.lab.controller.jobs}
        fabric.summary()
    blue, nobody = job_rows(found)
    # Of 50 messages a plane, either leaf has one contribution and one result, the spine two contributions.
    assert blue == {
        "job": 1, "tenant": "blue", "epoch": 1, "planes": [0, 1], "workers": ["h2", "h0"], "slots": 64, "share": 0.5,
        "packets": 2 * 50 * 6, "roots": ["p0s0", "p1s0"], "state": "whole",
    }  # fmt: skip
    assert (nobody["tenant"], nobody["share"], nobody["planes"]) == (None, None, [1])
    slots = {row["switch"]: row for row in slot_rows(found)}
    assert slots["p0l0"]["taken"] == [{"slots": "3584-3647", "job": 1, "tenant": "blue"}]
    assert (slots["p0l0"]["free"], slots["p0l0"]["largest_gap"]) == (4096 - 64, 3584)
    assert [each["job"] for each in slots["p1s0"]["taken"]] == [9, 1]
    assert (slots["p1s0"]["free"], slots["p1s0"]["largest_gap"]) == (4096 - 96, 3584 - 32)
    assert tenant_rows(found) == [
        {"tenant": "blue", "hosts": ["h0", "h1", "h2"], "jobs": [1], "slots": 512, "slots_used": 64,
         "bandwidth": 0.5, "bandwidth_used": 0.5, "silent": None},
        {"tenant": None, "hosts": None, "jobs": [9], "slots": None, "slots_used": 32,
         "bandwidth": None, "bandwidth_used": 0.0, "silent": None},
    ]  # fmt: skip
    shown = json.dumps([job_rows(found), slot_rows(found), tenant_rows(found)])
    assert not any(str(secret) in shown for secret in secrets)
    # A switch that does not answer leaves jobs without a part of their trees.
    silent = without(found, "p0s0")
    broken, _ = job_rows(silent)
    assert broken["state"].endswith("(no answer from p0s0)")
    assert (broken["roots"], broken["planes"], broken["workers"]) == (["p1s0"], None, 2)
    (row,) = [each for each in slot_rows(silent) if each["switch"] == "p0s0"]
    assert (row["taken"], row["free"], row["largest_gap"]) == ([], None, None)
    # What the others hold counts.
    assert tenant_rows(silent) == [row | {"silent": ["p0s0"]} for row in tenant_rows(found)]


def test_the_commands_read_a_lab(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        lab = json.loads(state.read_text())
        quotas = {"green": {"hosts": [], "slots": 100, "bandwidth": None}}
        state.write_text(json.dumps(lab | {"tenants": quotas}))
        (job,) = rows(await invoke("jobs", "--json"))
        assert (job["job"], job["workers"], job["state"]) == (7, ["h0", "h1", "h2", "h3"], "whole")
        assert "queue_key" not in job
        slots = {row["switch"]: row for row in rows(await invoke("slots", "--json"))}
        assert slots["p0s0"] == {
            "switch": "p0s0",
            "capacity": 4096,
            "taken": [{"slots": "0-15", "job": 7, "tenant": None}],
            "free": 4080,
            "largest_gap": 4096 - 100 - 16,
        }
        tenants = {row["tenant"]: row for row in rows(await invoke("tenants", "--json"))}
        assert (tenants["green"]["slots"], tenants["green"]["jobs"], tenants[None]["jobs"]) == (100, [], [7])
        assert (await invoke("jobs")).output.splitlines()[1].startswith("7    -")
        lost = next(key for key, each in double.device(2).entities.items() if is_job(each))
        del double.device(2).entities[lost]
        (job,) = rows(await invoke("jobs", "--json"))
        assert job["state"] == "p0l1 has no entries of it, though p0s0 lists it as a child"

    with_lab(state, body)


def is_job(entity: Any) -> bool:
    table = next(each for each in fabric_p4info().tables if each.preamble.alias == "aggregation_job")
    return bool(entity.table_entry.table_id == table.preamble.id)


@pytest.mark.parametrize("view", ["jobs", "slots", "tenants"])
def test_a_switch_alone_has_no_jobs_of_a_fabric(view: str) -> None:
    result = CliRunner().invoke(command, ["--address", "127.0.0.1:1", view])
    assert (result.exit_code, "needs a running lab" in result.output) == (2, True)


def test_what_a_tenant_has_of_a_switch_is_a_sum_over_its_jobs() -> None:
    """Also of jobs that are not whole: their slots and their promise are taken all the same."""
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    entries = {
        number: HeldJob(
            {"slot_base": 8 * number, "slot_count": 8, "is_root": 0, "parent_port": 3},
            JobNote("blue", share, (0,)).as_bytes(),
            {0: number},
        )
        for number, share in ((1, 0.25), (2, 0.125))
    }
    switches = {
        "p0l0": SwitchJobs(64, entries), "p0l1": SwitchJobs(64, {1: entries[1]}), "p0s0": SwitchJobs(64, None)
    }  # fmt: skip
    (row,) = tenant_rows(FabricJobs(fabric, tenant_settings(TENANTS), switches))
    assert (row["jobs"], row["slots_used"], row["bandwidth_used"]) == ([1, 2], 16, 0.375)
    assert row["silent"] == ["p0s0"]


def test_entries_of_another_program_s_hand_are_shown_too() -> None:
    fabric = leaf_spine(planes=1, leaves=1, spines=1, hosts_per_leaf=2)
    entry = HeldJob({"slot_base": 4, "slot_count": 4, "epoch": 3, "is_root": 1, "worker_count": 2}, b"?", {}, 5)
    switches = {"p0l0": SwitchJobs(16, {3: entry, 4: entry}), "p0s0": SwitchJobs(16, {})}
    found = FabricJobs(fabric, tenant_settings({}), switches)
    assert [(row["job"], row["tenant"], row["packets"]) for row in job_rows(found)] == [
        (3, None, 5),
        (4, None, 5),
    ]
    assert all("no note of a manager" in row["state"] for row in job_rows(found))
    assert slot_rows(found)[0]["free"] == 12  # two have the same
    (nobody,) = tenant_rows(found)
    assert (nobody["tenant"], nobody["jobs"], nobody["slots_used"]) == (None, [3, 4], 8)
