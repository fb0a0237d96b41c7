"""What jobs cost a switch: sizes against the compiled program's, entries against plans, room against admission."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from click.testing import CliRunner
from finsy.proto import p4i
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.cli import weft
from weft.compiler import compile_artifacts
from weft.controller.errors import JobError
from weft.controller.features.aggregation import aggregation_entities
from weft.controller.jobs import JobTable
from weft.controller.pipeline import Pipeline
from weft.controller.switch_cost import SwitchCost
from weft.paths import FABRIC_P4, ROOT
from weft.topologies import leaf_spine

PROGRAMS: list[dict[str, str]] = [
    {},
    {"SLOTS": "100", "AGGREGATION_LANES": "128"},
    {"SLOTS": "24", "SERVICE_SYNCHRONISATION": "1"},
]
RANKS = 3


@cache
def compiled(number: int) -> tuple[SwitchCost, dict[str, Any]]:
    """The cost of a program, and its BMv2 JSON."""
    found = compile_artifacts(FABRIC_P4, defines=dict(PROGRAMS[number]))
    info = text_format.Parse(found.p4info_text, p4i.P4Info())
    return SwitchCost(Pipeline(info, found.json_text.encode())), json.loads(found.json_text)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_registers_are_those_of_the_compiled_program(number: int) -> None:
    cost, program = compiled(number)
    slots = int(PROGRAMS[number].get("SLOTS", 4096))
    lanes = int(PROGRAMS[number].get("AGGREGATION_LANES", 64))
    assert cost.slots == slots
    declared = {each["name"]: each["bitwidth"] * each["size"] for each in program["register_arrays"]}
    assert cost.slot_bits * slots + cost.other_bits == sum(declared.values())
    assert cost.slot_bits * slots == sum(bits for name, bits in declared.items() if ".slot_" in name)
    # Besides its lanes a slot has the same whatever their number.
    assert cost.slot_bits - 2 * 32 * lanes == compiled(0)[0].slot_bits - 2 * 32 * 64


def test_a_service_costs_registers_and_metadata_but_nothing_of_a_slot() -> None:
    (plain, _), (with_service, program) = compiled(0), compiled(2)
    assert with_service.slot_bits == plain.slot_bits
    assert with_service.other_bits > plain.other_bits
    assert with_service.packet.metadata_bits > plain.packet.metadata_bits
    types = {each["name"]: sum(field[1] for field in each["fields"]) for each in program["header_types"]}
    headers = [each["header_type"] for each in program["headers"] if not each["metadata"]]
    assert with_service.packet.header_bits == sum(types[each] for each in headers)


def test_entries_are_as_wide_as_keys_and_parameters_of_the_compiled_program() -> None:
    cost, program = compiled(0)
    tables = {each["name"].rpartition(".")[2]: each for line in program["pipelines"] for each in line["tables"]}
    actions = {each["id"]: sum(each["bitwidth"] for each in each["runtime_data"]) for each in program["actions"]}
    for each in cost.job(RANKS, 1).tables:
        declared = tables[each.entry.table]
        widest = max(actions[action] for action in declared["action_ids"])
        assert widest <= each.entry.action_bits <= widest + 2  # which of them it is
        assert each.entry.table_size == declared["max_size"]
        assert bool(each.entry.counter_bits) == declared["with_counters"]


@pytest.mark.parametrize("slots", [1, 7, 33])
def test_as_many_jobs_as_fit_are_admitted_and_no_more(slots: int) -> None:
    cost, _ = compiled(1)
    job = cost.job(RANKS, slots)
    most = min(cost.limits(job).values())
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=RANKS)
    hosts = [host.name for host in fabric.hosts]
    jobs = JobTable(fabric, cost.slots)
    for number in range(most):
        jobs.add(number + 1, hosts, slots)
    with pytest.raises(JobError, match=f"wants {slots} aggregation slots"):
        jobs.add(most + 1, hosts, slots)
    planned = aggregation_entities(fabric, jobs.jobs)["p0l0"]
    # A group and the entries of each table.
    assert len(planned) == most * (1 + sum(each.entries for each in job.tables))


@pytest.mark.parametrize("slots", [256, 300, 0xFFFF])
def test_jobs_begin_where_their_entries_can_say(slots: int) -> None:
    """However large the memory is: the range of one more job would begin beyond what `slot_base` holds."""
    cost, program = compiled(0)
    job = cost.job(RANKS, slots)
    most = min(cost.limits(job, 1 << 40).values())
    (action,) = (each for each in program["actions"] if each["name"].endswith(".set_job"))
    width = next(each["bitwidth"] for each in action["runtime_data"] if each["name"] == "slot_base")
    first_slots = range(0, (most + 1) * slots, slots)
    assert [base < 1 << width for base in first_slots[-2:]] == [True, False]


@given(ranks=st.integers(1, 32), slots=st.integers(1, 5000), memory_bytes=st.integers(1, 1 << 32))
def test_memory_and_jobs_follow_from_each_other(ranks: int, slots: int, memory_bytes: int) -> None:
    cost, _ = compiled(0)
    job = cost.job(ranks, slots)
    most = cost.limits(job, memory_bytes)["memory"]
    assert cost.memory_bytes(job, most + 1) > memory_bytes
    assert most == 0 or cost.memory_bytes(job, most) <= memory_bytes


@pytest.mark.parametrize("ranks", [0, 33])
def test_a_node_has_no_more_children_than_bits(ranks: int) -> None:
    with refused(JobError, valid="1 to 32", problem="children of"):
        compiled(0)[0].job(ranks, 1)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(weft, ["switch-cost", *arguments])


def test_the_page_shows_what_the_command_prints() -> None:
    page = (ROOT / "docs/in-network.md").read_text()
    block = next(each for each in page.split("```") if each.startswith("\n$ weft switch-cost"))
    command, _, shown = block.strip().removeprefix("$ weft switch-cost ").partition("\n")
    printed = run(*command.split()).output
    assert [line.rstrip() for line in printed.strip().splitlines()] == shown.splitlines()


def test_jobs_and_memory_on_the_command_line() -> None:
    of_jobs = json.loads(run("--jobs", "5", "--slots", "64", "--json").output)
    memory = of_jobs["memory_bytes"]
    of_memory = json.loads(run("--memory", f"{memory}B", "--slots", "64", "--json").output)
    assert (of_jobs["slots"], of_memory["jobs"]) == (5 * 64, 5)
    assert "memory" not in of_jobs["limits"]
    own = json.loads(run("--slots", "64", "--ranks", "1", "-D", "SLOTS=100", "--json").output)
    assert (own["program"]["slots"], own["jobs"]) == (100, 1)


def test_a_program_without_slots_is_refused() -> None:
    result = run("--p4", str(ROOT / "benchmarks/router.p4"))
    assert "the program has no register slot_tag" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--jobs", "1025", "--slots", "1"], "--jobs 1025: aggregation_job has room for 1,024 of 8 ranks"),
        (["--jobs", "257", "--slots", "256"], "--jobs 257: slot_base has room for 256 of 8 ranks"),
        (["--jobs", "1", "--memory", "1MiB"], "each follows from the other"),
        (["--ranks", "33"], "1<=x<=32"),
        (["--rate", "5"], "did you mean 5Gb/s?"),
        (["--round-trip", "1s"], "slots (valid: up to 65,535)"),
        (["-D", "SLOTS"], "valid: NAME=VALUE"),
        (["-D", "SLOTS=x"], "in the expansion of macro 'SLOTS'"),
    ],
)
def test_bad_options_are_refused(arguments: list[str], what: str) -> None:
    result = run(*arguments)
    assert what in f"{result.output} {result.exception}"
    assert result.exit_code
