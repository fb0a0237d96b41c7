"""Commands to an endpoint without NICs, in this process: any input gets one answer, and the endpoint survives."""

import dataclasses
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.traffic.commands.base import COMMANDS
from weft.traffic.endpoint import Endpoint, LineReader
from weft.traffic.host import host_of_namespace
from weft.traffic.host_config import HostConfig

NAMES = [*COMMANDS, "fly"]
FIELDS = ["run", "plane", "peer", "label", "connections", "jobs", "planes", "rank_count", "element_count"]
FIELDS += ["dtype", "operation", "algorithm", "plane_rates_bps", "piece_bytes", "buffer", "result", "rank"]
FIELDS += ["flows", "source", "destination", "size_bytes", "start_ps", "peers", "path", "timeout_s", "id"]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 4),
    st.floats(allow_nan=False),
    st.sampled_from(["ring", "in-network", "int32", "float32", "sum", "data", "/", "/dev/null", ""]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*FIELDS, "0"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def endpoint():
    """An endpoint, and the list its answers go to."""
    config = HostConfig("h0", 0, epoch_ns=time.monotonic_ns(), nics=())
    host = host_of_namespace(config)
    answers = []
    yield Endpoint(host, answers.append), answers
    host.close()


def ask(endpoint, line) -> dict:
    carried_out, answers = endpoint
    answers.clear()
    carried_out.execute(line if isinstance(line, str) else json.dumps(line))
    assert len(answers) == 1
    return json.loads(json.dumps(answers[0]))


@st.composite
def messages(draw):
    """A command with any values in some of its fields, and now and then a field of another."""
    name = draw(st.sampled_from(NAMES))
    own = [each.name for each in dataclasses.fields(COMMANDS[name])] if name in COMMANDS else []
    fields = draw(st.dictionaries(st.sampled_from([*own, *own, "id", "run", "plane"]), values, max_size=9))
    return fields | {"command": name} | ({"timeout_s": 0} if name == "wait" else {})


@given(messages())
@settings(max_examples=300, deadline=None)
def test_any_fields_get_one_answer(endpoint, message):
    answer = ask(endpoint, message)
    assert ("id" in message) == ("id" in answer)
    if message["command"] == "fly":
        assert "unknown command 'fly'" in answer["error"]
    assert ask(endpoint, {"command": "stats"})["failure"] is None


@given(st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_text_gets_one_answer(endpoint, text):
    assert "error" in ask(endpoint, text)


def test_a_run_goes_from_prepared_to_released(endpoint):
    prepared = ask(endpoint, {"command": "traffic", "run": 2**31 - 1, "flows": {}})
    assert prepared == {"run": 2**31 - 1, "memory": {}}
    assert ask(endpoint, {"command": "status", "run": 2**31 - 1})["state"] == "prepared"
    assert "exists already" in ask(endpoint, {"command": "traffic", "run": 2**31 - 1, "flows": {}})["error"]
    assert ask(endpoint, {"command": "start", "run": 2**31 - 1})["done"]
    assert "started already" in ask(endpoint, {"command": "start", "run": 2**31 - 1})["error"]
    assert ask(endpoint, {"command": "release", "run": 2**31 - 1})["done"]
    assert "no run" in ask(endpoint, {"command": "status", "run": 2**31 - 1})["error"]


def test_a_run_beyond_the_valid_numbers_is_not_started(endpoint):
    assert ask(endpoint, {"command": "traffic", "run": 2**31, "flows": {}})["run"] == 2**31
    assert "valid: 1 to 2147483647" in ask(endpoint, {"command": "start", "run": 2**31})["error"]
    assert ask(endpoint, {"command": "release", "run": 2**31})["done"]


def test_lines_are_split_wherever_the_pipe_breaks_them():
    class Pieces:
        """Gives bytes as a pipe would."""

        def __init__(self, *pieces):
            self.pieces = list(pieces)

        def read1(self, _):
            return self.pieces.pop(0) if self.pieces else b""

    reader = LineReader(Pieces(b"on", b"e\ntwo\n\nth", b"ree\n"))
    assert [reader.lines() for _ in range(3)] == [[], ["one", "two"], ["three"]]
    assert not reader.ended
    assert reader.lines() == []
    assert reader.ended
