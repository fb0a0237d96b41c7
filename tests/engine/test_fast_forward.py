"""What the engine refuses of fast-forward's groups, and what it counts before there is a run."""

from __future__ import annotations

import pytest

from weft.engine import Engine, Partitions, _core


def a_run() -> tuple[Partitions, Engine, _core.ScheduleExecutor, _core.FastForward]:
    partitions = Partitions(seed=1)
    engine = partitions.add()
    return partitions, engine, _core.ScheduleExecutor(engine), _core.FastForward(partitions, 0.01)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.1, float("nan")])
def test_a_tolerance_is_between_0_and_1(tolerance: float) -> None:
    with pytest.raises(ValueError, match="valid: above 0 and below 1"):
        _core.FastForward(Partitions(), tolerance)


def test_ranks_are_of_the_same_run() -> None:
    *_, fast_forward = a_run()
    _, engine, executor, _ = a_run()
    with pytest.raises(ValueError, match="of another run's engine"):
        fast_forward.set_rank(0, engine, executor)


RATE_BPS = 10**11


def test_a_group_has_known_ranks_with_ports() -> None:
    _, engine, executor, fast_forward = a_run()
    fast_forward.set_rank(0, engine, executor)

    def add(ranks: list[int], ports: list[list[tuple[int, int]]], *, is_message: bool = False) -> int:
        return fast_forward.add_group(ranks, ports=ports, alike=0, latency_ps=0, is_message=is_message, may_repeat=True)

    assert [fast_forward.add_port(RATE_BPS) for _ in range(2)] == [0, 1]
    own = [(0, RATE_BPS)]
    with pytest.raises(ValueError, match="no rank 1"):
        add([0, 1], [own, [(1, RATE_BPS)]])
    with pytest.raises(ValueError, match="ports of 0 places"):
        add([0], [])
    with pytest.raises(ValueError, match="no port 2"):
        add([0], [[(2, RATE_BPS)]])
    with pytest.raises(ValueError, match="valid: 1 or more; 2 of messages"):
        add([0], [own], is_message=True)
    assert [add([0], [own]) for _ in range(2)] == [0, 1]
    fast_forward.set_latency(1, 5, 100)
    with pytest.raises(ValueError, match="no group 2"):
        fast_forward.set_latency(2, 5, 100)
    fast_forward.forget()
    with pytest.raises(ValueError, match="no port 0"):
        add([0], [own])
    fast_forward.add_port(RATE_BPS)
    assert add([0], [own]) == 0


def test_nothing_is_counted_before_a_run() -> None:
    *_, fast_forward = a_run()
    assert not any(fast_forward.counts.values())
