"""Threads, and processes, as ranks of a fabric: what they call together travels over it, and takes its time."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.controller.features.ecn import DCQCN_SCALE
from weft.ranks import frames
from weft.ranks.calls import Call
from weft.ranks.carrying import Carrier
from weft.ranks.client import CoordinatorProcess, RankClient
from weft.ranks.coordinator import Coordinator
from weft.ranks.default_fabric import default_scenario, description
from weft.ranks.errors import RanksError
from weft.results.link_events import LinkEventResult
from weft.run.spec import run_spec
from weft.system.scratch import is_scratch
from weft.traffic.data_types import FLOAT_FORMATS, DataType, elements_of, numbers

US = 10**6
RANKS = 4
ALL = tuple(range(RANKS))
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)


@contextmanager
def serving(
    place: Path, algorithm: str = "ring", timeout_s: float = 60.0, grace_s: float = 60.0
) -> Iterator[list[Any]]:
    """Serve ranks from a thread of this process; what it yields has the coordinator's last word, in the end."""
    said: list[Any] = []
    with Fabric(TOPOLOGY, clock="virtual") as fabric, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        said.append(fabric)
        coordinator = Coordinator(Carrier(fabric, algorithm), RANKS, timeout_s, grace_s)
        thread = threading.Thread(target=lambda: said.append(coordinator.serve(listener)))
        thread.start()
        yield said
        thread.join()


def as_ranks(place: Path, work: Callable[[RankClient], Any], count: int = RANKS) -> list[Any]:
    """Have each rank do some work, in a thread of its own; return what they return, or raise."""

    def one(rank: int) -> Any:
        client = RankClient(place, rank, RANKS)
        try:
            return work(client)
        except RanksError as error:
            return error
        finally:
            client.leave()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def call_of(collective: str, elements: int, ranks: tuple[int, ...] = ALL, **options: Any) -> Call:
    return Call("main", ranks, collective, options.pop("dtype", "int32"), elements, **options)


def own_data(rank: int, elements: int) -> Any:
    return np.random.default_rng(rank).integers(-1000, 1000, elements, np.int32)


@pytest.mark.parametrize("algorithm", ["ring", "in-network"])
def test_every_collective_gives_what_numpy_computes(tmp_path: Path, algorithm: str) -> None:
    count = 64
    inputs = [own_data(rank, count) for rank in ALL]
    total, chunk = np.sum(inputs, axis=0), count // RANKS

    def work(rank: RankClient) -> dict[str, Any]:
        kinds = {
            "allreduce": {}, "reducescatter": {}, "allgather": {}, "alltoall": {}, "broadcast": {"root": 2},
            "reduce": {"operation": "max", "root": 1},
            "barrier": {},
        }  # fmt: skip
        return {
            kind: rank.call(call_of(kind, count, **options), own_data(rank.rank, count)).wait(60)
            for kind, options in kinds.items()
        }

    with serving(tmp_path / "s", algorithm) as said:
        results = as_ranks(tmp_path / "s", work)
    assert said[-1] == ""
    for rank, own in enumerate(results):
        np.testing.assert_array_equal(own["allreduce"], total)
        np.testing.assert_array_equal(own["reducescatter"], total[rank * chunk : (rank + 1) * chunk])
        np.testing.assert_array_equal(own["allgather"], np.concatenate(inputs))
        parts = [each[rank * chunk : (rank + 1) * chunk] for each in inputs]
        np.testing.assert_array_equal(own["alltoall"], np.concatenate(parts))
        np.testing.assert_array_equal(own["broadcast"], inputs[2])
    np.testing.assert_array_equal(results[1]["reduce"], np.max(inputs, axis=0))


@pytest.mark.parametrize(("algorithm", "group"), [("ring", (0, 2, 3)), ("in-network", ALL)])
def test_elements_of_every_type_are_reduced_by_every_operation(
    tmp_path: Path, algorithm: str, group: tuple[int, ...]
) -> None:
    """Small whole numbers, as such or as elements of the type; their sums are exact, and averages rounded once."""
    numbers_of = [np.random.default_rng(rank).integers(-9, 9, 50) * 12 for rank in group]
    calls = [(dtype, "average") for dtype in DataType]
    calls += [(dtype, operation) for dtype in FLOAT_FORMATS for operation in ("sum", "max", "min")]
    whole = [dtype for dtype in DataType if not dtype.is_float]
    calls += [(dtype, operation) for dtype in whole for operation in ("sum", "max", "min", "and", "or", "xor")]

    def work(rank: RankClient) -> Any:
        if rank.rank not in group:
            return None
        own = numbers_of[group.index(rank.rank)]
        made = [
            rank.call(
                call_of("allreduce", 50, group, dtype=dtype, operation=operation),
                own if rank.rank % 2 else elements_of(own, dtype),
            )
            for dtype, operation in calls
        ]
        return [each.wait(60) for each in made]

    with serving(tmp_path / "s", algorithm) as said:
        results = as_ranks(tmp_path / "s", work)
    assert said[-1] == ""
    for rank in group:
        for (dtype, operation), result in zip(calls, results[rank], strict=True):
            assert result.dtype == dtype.storage
            expected = combined(numbers_of, dtype, operation)
            np.testing.assert_array_equal(numbers(result, dtype), expected, f"{operation} of {dtype}")


def combined(inputs: list[Any], dtype: DataType, operation: str) -> Any:
    """What NumPy makes of whole numbers: sums wrap in the type, averages are rounded as hosts do."""
    ufuncs = {
        "sum": np.add, "average": np.add, "max": np.maximum, "min": np.minimum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    total = ufuncs[operation].reduce(inputs)
    if dtype.is_float:
        return numbers(elements_of(total / len(inputs) if operation == "average" else total, dtype), dtype)
    wrapped = total.astype(dtype.storage)
    return np.trunc(wrapped / len(inputs)) if operation == "average" else wrapped


def test_ranks_meet_at_the_last_one_and_clocks_repeat(tmp_path: Path) -> None:
    """A rank that computes longer has the others wait; every figure is the same in a second run."""

    def work(rank: RankClient) -> tuple[list[int], int]:
        ends = []
        for step in range(3):
            rank.clock.compute((rank.rank + 1) * 10 * US)
            call = rank.call(call_of("allreduce", 1000), own_data(step, 1000))
            call.wait(60)
            rank.clock.wait_until(call.ended_ps)
            ends.append(rank.clock.now_ps)
        return ends, rank.clock.waited_ps

    runs = []
    for number in range(2):
        with serving(tmp_path / f"s{number}"):
            runs.append(as_ranks(tmp_path / f"s{number}", work))
    assert runs[0] == runs[1]
    ends, waited = zip(*runs[0], strict=True)
    for step in range(3):
        assert min(own[step] for own in ends) > (step + 1) * 40 * US
    assert waited[0] > waited[3] > 0
    assert waited[0] - waited[3] > 80 * US


def test_calls_without_waiting_follow_each_other(tmp_path: Path) -> None:
    def work(rank: RankClient) -> list[int]:
        calls = [rank.call(call_of("allreduce", 5000), own_data(rank.rank, 5000)) for _ in range(3)]
        for call in calls:
            call.wait(60)
        return [call.ended_ps for call in calls]

    with serving(tmp_path / "s"):
        ends = as_ranks(tmp_path / "s", work)
    first, second, third = ends[0]
    assert 0 < first < second < third
    assert second - first == pytest.approx(third - second, rel=0.05)


def test_groups_have_collectives_of_their_own(tmp_path: Path) -> None:
    """Also of two ranks in the other order, as messages between two are carried."""

    def work(rank: RankClient) -> Any:
        group = (0, 1) if rank.rank < 2 else (3, 2)
        reduced = rank.call(call_of("allreduce", 10, group), own_data(rank.rank, 10)).wait(60)
        sent = rank.call(call_of("broadcast", 10, group, root=1), own_data(rank.rank, 10)).wait(60)
        return reduced, sent

    with serving(tmp_path / "s", "in-network"):
        results = as_ranks(tmp_path / "s", work)
    for rank, (reduced, sent) in enumerate(results):
        pair = (0, 1) if rank < 2 else (3, 2)
        np.testing.assert_array_equal(reduced, own_data(pair[0], 10) + own_data(pair[1], 10))
        np.testing.assert_array_equal(sent, own_data(pair[1], 10))


def test_a_link_fails_between_the_calls_that_it_is_scheduled_between(tmp_path: Path) -> None:
    """The fabric's clock follows the ranks', which compute meanwhile."""
    with serving(tmp_path / "s") as said:
        event: LinkEventResult = said[0].schedule_link("p0l0", "p0s0", "down", 5000 * US)

        def work(rank: RankClient) -> list[int | None]:
            seen = []
            for _ in range(3):
                rank.call(call_of("allreduce", 10), own_data(rank.rank, 10)).wait(60)
                seen.append(event.happened_ps)
                rank.clock.compute(4000 * US)
                rank.call(call_of("allreduce", 10), own_data(rank.rank, 10)).wait(60)
            return seen

        seen = as_ranks(tmp_path / "s", work)[0]
    assert seen[0] is None
    assert seen[2] is not None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (call_of("allreduce", 12), ["12 int32", "10 int32", "number 0"]),
        (call_of("allreduce", 10, operation="max"), ["(max)", "(sum)"]),
        (call_of("allgather", 10), ["allgather", "allreduce"]),
        (call_of("allreduce", 10, dtype="float32"), ["10 float32", "10 int32"]),
    ],
    ids=["size", "operation", "collective", "type"],
)
def test_ranks_that_call_different_things_all_have_an_error(tmp_path: Path, wrong: Call, words: list[str]) -> None:
    def work(rank: RankClient) -> Any:
        call = wrong if rank.rank == 2 else call_of("allreduce", 10)
        return rank.call(call, np.ones(call.elements, call.dtype)).wait(60)

    with serving(tmp_path / "s"):
        results = as_ranks(tmp_path / "s", work)
    assert all(isinstance(each, RanksError) for each in results)
    (text,) = {str(each) for each in results}
    assert all(word in text for word in ["do not call the same", "rank 2", *words])


def test_a_value_that_cannot_be_carried_is_an_error_of_all(tmp_path: Path) -> None:
    def work(rank: RankClient) -> Any:
        return rank.call(call_of("allreduce", 4, dtype="float32"), np.full(4, np.nan, np.float32)).wait(60)

    with serving(tmp_path / "s"):
        results = as_ranks(tmp_path / "s", work)
    assert all("NaN" in str(each) and "number 0 of ranks 0 to 3" in str(each) for each in results)


def test_a_rank_that_ends_is_an_error_of_the_others(tmp_path: Path) -> None:
    with serving(tmp_path / "s") as said:
        dying = socket.socket(socket.AF_UNIX)

        def work(rank: RankClient) -> Any:
            if rank.rank == 0:
                dying.connect(str(tmp_path / "s"))
                frames.send(dying, {"rank": 3, "rank_count": RANKS})
                dying.close()
            return rank.call(call_of("allreduce", 4), np.ones(4, np.int32)).wait(60)

        results = as_ranks(tmp_path / "s", work, count=3)
    assert {str(each) for each in results} == {"rank 3 has ended without leaving the group"}
    assert said[-1] == "rank 3 has ended without leaving the group"


def test_a_rank_that_leaves_while_others_wait_is_an_error(tmp_path: Path) -> None:
    def work(rank: RankClient) -> Any:
        return None if rank.rank == 1 else rank.call(call_of("allreduce", 4), np.ones(4, np.int32)).wait(60)

    with serving(tmp_path / "s"):
        results = as_ranks(tmp_path / "s", work)
    assert all("rank 1 has left" in str(each) for each in (results[0], results[2], results[3]))


def test_a_rank_that_does_not_call_is_named_after_the_timeout(tmp_path: Path) -> None:
    others = threading.Event()

    def work(rank: RankClient) -> Any:
        if rank.rank == 2:
            assert others.wait(60)
            return None
        try:
            return rank.call(call_of("allreduce", 4), np.ones(4, np.int32)).wait(60)
        finally:
            others.set()

    with serving(tmp_path / "s", timeout_s=0.5):
        results = as_ranks(tmp_path / "s", work)
    assert "ranks [2] have not called within 0.5 s" in str(results[0])


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"rank": 4, "rank_count": RANKS}, "rank 4 (valid: 0 to 3"),
        ({"rank": 0, "rank_count": 8}, "8 processes are ranks of a fabric of 4"),
        ({"rank": "x", "rank_count": RANKS}, "rank x"),
    ],
    ids=["rank", "count", "kind"],
)
def test_processes_that_are_no_ranks_end_the_run(tmp_path: Path, header: dict[str, Any], words: str) -> None:
    with serving(tmp_path / "s", grace_s=0.0) as said, socket.socket(socket.AF_UNIX) as one:
        one.connect(str(tmp_path / "s"))
        frames.send(one, header)
        answer = frames.receive(one)
    assert words in said[-1]
    assert answer == ({"failed": said[-1]}, b"")


@pytest.mark.parametrize(
    "change",
    [
        {"collective": "scan"}, {"dtype": "float64"}, {"elements": 0}, {"elements": True}, {"root": 4},
        {"ranks": [0, 0]}, {"ranks": [1, 2]}, {"ranks": [0, 9]}, {"ranks": 7}, {"operation": "product"},
        {"stream": "x" * 300}, {"unknown": 1},
    ],
    ids=str,
)  # fmt: skip
def test_calls_that_are_none_are_refused(change: dict[str, Any]) -> None:
    good = call_of("broadcast", 4).as_dict()
    assert Call.of(good, 0, RANKS) == call_of("broadcast", 4)
    with pytest.raises(RanksError, match="rank 0"):
        Call.of(good | change, 0, RANKS)


@pytest.mark.parametrize("sent", [b"\xff" * 12, b"\0\0\0\1" + bytes(8) + b"[", b"\0\0\0\2" + bytes(8) + b"[]"])
def test_bytes_that_are_no_message_are_refused(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        with pytest.raises(RanksError, match="message"):
            frames.receive(ours)


def test_the_process_that_holds_the_fabric_says_why_it_cannot(tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.yaml"
    scenario.write_text("clock: virtual\nfabric: {leaves: many}\n", encoding="utf-8")
    with refused(RanksError, problem="leaves"):
        CoordinatorProcess(scenario, "ring", 30)
    with refused(RanksError, problem="missing.yaml"):
        CoordinatorProcess(tmp_path / "missing.yaml", "ring", 30)


RANK = """
import sys
from pathlib import Path
import numpy as np
from weft.ranks.calls import Call
from weft.ranks.client import RankClient
client = RankClient(Path(sys.argv[1]), int(sys.argv[2]), 2)
call = Call("main", (0, 1), "allreduce", "float32", 3)
print(client.call(call, np.full(3, client.rank + 1, np.float32)).wait(60).tolist())
client.leave()
"""


@pytest.mark.parametrize(
    ("ranks", "leaves", "below"), [(1, 1, 1), (2, 2, 1), (4, 2, 2), (7, 7, 1), (8, 2, 4), (18, 6, 3), (64, 16, 4)]
)
def test_the_default_fabric_has_as_many_hosts_as_ranks(ranks: int, leaves: int, below: int) -> None:
    spec = run_spec(default_scenario(ranks))
    for link in (each.link for each in spec.fabric.links):
        # Packets are marked before a queue is full.
        assert DCQCN_SCALE.profile(link.rate_bps).kmax_bytes < link.queue_capacity_bytes
    assert spec.fabric.rank_count == ranks
    assert not spec.traffic
    assert {each.link.rate_bps for each in spec.fabric.links if each.a.node.startswith("h")} == {400 * 10**9}
    assert f"{below} below each of {leaves} lea" in description(ranks)


def test_processes_are_ranks(tmp_path: Path) -> None:
    scenario = tmp_path / "fabric.yaml"
    scenario.write_text(
        "clock: virtual\nfabric: {planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2}\n", encoding="utf-8"
    )
    holder = CoordinatorProcess(scenario, "in-network", 60, tmp_path / "out")
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(holder.place), str(rank)], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    assert [rank.communicate(timeout=120)[0].strip() for rank in ranks] == ["[3.0, 3.0, 3.0]"] * 2
    folder = holder.place.parent
    assert is_scratch(folder)  # which `weft clean` finds by its name, where this process is killed
    assert holder.end() == 0
    assert (tmp_path / "out" / "results.json").exists()
    assert not folder.exists()
