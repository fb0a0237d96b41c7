"""Lanes by themselves: tables, marks, stages, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.engine import _core
from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType
from weft.traffic.lane_schedule import REDUCE, WAIT, WRITE, Chunk, ChunkTable, Formula, LaneSchedule
from weft.traffic.schedule_nodes import DATA, Channel
from weft.traffic.striping import split_evenly

TO_PEER = Formula(0)


def new_schedule(**options):
    schedule = LaneSchedule(0, {DATA: 4000}, DataType.INT32, Operation.SUM, **options)
    schedule.channel(Channel(0, 1))
    return schedule


def bound(schedule, payload="zeros", channels=1, data=None):
    return _core.BoundLanes(
        schedule.native,
        payload=payload,
        data=data,
        scratch=None,
        channels=[(number, 0, 0, 0, 0) for number in range(channels)],
        aggregators=[],
    )


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(1, 300), st.integers(-2, 2))
def test_a_table_of_even_chunks_is_cut_as_ranges_are(start, length, parts, turns):
    elements = range(start, start + length)
    table = ChunkTable.evenly(elements, parts)
    chunks = split_evenly(elements, parts)
    assert [table[number + turns * parts] for number in range(parts)] == chunks
    assert (table.count, table.largest) == (parts, max(map(len, chunks)))
    assert table[10**15 * parts + 1] == chunks[1 % parts]
    listed = ChunkTable.of(chunks)
    assert [listed[number] for number in range(parts)] == chunks


@given(st.data())
def test_a_lane_goes_on_when_all_that_it_waits_for_is_marked_and_not_before(data):
    count = data.draw(st.integers(1, 12))
    pieces = split_evenly(range(0, 10 * count), count)
    bounds = st.tuples(st.integers(0, 10 * count), st.integers(0, 10 * count))
    awaited = data.draw(st.lists(bounds.map(lambda ends: range(min(ends), max(ends))), max_size=8))
    schedule = new_schedule()
    schedule.add_stage()
    marks = schedule.add_marks()
    piece = Chunk(schedule.add_table(ChunkTable.evenly(range(10 * count), 1)), is_cut=True)
    schedule.add_lanes(count)
    schedule.add_loop(1, schedule.add_grid(count, WAIT))
    schedule.receive(piece, TO_PEER, transfer=0, slot=0)
    schedule.mark_elements(piece, marks)
    one = Chunk(schedule.add_table(ChunkTable.evenly(range(1), 1)))
    for elements in awaited:
        schedule.add_lanes(1)
        schedule.add_loop(1, schedule.add_grid(1, WRITE), Formula(0))
        schedule.await_elements(Chunk(schedule.add_table(ChunkTable.evenly(elements, 1))), marks)
        schedule.send(one, TO_PEER, transfer=0, slot=0)
    stepper = _core.ScheduleStepper(bound(schedule))
    stepper.begin()
    marked, sent = set(), {step - count for step, *_ in stepper.take_writes()}
    for number in data.draw(st.permutations(range(count))):
        stepper.arrived(0, number)
        marked.update(pieces[number])
        sent |= {step - count for step, *_ in stepper.take_writes()}
        assert sent == {place for place, elements in enumerate(awaited) if marked.issuperset(elements)}
    assert len(sent) == len(awaited)


def test_stages_follow_each_other_when_all_transfers_are_acknowledged():
    schedule = new_schedule()
    first = schedule.add_stage()
    chunk = Chunk(schedule.add_table(ChunkTable.evenly(range(8), 1)), is_cut=True)
    schedule.add_lanes(2)
    schedule.add_loop(1, schedule.add_grid(2, WRITE))
    schedule.send(chunk, TO_PEER, transfer=0, slot=0)
    empty = schedule.add_stage([first])
    schedule.add_delay(7, [first, empty])
    stepper = _core.ScheduleStepper(bound(schedule))
    stepper.begin()
    assert [step for step, *_ in stepper.take_writes()] == [0, 1]
    stepper.completed(0)
    assert stepper.take_delays() == []
    stepper.completed(1)
    ((step, duration_ps, token),) = stepper.take_delays()
    assert (step, duration_ps, stepper.is_done) == (2, 7, False)
    stepper.delay_over(token)
    assert stepper.is_done
    assert list(stepper.done) == [0, 1, 2]


def opened(schedule, *slots):
    """A loop of one lane and turn, and a chunk of eight elements."""
    schedule.add_stage()
    schedule.add_lanes(1)
    schedule.add_loop(1, schedule.add_grid(1, *slots))
    return Chunk(schedule.add_table(ChunkTable.evenly(range(8), 1)))


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda schedule: schedule.add_grid(1, WRITE), "no stage to add to"),
        (lambda schedule: schedule.add_stage([0]), "stage 0 follows stage 0"),
        (lambda schedule: (schedule.add_stage(), schedule.add_lanes(0)), "a block of 0 lanes"),
        (lambda schedule: (opened(schedule), schedule.add_loop(0, 0)), "a loop of 0 turns"),
        (lambda schedule: (opened(schedule), schedule.add_loop(1, 9)), "no grid 9"),
        (lambda schedule: (opened(schedule, WRITE), schedule.reduce(Chunk(4), slot=0)), "no table 4"),
        (lambda schedule: schedule.reduce(opened(schedule, REDUCE), slot=1), "slot 1 of a grid of 1"),
        (lambda schedule: schedule.reduce(opened(schedule, REDUCE), shift=-1, slot=0), "elements from -1 on"),
        (lambda schedule: schedule.mark_elements(opened(schedule), 0), "no marks 0"),
        (lambda schedule: schedule.add_delay(-1), "a delay of -1 ps"),
        (
            lambda schedule: schedule.send(opened(schedule, WRITE), Formula(-1), transfer=0, slot=0),
            "channels -1 to -1",
        ),
        (
            lambda schedule: schedule.send(opened(schedule, WRITE), TO_PEER, transfer=1 << 20, slot=0),
            r"transfer 1048576 of a run \(valid: 0 to 1048575; use larger pieces\)",
        ),
    ],
)
def test_what_names_nothing_is_refused(add, message):
    with pytest.raises(ValueError, match=message):
        add(new_schedule())


def test_tables_and_run_tags_out_of_range_are_refused():
    with pytest.raises(ValueError, match="a table of 0 ranges"):
        _core.ElementTable.evenly(0, 3, 0)
    with pytest.raises(ValueError, match="elements 4 to 3"):
        _core.ElementTable.of([(4, 3)])
    with pytest.raises(ValueError, match="run tag 4096"):
        new_schedule(run_tag=4096)


def test_lanes_are_bound_to_all_that_they_name():
    schedule = new_schedule()
    schedule.send(opened(schedule, WRITE), TO_PEER, transfer=0, slot=0)
    with pytest.raises(ValueError, match="needs 1 channels, there are 0"):
        bound(schedule, channels=0)
    with pytest.raises(ValueError, match="needs 8 elements of data, there are 3"):
        bound(schedule, "data", data=bytearray(12))
    with pytest.raises(ValueError, match=r"payload 'bits' \(valid: data, zeros, lengths\)"):
        bound(schedule, "bits")
