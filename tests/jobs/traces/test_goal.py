"""GOAL: what statements mean, what other tools are given, and what is wrong."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.jobs.traces.random_jobs import CALLS, random_job
from tests.refusals import refused
from weft.jobs.traces import ReadOptions, TraceError, read_trace, write_trace
from weft.jobs.traces.goal.expansion import EXPANSIONS
from weft.traffic.jobs import CollectiveCall, Group, Job, Kind, OperationsBuilder, RankPart

IN_TMP = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SAID_IN_GOAL = tuple(call for call in CALLS if call.collective in EXPANSIONS)


@pytest.fixture
def goal(tmp_path):
    """Writes a text, and returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "x.goal"
        path.write_text(text)
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as error:
        read_trace(path)
    return str(error.value).replace(f"{path.parent}/", "")


EXCHANGE = """
num_ranks 2 // of two
rank 0 {
l1: calc 100 cpu 2
l2: send 8b to 1 tag 4 cpu 1 nic 0 /* over the
first NIC */ l3: calc 1
l2 requires l1
l3 requires l2
}
rank 1 {
a: recv 8b from 0 tag 4
calc 5
b: calc 0
b irequires a
}
"""


def test_statements_become_operations(goal):
    job = read_trace(goal(EXCHANGE.replace("/* over the\nfirst NIC */ l3", "/* of the\nfirst */\nl3"))).job
    one, two = (part.operations for part in job.parts)
    assert one.kind.tolist() == [Kind.COMPUTE, Kind.SEND, Kind.COMPUTE]
    assert one.duration_ps.tolist() == [100_000, 0, 1000]
    assert one.stream.tolist() == [2, -1, 0]
    assert [one.predecessors(each).tolist() for each in range(3)] == [[], [0], [1]]
    # A small message is sent eagerly: what requires it follows its start.
    assert one.after_start.tolist() == [False, True]
    assert two.kind.tolist() == [Kind.RECEIVE, Kind.COMPUTE, Kind.COMPUTE]
    assert (two.predecessors(2).tolist(), two.after_start.tolist()) == ([0], [True])


def test_a_large_message_is_waited_for(goal):
    text = "num_ranks 2\nrank 0 {\na: send 70000b to 1\nb: calc 1\nb requires a\n}\nrank 1 {\nrecv 70000b from 0\n}"
    assert read_trace(goal(text)).job.parts[0].operations.after_start.tolist() == [False]
    eager = ReadOptions(eager_bytes=70_000)
    assert read_trace(goal(text), options=eager).job.parts[0].operations.after_start.tolist() == [True]


def test_the_overhead_is_computation_before_a_send_and_after_a_receive(goal):
    text = EXCHANGE.replace("/* over the\nfirst NIC */ l3", "\nl3")
    one, two = (part.operations for part in read_trace(goal(text), options=ReadOptions(send_overhead_ps=70)).job.parts)
    assert one.kind.tolist() == [Kind.COMPUTE, Kind.COMPUTE, Kind.SEND, Kind.COMPUTE]
    assert one.duration_ps.tolist() == [100_000, 70, 0, 1000]
    assert one.stream.tolist() == [2, 1, -1, 0]
    assert [one.predecessors(each).tolist() for each in range(4)] == [[], [0], [1], [1]]
    assert two.kind.tolist() == [Kind.RECEIVE, Kind.COMPUTE, Kind.COMPUTE, Kind.COMPUTE]
    assert [two.predecessors(each).tolist() for each in range(4)] == [[], [0], [], [0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.goal: num_ranks is missing"),
        ("num_ranks 0", "line 1: num_ranks 0 (valid: once, 1 to 65536)"),
        ("num_ranks 1\nnum_ranks 1", "line 2: num_ranks 1 (valid: once"),
        ("num_ranks 3\nrank 1 {\n}", "x.goal: ranks 0, 2 are missing"),
        ("num_ranks 1\nrank 1 {\n}", "line 2: rank 1 (valid: below num_ranks, 1)"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {", "line 4: rank 0 occurs twice"),
        ("num_ranks 2\nrank 0 {\nrank 1 {", "line 3: rank 0 has not ended (valid: } first)"),
        ("num_ranks 1\nrank 0 {\n", "x.goal: rank 0 does not end (valid: } at its end)"),
        ("num_ranks 1\ncalc 3", "line 2: a statement outside of any rank (valid: rank R {)"),
        ("num_ranks 1\n}", "line 2: a statement outside of any rank"),
        ("num_ranks 1\nrank 0 {\n/* a", "line 3: the comment does not end"),
        ("num_ranks 1\nrank 0 {\nsend 8 to 1", "line 3: 'send 8 to 1' is not a GOAL statement (valid: num_ranks N"),
        ("num_ranks 1\nrank 0 {\nsend 8b from 1", "line 3: 'send 8b from 1' is not a GOAL statement"),
        ("num_ranks 1\nrank 0 {\ncalc " + "9" * 500, "line 3: a number of too many digits (valid: up to 19)"),
        ("num_ranks 1\nrank 0 {\ncalc " + "9" * 18, "line 3: a duration of 999999999999999999000 ps"),
        ("num_ranks 1\nrank 0 {\ncalc 1 cpu 9999", "line 3: stream 9999 (valid: -1 to 4095)"),
        ("num_ranks 1\nrank 0 {\nsend 8b to 0", "line 3: rank 0 and rank 0 exchange a message"),
        ("num_ranks 1\nrank 0 {\nsend 8b to 1", "line 3: rank 0 and rank 1 exchange a message (valid: another"),
        ("num_ranks 2\nrank 0 {\nrecv 8b from -1", "line 3: a message from any rank or of any tag, -1, cannot be run"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 1", "line 4: label 'a' occurs twice in rank 0"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}", "line 4: rank 0 has no label 'b'"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}", "rank 0, x.goal, line 3 (compute) waits for itself"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_line(goal, text, said):
    assert said in refusal(goal(text))


def test_sends_without_receives_are_named_by_line(goal):
    assert refusal(goal("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}")) == (
        "x.goal: the job cannot finish\n"
        "rank 0, x.goal, line 3 (send of 8 B to rank 1, tag 0): no operation of rank 1 receives it"
    )


@IN_TMP
@given(seed=st.integers(0, 2**32))
def test_every_job_is_said_in_goal(tmp_path, seed):
    job = random_job(seed, SAID_IN_GOAL)
    write_trace(job, tmp_path / "job.goal", "goal")
    again = read_trace(tmp_path / "job.goal").job
    for ours, theirs in zip(job.parts, again.parts, strict=True):
        for kind in (Kind.SEND, Kind.RECEIVE):
            mine = ours.operations.size_bytes[ours.operations.of_kind(kind)]
            found = Counter(theirs.operations.size_bytes[theirs.operations.of_kind(kind)].tolist())
            assert not Counter(max(1, each) for each in mine.tolist()) - found
    write_trace(again, tmp_path / "again.goal", "goal")
    # Eager messages are waited for by their start, and labels are others; all else is said again.
    texts = [(tmp_path / name).read_text() for name in ("job.goal", "again.goal")]
    ours, theirs = (Counter(re.findall(r"calc|send \w+|recv \w+|requires|rank \d+", text)) for text in texts)
    assert ours == theirs


def test_labels_stand_before_what_requires_them(tmp_path):
    """As LogGOPSim's txt2bin needs them."""
    builder = OperationsBuilder()
    for at_ps in (9_000, 2_000, 5_000):
        builder.timer(at_ps)
    builder.compute(1, after=[4, 5], after_start=[6])
    for _ in range(3):
        builder.collective(0, 0)
    job = Job(
        "x",
        (RankPart(builder.build(), (), (0,)),) * 2,
        (Group("all", (0, 1)),),
        (CollectiveCall("reduce", 8),),
    )
    write_trace(job, tmp_path / "x.goal", "goal")
    known: set[str] = set()
    for line in (tmp_path / "x.goal").read_text().splitlines():
        if line.startswith("rank"):
            known.clear()
        known.update(re.findall(r"^(\w+):", line))
        assert known.issuperset(re.findall(r"^(\w+) i?requires", line) + re.findall(r"requires (\w+)", line))
    again = read_trace(tmp_path / "x.goal").job.parts[0].operations
    assert again.kind.tolist().count(Kind.COMPUTE) == 4 + 2 * 3


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 12])
@pytest.mark.parametrize("name", EXPANSIONS)
def test_collectives_become_messages_that_end(tmp_path, name, ranks):
    builder = OperationsBuilder()
    builder.collective(0, 0)
    order = tuple(reversed(range(ranks)))
    call = CollectiveCall(name, 840, root=ranks - 1 if name in ("broadcast", "reduce") else 0)
    job = Job("x", (RankPart(builder.build(), (), (0,)),) * ranks, (Group("all", order),), (call,))
    write_trace(job, tmp_path / "x.goal", "goal")
    parts = read_trace(tmp_path / "x.goal").job.parts
    sent = [int(part.operations.size_bytes[part.operations.of_kind(Kind.SEND)].sum()) for part in parts]
    part_bytes = -(-840 // ranks)
    each = {"allreduce": 2 * (ranks - 1) * part_bytes}.get(name, (ranks - 1) * part_bytes)
    expected = 840 * (ranks - 1) if name in ("broadcast", "reduce") else each * ranks
    assert sum(sent) == expected


def test_what_goal_cannot_say_is_refused(tmp_path):
    builder = OperationsBuilder()
    builder.collective(0, 0)
    groups = (Group("all", (0, 1)),)
    job = Job("x", (RankPart(builder.build(), (), (0,)),) * 2, groups, (CollectiveCall("moe_dispatch", 64),))
    with refused(
        TraceError,
        valid="allgather, allreduce, alltoall, broadcast, reduce, reducescatter",
        problem="rank 0, operation 0",
    ):
        write_trace(job, tmp_path / "x.goal", "goal")
    assert not list(tmp_path.iterdir())


def test_timers_are_counted_one_after_the_other(tmp_path):
    builder = OperationsBuilder()
    for at_ps in (9_000, 2_000, 9_000):
        builder.timer(at_ps)
    write_trace(Job("x", (RankPart(builder.build()),)), tmp_path / "x.goal", "goal")
    operations = read_trace(tmp_path / "x.goal").job.parts[0].operations
    assert operations.duration_ps.tolist() == [7_000, 2_000, 0]
    assert [operations.predecessors(each).tolist() for each in range(3)] == [[1], [], [0]]


@IN_TMP
@given(data=st.data(), seed=st.integers(0, 100))
def test_changed_texts_are_read_or_refused(tmp_path, data, seed):
    path = tmp_path / "x.goal"
    write_trace(random_job(seed, SAID_IN_GOAL), path, "goal")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from(b"0 \n{}:l-/*\xff"))
    path.write_bytes(content)
    try:
        read_trace(path)
    except TraceError as error:
        said = str(error)
    else:
        said = "x.goal"
    assert "x.goal" in said
