"""Loading BMv2 JSON: what the model says, and errors that name the path."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_builder import call, const, field, named, op, param, valid
from router_program import router_document, router_json

from tests.refusals import refused
from weft.switch.bmv2json import (
    Bmv2JsonError,
    Constant,
    FieldRef,
    Kind,
    MatchKind,
    Operation,
    Program,
    Table,
    TableType,
    load_program,
)
from weft.switch.bmv2json.node import Node
from weft.switch.bmv2json.read_expressions import ExpressionReader
from weft.switch.bmv2json.scope import Scope


def test_the_router_is_modelled() -> None:
    program = load_program(router_document())
    assert program.version == (2, 23)
    assert list(program.tables) == [
        "tbl_send_out",
        "routes",
        "ecmp",
        "acl",
        "police_table",
        "tbl_to_cpu",
    ]
    routes = program.tables["routes"]
    assert routes.kind is MatchKind.LPM
    assert routes.with_counters
    assert routes.key[0].field == FieldRef("ipv4", "dst", 32)
    assert [action.name for action in routes.actions] == ["route", "NoAction", "deny"]
    assert routes.next_nodes == {1: "ecmp", 7: "ecmp", 3: "ecmp"}
    ecmp = program.tables["ecmp"]
    assert ecmp.type is TableType.INDIRECT_WITH_SELECTOR
    assert ecmp.default_entry is None
    assert program.action_profiles["selector"].selector_algorithm == "crc32"
    assert program.intrinsic("queueing_metadata.enq_qdepth") == FieldRef("standard_metadata", "enq_qdepth", 19)
    assert program.intrinsic("standard_metadata.nothing") is None
    assert program.meter_arrays["acl_meter"].table == "acl"
    assert load_program(router_document()).content_hash == program.content_hash


def test_the_model_is_frozen() -> None:
    program = load_program(router_document())
    with pytest.raises(AttributeError):
        program.compiler = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        program.headers["new"] = program.headers["ipv4"]  # type: ignore[index]


def edited(path: list[Any], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(router_json())
    node: Any = document
    for step in path[:-1]:
        node = node[step]
    if value is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return document


LOOP = ["pipelines", 0, "tables", 4, "base_default_next"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["__meta__", "version"], [3, 0], "$.__meta__.version[0]: format version 3.0 is not supported"),
        (["headers", 3, "header_type"], "x", "$.headers[3].header_type: unknown header type 'x' (valid: "),
        (["headers", 3, "id"], 2, "$.headers[3].id: duplicate header id 2"),
        (["header_types", 2, "fields", 0, 1], 0, "fields[0][1]: 0 is out of range (valid: 1 to 16384)"),
        (["header_types", 2, "fields", 0, 1], 10, "is 17 bits wide, not whole bytes"),
        (["header_types", 2, "fields", 0, 1], True, "expected an integer, got True"),
        (["parsers", 0, "init_state"], "begin", "$.parsers[0].init_state: unknown parse state 'begin'"),
        (
            ["parsers", 0, "parse_states", 2, "transitions", 0, "value"],
            "0x080000",
            "does not fit the transition key of 2 bytes",
        ),
        (
            ["parsers", 0, "parse_states", 2, "transitions", 0, "next_state"],
            "nowhere",
            "unknown parse state 'nowhere'",
        ),
        (
            ["parsers", 0, "parse_states", 2, "parser_ops", 0, "op"],
            "pull",
            "unknown value 'pull' (valid: 'adv",
        ),
        (
            ["pipelines", 0, "init_table"],
            "t",
            "$.pipelines[0].init_table: unknown pipeline node 't' (valid: ",
        ),
        (["pipelines", 0, "tables", 1, "key", 0, "target", 1], "dest", "unknown field 'dest' of header type"),
        (["pipelines", 0, "tables", 1, "match_type"], "exact", "a table of match type 'exact' cannot have"),
        (["pipelines", 0, "tables", 1, "max_size"], -1, "-1 is out of range"),
        (["pipelines", 0, "tables", 1, "action_ids", 0], 99, "action_ids[0]: unknown action id 99"),
        (
            ["pipelines", 0, "tables", 2, "action_profile"],
            "p",
            "unknown action profile 'p' (valid: 'selector')",
        ),
        (["pipelines", 0, "tables", 3, "direct_meters"], "m", "unknown meter array 'm'"),
        (LOOP, "is_ipv4", "$.pipelines[0]: the pipeline runs in a circle through"),
        (["actions", 0, "primitives", 0, "op"], "fly", "unknown value 'fly' (valid: '_jump'"),
        (["actions", 0, "primitives", 0, "parameters"], [], "primitive 'assign' takes 2 parameters, got 0"),
        (
            ["actions", 0, "primitives", 0, "parameters", 1],
            param(5),
            "parameters[1].value: parameter 5 does not exist: the action has 2 parameters",
        ),
        (
            ["actions", 0, "primitives", 0, "parameters", 1],
            op("+", valid("ipv4"), const(1)),
            "'+' takes integer and integer, got boolean and integer",
        ),
        (
            ["actions", 0, "primitives", 0, "parameters", 0],
            const(1),
            "parameters[0]: expected an assignable field, got Constant",
        ),
        (
            ["actions", 0, "primitives", 0],
            call("_jump", const(4)),
            "a jump must go to a constant index from 0 to 3",
        ),
        (
            ["actions", 0, "primitives", 0],
            call("resubmit", const(9)),
            "parameters[0]: unknown list id 9 (valid: 1)",
        ),
        (
            ["actions", 0, "primitives", 0],
            call("count", named("counter_array", "c"), const(0)),
            "unknown counter",
        ),
        (["register_arrays", 0, "size"], 2**40, "is out of range (valid: 0 to 16777216)"),
        (["checksums", 0, "if_cond"], field("ipv4", "ttl"), "$.checksums[0].if_cond: expected a boolean"),
        (["extern_instances"], [{"name": "x"}], "extern instances are not supported"),
        (["actions"], ..., "$: attribute 'actions' is missing"),
        (
            ["field_aliases", 0, 1],
            ["scalars", "nothing"],
            "$.field_aliases[0][1][1]: unknown field 'nothing'",
        ),
        (["meter_arrays", 1, "binding"], "gone", "'acl_meter' is bound to unknown table 'gone'"),
        (
            ["pipelines", 1, "action_profiles"],
            router_json()["pipelines"][0]["action_profiles"],
            "action profile 'selector' of 'egress' stands in another pipeline, too",
        ),
    ],
)
def test_errors_name_the_path(path: list[Any], value: Any, message: str) -> None:
    with pytest.raises(Bmv2JsonError) as caught:
        load_program(json.dumps(edited(path, value)))
    assert message in str(caught.value)


def test_metadata_is_no_member_of_a_header_union() -> None:
    document = router_json()
    document["header_union_types"] = [{"name": "u_t", "id": 0, "headers": [["scalars", "scalars_t"]]}]
    document["header_unions"] = [{"name": "u", "id": 0, "union_type": "u_t", "header_ids": [0]}]
    with refused(Bmv2JsonError, place="$.header_unions[0].header_ids", problem="'scalars' is metadata; a header"):
        load_program(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "NaN", '{"a": Infinity}', "[" * 10**5, b"\xff\xfe"])
def test_what_is_no_json_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(Bmv2JsonError, match=r"^\$"):
        load_program(text)


def test_a_name_with_dots_stands_in_brackets_in_a_path() -> None:
    with refused(Bmv2JsonError, place='$.next_tables["Ingress.drop"].x', problem="expected"):
        Node({"next_tables": {"Ingress.drop": {"x": 1}}})["next_tables"]["Ingress.drop"]["x"].string()


def test_operators_get_their_kinds() -> None:
    reader = ExpressionReader(Scope())
    ternary = op("?", const(1), const(2), cond=op("==", const(1), const(1)))
    expression = reader.read(Node(ternary))
    assert isinstance(expression, Operation)
    assert expression.kind is Kind.DATA
    assert expression.operands[1:] == (Constant(1), Constant(2))
    assert reader.read(Node(op("-", None, {"type": "hexstr", "value": "-0x1"}))).kind is Kind.DATA


def test_deep_expressions_are_refused_not_overflowed() -> None:
    deep = const(1)
    for _ in range(300):
        deep = op("~", None, deep)
    document = edited(["actions", 0, "primitives", 0, "parameters", 1], deep)
    with pytest.raises(Bmv2JsonError, match="nested"):
        load_program(json.dumps(document))


def _nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for name, each in value.items():
            found += _nodes(each, (*path, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            found += _nodes(each, (*path, index))
    return found


PATHS = _nodes(router_json())
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["field", "expression", "hexstr", "-0x1", "ipv4", "ttl", "$valid$", "routes", "?"]),
)
VALUES = st.one_of(
    SCALARS,
    st.just(...),
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(["type", "value", "op", "left", "right", "name", "id"]), SCALARS),
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES), min_size=1, max_size=3), st.randoms())
def test_mutated_documents_load_or_are_refused(changes: list[tuple[Any, Any]], rng: random.Random) -> None:
    document = copy.deepcopy(router_json())
    for path, value in changes:
        node: Any = document
        try:
            for step in path[:-1]:
                node = node[step]
            if value is ...:
                del node[path[-1]]
            else:
                node[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change removed the place
    found = outcome(json.dumps(document))
    if isinstance(found, Bmv2JsonError):
        assert found.place.startswith("$")
    else:
        assert all(isinstance(table, Table) for table in found.tables.values())


def outcome(document: str | bytes) -> Program | Bmv2JsonError:
    """What loading gives; any other exception is a crash."""
    try:
        return load_program(document)
    except Bmv2JsonError as error:
        return error


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(Bmv2JsonError):
        load_program(data)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(router_document()) - 1), st.binary(max_size=4))
def test_damaged_documents_load_or_are_refused(position: int, patch: bytes) -> None:
    data = router_document()
    found = outcome(data[:position] + patch + data[position + len(patch) :])
    assert isinstance(found, Program) or str(found).startswith("$")


def test_spellings_of_p4c_are_understood() -> None:
    """p4c writes 0 for a flag of a bool field and {} for an empty list of values to log."""
    document = edited(["header_types", 2, "fields", 0, 2], 0)
    document["actions"][6]["primitives"] = [
        call("log_msg", {"type": "string", "value": "hi"}, {"type": "parameters_vector", "value": {}})
    ]
    program = load_program(json.dumps(document))
    assert not program.header_types["packet_in_t"].fields[0].signed
    assert program.actions[7].primitives[0].name == "log_msg"
