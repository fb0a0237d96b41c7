"""Tokens to experts given as a matrix: what ranks send follows from it, and what does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.jobs.test_experts import MODEL
from tests.refusals import refused
from weft.errors import BadInputError
from weft.jobs.expert_routing import Routing, routed_tokens
from weft.jobs.parallelism import Parallelism
from weft.jobs.routing_matrix import given_matrix
from weft.jobs.training_job import training_job
from weft.jobs.training_plan import PlanError, TrainingPlan
from weft.scenario import parse_scenario
from weft.traffic.jobs.operations import Kind

RANKS, EXPERTS, TOP_K = 4, 16, 4
TOKENS = MODEL.sequence


def plan_of(routing: Routing) -> TrainingPlan:
    return TrainingPlan(MODEL, Parallelism(data=RANKS, expert=RANKS), routing=routing)


def a_matrix(seed: int = 1) -> np.ndarray:
    """Each rank's tokens choose TOP_K experts each, some more often than others."""
    generator = np.random.default_rng(seed)
    popularity = generator.dirichlet(np.ones(EXPERTS))
    rows = [generator.multinomial(TOKENS * TOP_K // 2, popularity) for _ in range(RANKS)]
    return np.minimum(rows, TOKENS)


@given(ranks=st.integers(1, 6), each=st.integers(1, 4), data=st.data())
@settings(max_examples=40, deadline=None)
def test_copies_are_sums_over_the_experts_of_a_rank(ranks, each, data):
    cells = st.lists(st.integers(0, 50), min_size=ranks * each, max_size=ranks * each)
    rows = data.draw(st.lists(cells, min_size=ranks, max_size=ranks))
    found = routed_tokens(Routing(matrix=rows), ranks * each, 2, ranks, 1, 50, 1)
    for sender in range(ranks):
        for receiver in range(ranks):
            assert found.copies[sender, receiver] == sum(rows[sender][receiver * each : (receiver + 1) * each])


def test_ranks_send_what_the_matrix_says():
    matrix = a_matrix()
    plan = plan_of(Routing(matrix=matrix.tolist()))
    copies = matrix.reshape(RANKS, RANKS, -1).sum(axis=2)
    token_bytes = MODEL.hidden * plan.precisions.bytes_of("dispatch")
    job = training_job(plan)
    for rank, part in enumerate(job.parts):
        operations = part.operations
        sent: set[tuple[int, int]] = set()
        for row in operations.of_kind(Kind.SEND).tolist():
            sent.add((part.peers[operations.target[row]], int(operations.size_bytes[row])))
        for peer in range(RANKS):
            if peer != rank and copies[rank, peer]:
                assert (peer, copies[rank, peer] * token_bytes) in sent
    busiest = int(np.argmax(copies.sum(axis=0)))
    assert plan.drawn_tokens.load(busiest) == pytest.approx(copies[:, busiest].sum() * RANKS / copies.sum())


def test_files_hold_the_same_as_the_scenario(tmp_path: Path):
    matrix = a_matrix()
    as_csv, as_json = tmp_path / "routing.csv", tmp_path / "routing.json"
    as_csv.write_text("# rank x expert\n" + "\n".join(", ".join(map(str, row)) for row in matrix) + "\n")
    as_json.write_text(json.dumps(matrix.tolist()))
    for path in (as_csv, as_json):
        assert np.array_equal(given_matrix(path), matrix)


def test_a_path_is_relative_to_the_scenario(tmp_path: Path):
    (tmp_path / "routing.csv").write_text("\n".join(",".join(map(str, row)) for row in a_matrix()))
    tree = {
        "fabric": {"leaves": 2, "hosts_per_leaf": 2},
        "traffic": [
            {
                "model": MODEL.model_dump(exclude_defaults=True),
                "parallel": {"data": RANKS, "expert": RANKS},
                "routing": {"matrix": "routing.csv"},
            }
        ],
    }
    scenario_file = tmp_path / "scenario.yaml"
    scenario_file.write_text(json.dumps(tree))
    from weft.scenario import load_scenario

    assert np.array_equal(load_scenario(scenario_file).traffic[0].routing.given, a_matrix())
    tree["traffic"][0]["routing"] = {"matrix": str(tmp_path / "none.csv")}
    with refused(BadInputError, place="scenario: traffic[0].routing.matrix", problem="csv cannot be read"):
        parse_scenario(tree)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1] * EXPERTS] * 3, {"problem": "3 rows of 16 (valid: 4 ranks"}),
        ([[1] * 15] * RANKS, {"problem": "4 rows of 15"}),
        ([[0] * EXPERTS] * RANKS, {"problem": "no token goes anywhere"}),
        ([[0] * EXPERTS] * 3 + [[0] * 15 + [TOKENS + 1]], {"problem": "row 3, column 15: 257 tokens"}),
        ([[TOKENS] * EXPERTS] + [[0] * EXPERTS] * 3, {"problem": "row 0: 4096 tokens in all"}),
        ([[1] * EXPERTS, [1]], {"valid": "16, as row 0", "problem": "row 1 has 1 cells"}),
        ([], {"valid": "a row for each rank, a column for each expert", "problem": "no matrix of tokens"}),
    ],
)
def test_a_matrix_that_does_not_fit(matrix, message):
    with refused(PlanError, **message) as problem:
        plan_of(Routing(matrix=matrix))
    assert problem.value.key == "routing.matrix"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "m.csv",
            "1,2\n3,x\n",
            {"valid": "a number of tokens from 0", "problem": "csv: row 1, column 1: 'x'"},
        ),
        ("m.csv", "1,-2\n", {"valid": "a number of tokens from 0", "problem": "row 0, column 1: '-2'"}),
        (
            "m.csv",
            "",
            {"valid": "a row for each rank, a column for each expert", "problem": "no matrix of tokens"},
        ),
        ("m.json", "[[1, 2], [3]", {"place": "m.json", "valid": "a list of rows of JSON"}),
        ("m.json", "[" * 100_000, {"place": "m.json", "valid": "a list of rows of JSON"}),
        ("m.json", f"[[1, {'9' * 5000}]]", {"place": "m.json", "valid": "a list of rows of JSON"}),
        ("m.json", '{"a": 1}', {"place": "m.json", "valid": "a list of rows"}),
        ("m.json", "[[1, true]]", {"valid": "a number of tokens from 0", "problem": "row 0, column 1: True"}),
        (
            "m.json",
            "[[1, 1e300]]",
            {"valid": "a number of tokens from 0", "problem": "row 0, column 1: 1e+300"},
        ),
        (
            "m.json",
            "[1, 2]",
            {"valid": "a row for each rank, a column for each expert", "problem": "no matrix of tokens"},
        ),
    ],
)
def test_a_file_that_is_no_matrix(tmp_path: Path, name: str, text: str, message: dict[str, str]):
    path = tmp_path / name
    path.write_text(text)
    with refused(BadInputError, **message):
        given_matrix(path)


@pytest.mark.parametrize("other", [{"skew": 1.0}, {"popularity": [1.0]}, {"hosts_per_token": 1}])
def test_a_matrix_alone(other):
    with pytest.raises(ValidationError, match=r"exclude each other|does not go with matrix"):
        Routing(matrix=[[1]], **other)
