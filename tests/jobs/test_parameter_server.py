"""Training with a parameter server: its job's dependencies, what steps consist of, how old weights are, the replay."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.jobs.digits_mlp import DigitsMlp, parameter_count
from weft.jobs.parameter_server import ParameterServerPlan, all_reduce_job, parameter_server_job
from weft.jobs.parameter_server.convergence import convergence
from weft.jobs.parameter_server.replay import replay
from weft.jobs.parameter_server.staleness import clock_lags, update_staleness
from weft.jobs.parameter_server.step_parts import step_parts
from weft.jobs.training_plan import PlanError
from weft.traffic.jobs.checks import check_job
from weft.traffic.jobs.ideal import ideal_times

US = 10**6


def plan_of(**options) -> ParameterServerPlan:
    few = {"servers": 2, "workers": 4, "parameter_bytes": 4096, "steps": 6, "compute_ps": 10 * US}
    return ParameterServerPlan(**few | options)


def ideal(plan: ParameterServerPlan):
    """Times of a run whose messages take none."""
    made = parameter_server_job(plan) if plan.has_servers else all_reduce_job(plan)
    check_job(made.job)
    return made.times(ideal_times(made.job))


PLANS = st.builds(
    plan_of,
    servers=st.integers(1, 4),
    workers=st.integers(1, 5),
    steps=st.integers(1, 8),
    colocated=st.booleans(),
    mode=st.just("asynchronous"),
    staleness=st.none() | st.integers(0, 9),
    jitter=st.sampled_from([0.0, 0.3, 1.0]),
    stragglers=st.sampled_from([{}, {0: 3.0}]),
    memory_bandwidth_gb_per_s=st.sampled_from([1.0, 307.2, 1e6]),
    seed=st.integers(0, 100),
)


@settings(max_examples=60, deadline=None)
@given(plan=PLANS)
def test_answers_wait_for_what_stale_synchronous_parallel_says_and_for_no_more(plan):
    """Worker w gets weights for step c + 1 when its own step c and everybody's step c - s are in them."""
    times = ideal(plan)
    for worker, step, server in np.ndindex(times.answered_ps.shape):
        needed = [times.updated_ps[worker, step, server]]
        if plan.staleness is not None and step >= plan.staleness:
            needed += times.updated_ps[:, step - plan.staleness, server].tolist()
        assert times.answered_ps[worker, step, server] == max(needed)
    lags, late = clock_lags(times), update_staleness(times)
    assert lags.total() == late.total() == plan.workers * plan.steps * plan.servers
    assert min(lags) >= 0
    assert min(late) >= 0
    if plan.staleness is not None:
        assert max(lags) <= plan.staleness
    if plan.workers == 1:
        assert set(lags) == set(late) == {0}


@settings(max_examples=30, deadline=None)
@given(plan=PLANS)
def test_the_parts_of_steps_add_up(plan):
    times = ideal(plan)
    parts = step_parts(times)
    assert all((values >= 0).all() for values in parts.values())
    assert (sum(parts.values()).cumsum(axis=1) == times.pulled_ps.max(axis=2)).all()
    assert (parts["compute"] == np.stack([plan.compute_times_ps(each) for each in range(plan.workers)])).all()


def test_a_synchronous_step_is_that_of_the_slowest():
    plan = plan_of(jitter=0.5, stragglers={2: 2.0})
    slowest_ps = np.max([plan.compute_times_ps(worker) for worker in range(4)], axis=0)
    times, parts = ideal(plan), step_parts(ideal(plan))
    (shard_bytes,) = set(plan.shard_bytes)
    assert (times.applied_ps.max(axis=1) >= slowest_ps.cumsum()).all()
    # The last gradient finds an idle server, unless another came within the time of an update.
    assert times.applied_ps[-1, 0] <= slowest_ps.sum() + plan.steps * 5 * plan.update_ps(shard_bytes)
    assert (parts["wait"].min(axis=0) <= 4 * plan.update_ps(shard_bytes)).all()
    assert clock_lags(times) == update_staleness(times) == Counter({0: 4 * 6 * 2})


def test_more_staleness_waits_less():
    waits = [
        step_parts(ideal(plan_of(mode="asynchronous", staleness=each, jitter=0.6, steps=40)))["wait"].sum()
        for each in (0, 1, 3, None)
    ]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] == 0 < waits[-2]


def test_asynchronous_updates_of_equal_workers_are_stale_by_the_others():
    """Staleness is n - 1 on average (Zhang et al. 2016, section 3)."""
    late = update_staleness(ideal(plan_of(mode="asynchronous", workers=5, steps=50, servers=1)))
    mean = sum(value * count for value, count in late.items()) / late.total()
    assert mean == pytest.approx(4, abs=0.1)
    assert max(late) == 4


def test_a_bound_beyond_all_steps_is_none():
    bounded, free = (plan_of(mode="asynchronous", staleness=each, jitter=0.5) for each in (6, None))
    assert (ideal(bounded).pulled_ps == ideal(free).pulled_ps).all()


def test_servers_share_all_parameters():
    plan = plan_of(servers=3, parameter_bytes=4 * 11)
    assert plan.shard_bytes == [16, 16, 12]
    assert plan.shard_ends.tolist() == [0, 4, 8, 11]
    assert plan_of(colocated=True, servers=5).rank_count == 5


class Bowl:
    """Half the squared distance to a point of each worker's: gradients are known in closed form."""

    def __init__(self, workers: int, size: int) -> None:
        generator = np.random.default_rng(1)
        self.initial = generator.standard_normal(size).astype(np.float32)
        self.points = generator.standard_normal((workers, size)).astype(np.float32)

    def gradient(self, weights, worker, step):
        return weights - self.points[worker]


@pytest.mark.parametrize("options", [{}, {"colocated": True, "servers": 4}, {"mode": "all-reduce"}])
def test_synchronous_training_is_gradient_descent(options):
    """On this bowl it is w(c) = m + (1 - rate)^c (w(0) - m), with m the mean of the points."""
    plan = plan_of(jitter=0.5, **options)
    bowl = Bowl(4, 1024)
    middle = bowl.points.mean(axis=0, dtype=np.float64)
    seen = 0
    for moment in replay(ideal(plan), plan, bowl, 0.25):
        expected = middle + 0.75**moment.steps * (bowl.initial - middle)
        np.testing.assert_allclose(moment.weights, expected, atol=1e-6)
        assert moment.steps == seen
        seen += 1
    assert seen == plan.steps + 1


def test_one_asynchronous_worker_descends_alone():
    plan = plan_of(mode="asynchronous", workers=1)
    bowl = Bowl(1, 1024)
    for moment in replay(ideal(plan), plan, bowl, 0.25):
        expected = bowl.points[0] + 0.75**moment.steps * (bowl.initial - bowl.points[0])
        np.testing.assert_allclose(moment.weights, expected, atol=1e-6)


def test_the_replay_is_in_the_order_of_updates_and_readings():
    """One server; two workers, of which one takes 2.5 times as long: the order is found by hand."""
    plan = plan_of(
        servers=1,
        workers=2,
        steps=2,
        mode="asynchronous",
        parameter_bytes=4,
        stragglers={1: 2.5},
        memory_bandwidth_gb_per_s=1e6,
    )
    bowl = Bowl(2, 1)
    (first, second), rate = bowl.points[:, 0].tolist(), 0.5 / 2
    start = float(bowl.initial[0])
    # Worker 0 at 10 and 20 µs, worker 1 at 25 µs with the first weights, then at 50 µs.
    one = start - rate * (start - first)
    two = one - rate * (one - first)
    three = two - rate * (start - second)
    four = three - rate * (three - second)
    found = [(each.steps, each.time_ps, float(each.weights[0])) for each in replay(ideal(plan), plan, bowl, 0.5)]
    assert [(steps, time_ps) for steps, time_ps, _ in found] == [(0, 0), (1, 20 * US), (2, 50 * US)]
    assert [weight for _, _, weight in found] == pytest.approx([start, two, four], rel=1e-6)


@pytest.fixture(scope="module")
def trained():
    pytest.importorskip("sklearn")
    return lambda **options: DigitsMlp(4, 1, 16, **options)


def losses(plan, model, rate=0.5):
    return convergence(replay(ideal(plan), plan, model, rate), model, plan.steps)


def trained_plan(**options) -> ParameterServerPlan:
    return plan_of(parameter_bytes=4 * parameter_count(16), steps=30, jitter=0.5, **options)


def test_synchronous_training_equals_data_parallel_training(trained):
    """Both add up the same gradients in another order: at most 1 part in 10^5 after 30 steps."""
    model, weights = trained(batch=32), []
    for mode in ("synchronous", "all-reduce"):
        plan = trained_plan(mode=mode)
        *_, last = replay(ideal(plan), plan, model, 0.5)
        weights.append(last.weights.copy())
    difference = np.linalg.norm(weights[0] - weights[1]) / np.linalg.norm(weights[1])
    assert difference < 1e-5
    assert np.linalg.norm(weights[1] - model.initial) > 0.1


def test_one_synchronous_step_differs_by_the_rounding_of_a_sum(trained):
    """Float32 sums of n terms in two orders: 2 (n - 1) u times the sum of their sizes, and two roundings of weights."""
    model, workers = trained(batch=32), 4
    ends = []
    for mode in ("synchronous", "all-reduce"):
        plan = plan_of(parameter_bytes=4 * parameter_count(16), steps=1, jitter=1.0, mode=mode)
        *_, last = replay(ideal(plan), plan, model, 0.5)
        ends.append(last.weights.astype(np.float64))
    sizes = sum(np.abs(model.gradient(model.initial, worker, 0)).astype(np.float64) for worker in range(workers))
    unit = 2.0**-24
    bound = 0.5 / workers * (2 * (workers - 1) + 2) * unit * sizes + 2 * unit * np.abs(ends[1])
    assert (np.abs(ends[0] - ends[1]) <= bound).all()


def test_the_loss_falls_in_every_mode_and_a_seed_repeats(trained):
    for options in ({}, {"mode": "asynchronous"}, {"mode": "asynchronous", "staleness": 2}):
        found, again = (losses(trained_plan(**options), trained(batch=32)) for _ in range(2))
        assert found == again
        assert found.losses[0] > 2
        assert found.losses[-1] < 1.2
        assert found.accuracy > 0.7
        assert found.steps == list(range(31))
        step, time_ps = found.first_within(1.5)
        assert found.losses[step] <= 1.5 < found.losses[step - 1]
        assert time_ps == found.times_ps[step]
        assert found.first_within(0.001) is None


def test_asynchronous_training_survives_a_rate_at_which_synchronous_training_does_not():
    """As docs/parameter-server.md says: seven workers, computations as in lab 15."""
    pytest.importorskip("sklearn")
    model, accuracies = DigitsMlp(7, 1, 256, 32), []
    for mode in ("synchronous", "asynchronous"):
        plan = plan_of(
            servers=1,
            workers=7,
            parameter_bytes=4 * parameter_count(256),
            steps=30,
            compute_ps=400 * US,
            jitter=0.6,
            mode=mode,
        )
        accuracies.append(losses(plan, model, rate=2.0).accuracy)
    assert accuracies[0] < 0.5
    assert accuracies[1] > 0.9


def test_a_rate_that_is_too_high_diverges(trained):
    found = losses(trained_plan(), trained(batch=32), rate=1e30)
    assert found.diverged
    assert np.isfinite(found.losses).all()
    assert found.losses


def test_the_gradient_is_the_slope_of_the_loss(trained):
    """Of all images in one shard, by central differences."""
    pytest.importorskip("sklearn")
    model = DigitsMlp(1, 3, 16)
    gradient = model.gradient(model.initial, 0, 0)
    direction = gradient / np.linalg.norm(gradient)
    step = np.float32(0.05)
    slope = (model.loss(model.initial + step * direction) - model.loss(model.initial - step * direction)) / (2 * step)
    assert slope == pytest.approx(np.linalg.norm(gradient), rel=1e-2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameter_bytes": 6}, {"valid": "a multiple of 4", "problem": "6 B"}),
        ({"servers": 2000}, {"valid": "1 to one for each parameter", "problem": "2000 servers share 4096 B"}),
        ({"staleness": 1}, {"valid": "none, or mode asynchronous", "problem": "1 of mode synchronous"}),
        ({"stragglers": {4: 2.0}}, {"valid": "0 to 3", "problem": "worker 4"}),
        ({"mode": "all-reduce", "workers": 1}, {"valid": "2 or more", "problem": "1 for an all-reduce"}),
        ({"steps": 1_000_000}, {"valid": "up to 50000", "problem": "which send 8000000 gradients"}),
        ({"workers": 65_536, "servers": 1000}, {"valid": "fewer workers or servers"}),
    ],
)
def test_what_does_not_fit_together_is_refused(options, message):
    with refused(PlanError, **message):
        plan_of(**options)
