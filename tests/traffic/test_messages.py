"""Commands and answers are what was sent, and what is wrong with a message is named."""

import copy
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.paths import ROOT
from weft.rdma import reports
from weft.rdma.out_of_band import OutOfBandMessage
from weft.traffic.aggregation_format import Operation
from weft.traffic.answers import (
    Done,
    EndedFlows,
    EntropyValue,
    EntropyValues,
    EvEvent,
    EvEvents,
    EvProfilesOfHost,
    FlowRecords,
    OperationTimes,
    ParameterRecords,
    Prepared,
    ProgramLeft,
    ProgramProgress,
    RunState,
    Saved,
    ServiceRecords,
    StoreCounts,
    Suspended,
    TcpEndRecord,
    TcpRecords,
    TcpSamples,
    TransportInForce,
)
from weft.traffic.commands.aggregation import (
    EndMessages,
    Join,
    Leave,
    Membership,
    MovedStream,
    MoveStreams,
    ReadResults,
    StopStreams,
    StreamPart,
    WriteContributions,
)
from weft.traffic.commands.base import COMMANDS, command_message, read_answer, read_command
from weft.traffic.commands.collectives import PrepareCollective, PrepareTrainingStep, Provided
from weft.traffic.commands.collector import Collect, SaveCollected
from weft.traffic.commands.connections import (
    Connect,
    Connection,
    Detour,
    DetouredChannel,
    Disconnect,
    PlaneAddress,
    Suspend,
)
from weft.traffic.commands.counters import AskStats, AskTransport, Capture, ResetStats, SaveRecorded
from weft.traffic.commands.evs import (
    AskEvProfiles,
    AskEvs,
    AssignEvProfile,
    EvOfPeer,
    ModifyEvProfile,
    ProbeEvs,
    SetEvs,
    TakeEvEvents,
)
from weft.traffic.commands.flows import AskFlowRecords, PeerPlanes, PrepareFlows, PrepareTraffic, WorkloadFlow
from weft.traffic.commands.jobs import AskOperationTimes, PrepareJob
from weft.traffic.commands.parameters import (
    AskParameterRecords,
    ParameterPart,
    ParameterRequests,
    PrepareParameters,
)
from weft.traffic.commands.programs import EndProgram, FollowProgram, StartProgram
from weft.traffic.commands.runs import Release, Start, Status, Wait
from weft.traffic.commands.services import AskServiceRecords, PrepareService, ServicePart, ServiceRequests
from weft.traffic.commands.tcp import AskTcpRecords, PrepareTcpFlows, TcpEnd
from weft.traffic.data_types import DataType
from weft.traffic.ev_profiles import EvOfPlane, EvProfile, EvProfileAttributes
from weft.traffic.host_config import HostConfig
from weft.traffic.jobs.rank_job import PeerPaths, RankCall, RankJob
from weft.traffic.lane_schedule import LaneSchedule
from weft.traffic.messages import MessageError, as_message, read_message
from weft.traffic.native_schedule import RemoteBuffer
from weft.traffic.patterns import Flow
from weft.traffic.schedule_nodes import Channel
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import Layer, TrainingStep

SPEC = CollectiveSpec(
    4,
    1000,
    DataType.FLOAT32,
    Operation.MAX,
    (10**9, 10**10),
    512,
    17,
    root=3,
    ranks_per_host=2,
    rank_stride=2,
)
STEP = TrainingStep((Layer(600, 10, 20), Layer(400, 0, 5)), 4096, 7)
MEMBERSHIP = Membership(0, 1, 2, 3, 4, 1, 2, (1, 0), 6, "10.0.0.9", "02:00:00:00:00:09", "239.0.0.1", 10**6)
CONNECTION = Connection(
    1, 3, 0x100, 0x101, "fd00::1", "traffic", 5, 6, "02:00:00:00:00:01", 49_152, telemetry=True, retry_limit=2
)
STREAM_PART = StreamPart(1, 0, 4, 12, Operation.SUM)
FLOW = WorkloadFlow(8, 10**6, 1, 4096, 3, "10.0.0.2", 0x100, 0x101)
RANK_JOB = RankJob(
    (PeerPaths((Channel(0, 3), Channel(1, 3)), (1 << 15, 1 << 16)),),
    (RankCall("allreduce", "ring", SPEC, 1, (0, 1, 4, 5), "job0/group1"),),
    7,
    1.5,
)
SAMPLES = [
    Connect((CONNECTION, Connection(0, 1, 2, 3, more_planes=(PlaneAddress(1, "10.1.0.2"),)))),
    Disconnect("traffic"),
    Join((MEMBERSHIP,)),
    Leave((0, 1)),
    PrepareCollective(5, SPEC, "ring", "/in", "/out", "lengths", 2, collective="broadcast"),
    PrepareTrainingStep(step=STEP, run=6, spec=SPEC, algorithm="ring"),
    PrepareTraffic(7, {3: Flow(0, 1, 1000, 1, 5), 12: Flow(2, 0, 1)}, "lengths", 1),
    PrepareFlows(8, (FLOW,), (FLOW, FLOW), True, "lengths", (PeerPlanes(3, (PlaneAddress(0, "10.1.0.2"),)),)),
    PrepareJob(9, RANK_JOB, "/operations.npz", "lengths"),
    AskOperationTimes(9, "/times.npz"),
    PrepareService(
        10,
        ServicePart(0, 1, 2, 3, 4, 5, "10.0.0.254", "02:01:00:00:00:00", "239.88.0.1"),
        ServiceRequests("fetch_and_add", 100, 3, 8, 2**64 - 1),
    ),
    AskServiceRecords(10),
    PrepareParameters(11, ParameterPart(0, 1, 2, 3, None, "10.0.0.1"), ParameterRequests(10, 20, 4, 0.5, 0.25, 3), 7),
    AskParameterRecords(11),
    PrepareTcpFlows(
        12,
        (TcpEnd(3, 5001, True, "10.0.0.1", 4, 1, 2, 3, 4, "dctcp", True, False, 5, 6, 7, 8, 1, 2, {"g": 0.5}),),
        9,
    ),
    AskTcpRecords(12),
    Start(8, 10**12, {3: {"data": RemoteBuffer(4096, 7), "scratch": RemoteBuffer(8192, 9)}, 0: {}}),
    Status(8),
    Wait(8, 2.5),
    AskFlowRecords(8),
    Release(8),
    AskStats(),
    ResetStats(),
    AskTransport(6, telemetry=True),
    StartProgram(9, "mine.py:run", {"count": 3}, ("h0", "h1"), {"h0": 0, "h1": 1}, 0x10000, True, 6),
    FollowProgram(9, (OutOfBandMessage("h0", "h1", "topic", {"key": [1, None]}),)),
    EndProgram(9),
    Capture(1, "/tmp/x.pcapng"),
    SaveRecorded("/tmp/x.npz"),
    Collect(32766),
    SaveCollected("/tmp/y.npz"),
    AskEvs(),
    SetEvs((EvOfPeer("10.0.0.2", 0xC0010000), EvOfPeer("fd00::2", 7)), denied=True),
    ProbeEvs((EvOfPeer("10.0.0.2", 0xC0010000),)),
    AskEvProfiles(),
    ModifyEvProfile(
        1 << 63, EvProfileAttributes(state="offline", ev_mode="explicit", ev_count=1, evs=(EvOfPlane(0, 7),))
    ),
    AssignEvProfile(3),
    TakeEvEvents(100),
    Suspend((Channel(1, 3), Channel(1, 2, "traffic"))),
    Detour((DetouredChannel(Channel(1, 3), (Channel(0, 3, "for plane 1"),), 7),)),
    StopStreams(1),
    MoveStreams(1, (MovedStream(0, 12, MEMBERSHIP),)),
    WriteContributions(STREAM_PART, "/contributions"),
    ReadResults(STREAM_PART, "/results"),
    EndMessages(1, 0, 12),
]
EV = EntropyValue(256, "10.0.0.2", 1, 0xC0010000, ("h0", "p0l0", "h1"), "fd00::9", "denied", False, 7, True, 10**7)
ANSWERS = [
    (AskEvs(), EntropyValues((EV, replace(EV, queue_pair=None, nodes=(), probed=False, round_trip_ps=None)))),
    (AskEvProfiles(), EvProfilesOfHost((EvProfile(0, "online", "auto", 128, 32, 0, ("good",), assigned=True),))),
    (TakeEvEvents(), EvEvents((EvEvent(10**6, 3, 256, "10.0.0.2", 1, 7, "assumed_bad", 2),))),
    (ResetStats(), Done()),
    (Release(1), Done()),
    (SAMPLES[4], Prepared(5, {"data": RemoteBuffer(1, 2)})),
    (SAMPLES[5], Prepared(5, {})),
    (Status(1), RunState(1, "prepared")),
    (Wait(1), RunState(1, "failed", 5, 10**15, 3, 4, "rank 2 is gone")),
    (AskFlowRecords(1), FlowRecords(1, EndedFlows((1, 2), (3, 4), (5, 6), (0, 7)))),
    (
        AskTransport(),
        TransportInForce({"preset": None, "planes": [{"parameters": {"g": 0.5, "fast": True}}]}),
    ),
    (SaveRecorded("x"), Saved(3)),
    (SaveCollected("x"), Saved(0)),
    (AskOperationTimes(9, "/times.npz"), OperationTimes(9)),
    (
        AskParameterRecords(11),
        ParameterRecords(11, (1,), (True,), (2,), (3,), (4,), (5,), (6,), (0,), 7, StoreCounts(8, 9, 10)),
    ),
    (
        AskTcpRecords(12),
        TcpRecords(
            12,
            (TcpEndRecord(1, True, *range(2, 20)),),
            TcpSamples((1,), (2,), (3,), (4,), (0.5,)),
        ),
    ),
    (AskServiceRecords(10), ServiceRecords(10, (1, 2), (3, 4), (0, 2**64 - 1), (1, 5))),
    (Suspend(()), Suspended((3, 0))),
    (
        FollowProgram(9),
        ProgramProgress(9, (OutOfBandMessage("h0", "h1", "topic", [1, "two"]),), True, "it raised"),
    ),
    (
        EndProgram(9),
        ProgramLeft(
            9,
            1,
            2,
            {"count": 3.0},
            {"word": "yes"},
            {"series": (reports.Point(1.0, 2.5),)},
            (reports.Operation("IBV_WR_SEND", "IBV_WC_SUCCESS", 64, 3, 4),),
            "waits",
        ),
    ),
]


def json_of(value: Any) -> Any:
    return json.loads(json.dumps(value))


def places(tree: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every key and index of a tree, as the path to it."""
    found = list(tree.items()) if isinstance(tree, dict) else []
    found += list(enumerate(tree)) if isinstance(tree, list) else []
    return [place for key, each in found for place in ((*above, key), *places(each, (*above, key)))]


def section_at(tree: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def rows_of_the_specification() -> dict[str, str]:
    """The fields of every command, as docs/spec/endpoint-protocol.md has them."""
    page = (ROOT / "docs" / "spec" / "endpoint-protocol.md").read_text(encoding="utf-8")
    table = page.split("## Commands", 1)[1].split("\n| command |", 1)[1].split("\n\n", 1)[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows}


def message_of(command: Any) -> dict[str, Any]:
    """The fields of a command's message, without its number."""
    found = json_of(command_message(command, 1))
    del found["id"]
    return dict(found)


def read_or_refused(message: dict[str, Any]) -> tuple[str, Any]:
    """What is wrong with a message, or the command."""
    try:
        return "", read_command(message)
    except MessageError as error:
        return str(error), None


def test_there_is_a_sample_of_every_command():
    assert {type(sample) for sample in SAMPLES} == set(COMMANDS.values())
    assert {type(command).name for command, _ in ANSWERS} <= set(COMMANDS)


def test_the_specification_has_every_command_and_its_fields():
    rows = rows_of_the_specification()
    assert rows.keys() == COMMANDS.keys()
    for name, like in (
        ("training_step", "collective"),
        ("move_streams", "join"),
        ("read_results", "write_contributions"),
    ):
        rows[name] += rows[like]
    for name, sample in ((sample.name, sample) for sample in SAMPLES):
        for place in places(message_of(sample)):
            named = [key for key in place if isinstance(key, str) and key.isidentifier()]
            if named[0] in ("command", "peers") or "spec" in named[:-1]:
                continue
            if {"parameters", "ranks", "value"} & set(named[:-1]):  # whose keys are users' and hosts' names
                continue
            assert re.search(rf"\b{named[-1]}\b", rows[name]), (name, named)


@pytest.mark.parametrize("command", SAMPLES, ids=lambda command: command.name)
def test_a_command_comes_back_from_json(command):
    message = json_of(command_message(command, 9))
    assert (message["command"], message["id"]) == (command.name, 9)
    assert read_command(message) == command


@pytest.mark.parametrize(("command", "answer"), ANSWERS)
def test_an_answer_comes_back_from_json(command, answer):
    assert read_answer(command, json_of(as_message(answer)) | {"id": 9}) == answer


@pytest.mark.parametrize("command", SAMPLES, ids=lambda command: command.name)
def test_fields_that_are_missing_have_their_defaults_or_are_named(command):
    message = message_of(command)
    for name in message.keys() - {"command"}:
        rest = {key: value for key, value in message.items() if key != name}
        declared = type(command).__dataclass_fields__[name]
        if getattr(type(command), name, None) is declared.default or name == "peers":
            assert json_of(as_message(read_command(rest))).keys() == message.keys() - {"command"}
        else:
            with pytest.raises(MessageError, match=f"field '{name}' is missing"):
                read_command(rest)


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.integers(-2, 2**24),
        st.floats(),
        st.sampled_from(["int32", "sum", "bytes", "lengths", "7", "-1", "01", "x", ""]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["run", "0", "1"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.data(), st.sampled_from(SAMPLES), values)
@settings(max_examples=600, deadline=None)
def test_any_value_anywhere_is_taken_as_it_is_or_refused_by_the_place_of_its_field(data, command, value):
    message = message_of(command)
    place = data.draw(st.sampled_from([place for place in places(message) if place != ("command",)] or [()]))
    if not place:
        return
    changed = copy.deepcopy(message)
    section_at(changed, place[:-1])[place[-1]] = value
    refused, found = read_or_refused(changed)
    # A list or an object that is not valid as a whole is named by its own place.
    named = any(name in refused for name in place if isinstance(name, str))
    if found is None:
        assert named
    else:
        # A parameter may be NaN, which does not equal itself.
        assert message_of(found) == changed or repr(message_of(found)) == repr(changed)


@given(st.data(), st.sampled_from(SAMPLES))
@settings(max_examples=200, deadline=None)
def test_an_unknown_field_is_named_with_those_that_there_are(data, command):
    message = message_of(command)
    objects = [(), *(place for place in places(message) if isinstance(section_at(message, place), dict))]
    place = data.draw(st.sampled_from(objects))
    if place[-1:] in [("flows",), ("peers",), ("parameters",), ("ranks",), ("value",)] or place[-2:-1] == ("peers",):
        return  # objects with numbers and names of their own
    section_at(message, place)["speed"] = 1
    with pytest.raises(MessageError, match=r"field '.*speed' is unknown \(valid: "):
        read_command(message)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({}, r"field 'command' is missing \(valid: assign_ev_profile, collect, .*write_contributions\)"),
        ({"command": None}, "field 'command' is missing"),
        ({"command": "fly"}, r"unknown command 'fly' \(valid: assign_ev_profile, collect, "),
        ({"command": ["stats"]}, r"unknown command \['stats'\]"),
        ({"command": "wait"}, r"field 'run' is missing \(given: none\)"),
        ({"command": "wait", "run": 1.0}, r"field 'run' is 1\.0 \(valid: a whole number\)"),
        (
            {"command": "wait", "run": 2**64},
            r"field 'run' is 1\d+ \(valid: a whole number of at most 64 bits\)",
        ),
        ({"command": "wait", "run": 1, "timeout_s": -1}, r"field 'timeout_s' is -1\.0 \(valid: 0 or more\)"),
        (
            {"command": "wait", "run": 1, "timeout_s": float("nan")},
            r"field 'timeout_s' is nan \(valid: a number",
        ),
        ({"command": "leave", "planes": 3}, r"field 'planes' is 3 \(valid: a list\)"),
        ({"command": "leave", "planes": [0, True]}, r"field 'planes\[1\]' is True \(valid: a whole number\)"),
        ({"command": "transport", "ip_version": 5}, r"field 'ip_version' is 5 \(valid: 4, 6\)"),
        ({"command": "transport", "ip_version": "4"}, r"field 'ip_version' is '4' \(valid: 4, 6\)"),
        (
            {"command": "connect", "connections": [{"plane": 0, "peer": 1, "queue_pair": 1 << 24}]},
            r"field 'connections\[0\]\.queue_pair' is 16777216 \(valid: 0 to 16777215\)",
        ),
        (
            {"command": "traffic", "run": 1, "flows": {"-1": {}}},
            r"a key of field 'flows' is '-1' \(valid: a whole number, 0 or more\)",
        ),
        (
            {"command": "traffic", "run": 1, "flows": {"4": {"source": 1}}},
            r"field 'flows\.4\.destination' is missing \(given: source\)",
        ),
        (
            {"command": "flows", "run": 1, "sent": [[1, 2, 3]], "received": []},
            r"field 'sent\[0\]' is \[1, 2, 3\] \(valid: a list of flow, start_ps, plane, .*remote_queue_pair\)",
        ),
        (
            {"command": "flows", "run": 1, "sent": [], "received": [[1, 2, 3, 4, 5, 6, 7, 8]]},
            r"field 'received\[0\]\.peer_ip' is 6 \(valid: text\)",
        ),
    ],
)
def test_a_broken_message_is_refused_with_the_field_its_value_and_what_is_valid(message, error):
    with pytest.raises(MessageError, match=error):
        read_command(message)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            {"dtype": "int64"},
            {
                "valid": "float32, float16, bfloat16, int32, int16, int8",
                "problem": "field 'spec.dtype' is 'int64'",
            },
        ),
        (
            {"operation": "mean"},
            {"valid": "sum, max, min, and, or, xor, average", "problem": "field 'spec.operation' is 'mean'"},
        ),
        (
            {"operation": 0},
            {"valid": "sum, max, min, and, or, xor, average", "problem": "field 'spec.operation' is 0"},
        ),
        ({"rank_count": 0}, {"problem": "field 'spec': 0 ranks (valid: 1"}),
    ],
)
def test_what_makes_no_collective_is_refused(change, error):
    message = message_of(SAMPLES[4])
    message["spec"] |= change
    with refused(MessageError, **error):
        read_command(message)


def test_an_answer_that_is_none_to_the_command_is_refused():
    with refused(
        MessageError,
        valid="prepared, waiting, running, finished, failed, cancelled",
        problem="field 'state' is 'gone'",
    ):
        read_answer(Status(1), {"run": 1, "state": "gone"})
    with refused(MessageError, problem="field 'name' is missing (given"):
        read_answer(AskStats(), {"rank": 0, "id": 5})


@pytest.mark.parametrize("message", [None, 3, "x", [], [1]])
def test_only_an_object_is_a_message(message):
    with refused(MessageError, valid="an object", problem="a message is"):
        read_message(HostConfig, message)


def test_what_is_for_this_process_is_not_sent():
    schedule = LaneSchedule(0, {}, SPEC.dtype, SPEC.operation, 0)
    command = PrepareCollective(1, SPEC, "ring", provided=Provided(schedule, np.zeros(1)))
    with pytest.raises(TypeError, match=r"PrepareCollective\.provided is for hosts in the same process"):
        command_message(command, 1)
    message = message_of(SAMPLES[4]) | {"provided": None}
    with refused(
        MessageError,
        valid=("run, spec, algorithm, buffer, result, payload, rank, aggregation_jobs, collective"),
        problem="field 'provided' is unknown",
    ):
        read_command(message)
