"""Inference before and after the fabric: requests, queues at prefill, decode from given arrivals, placement."""

import numpy as np
import pytest

from tests.refusals import refused
from weft.errors import BadInputError
from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.formulas.inference import prefill_layer
from weft.jobs.formulas.parameters import model_parameters
from weft.jobs.inference.decode import decode_times
from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.instances import DecodeInstances, PrefillInstances
from weft.jobs.inference.placement import check_hosts, default_ranks
from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.prefill import prefill_schedule, prefill_times
from weft.jobs.inference.request_files import nanoseconds, read_requests
from weft.jobs.inference.requests import (
    LONGEST_PS,
    Requests,
    SharedPrefixes,
    TokenCounts,
    poisson_requests,
    requests_at,
)
from weft.jobs.inference.transfer_job import transfer_job
from weft.jobs.models import MODELS, Transformer
from weft.jobs.training_plan import PlanError

MODEL = Transformer(layers=2, hidden=512, heads=8, feed_forward=1024, vocabulary=1000, sequence=64)
MS = 10**9


def requests(*rows: tuple[int, int, int]) -> Requests:
    return Requests(*np.array(rows, np.int64).T)


def decode_of(rows, handed_over_ps, **decode):
    plan = InferencePlan(MODEL, requests(*rows), decode=DecodeInstances(**decode))
    times = decode_times(plan, np.zeros(len(rows), np.int64), np.array(handed_over_ps, np.int64))
    return InstanceTimes(MODEL, plan.decode, "bf16", 2), times


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_queues_at_prefill_are_those_of_an_md1_queue(load):
    """Pollaczek and Khinchine: load/(2·(1 - load)) services of equal length.

    Waits of neighbours are correlated; over 200,000 requests the mean's standard error is about 0.5 % at a load of 0.3
    and 1.5 % at 0.7, so 5 % is more than three of them.
    """
    prompt, output = TokenCounts(median=256), TokenCounts(median=1)
    one = InferencePlan(MODEL, poisson_requests(1, 1, prompt, output, 1))
    service_ps = prefill_times(one).prefill_ps(256)
    plan = InferencePlan(MODEL, poisson_requests(load / service_ps * 1e12, 200_000, prompt, output, 7))
    schedule = prefill_schedule(plan)
    assert (schedule.end_ps - schedule.start_ps == service_ps).all()
    waited_ps = (schedule.start_ps - plan.requests.arrival_ps).mean()
    assert waited_ps == pytest.approx(load / (2 * (1 - load)) * service_ps, rel=0.05)


def test_assignments():
    same = requests(*[(0, 64, 1)] * 6)
    instances = {"prefill": PrefillInstances(instances=3), "decode": DecodeInstances(instances=2)}
    least = prefill_schedule(InferencePlan(MODEL, same, **instances))
    assert least.prefill.tolist() == [0, 1, 2, 0, 1, 2]
    assert least.decode.tolist() == [0, 1] * 3
    unequal = requests((0, 1000, 1), (0, 10, 1), (0, 10, 1), (0, 10, 1))
    names = {"prefill_assignment": "round-robin", "decode_assignment": "round-robin"}
    for chosen, expected in ((names, [0, 1, 0, 1]), ({}, [0, 1, 1, 1])):
        found = prefill_schedule(
            InferencePlan(MODEL, unequal, PrefillInstances(instances=2), instances["decode"], **chosen)
        )
        assert found.prefill.tolist() == found.decode.tolist() == expected
    with refused(PlanError, problem="no assignment 'random'; valid"):
        InferencePlan(MODEL, same, decode_assignment="random")


def test_a_lone_output_takes_an_iteration_a_token():
    times, found = decode_of([(0, 100, 5)], [3 * MS])
    steps = times.iterations_ps(1, 100, 5)
    assert found.admitted_ps.tolist() == [3 * MS]
    assert found.first_token_ps.tolist() == [3 * MS + steps[0]]
    assert found.end_ps.tolist() == [3 * MS + steps.sum()]
    assert (found.busy_ps.tolist(), found.token_count.tolist(), found.iteration_count.tolist()) == (
        [steps.sum()],
        [5],
        [5],
    )


def test_requests_join_and_leave_between_iterations():
    """The second comes during the first's second iteration and joins at its end; contexts are 12 and 30 tokens then."""
    times, found = decode_of([(0, 10, 4), (0, 30, 1)], [0, times_of(10, 1) + 1])
    alone = times.iterations_ps(1, 10, 2)
    both = times.iterations_ps(2, 42, 1)
    last = times.iterations_ps(1, 13, 1)
    joined = alone.sum()
    assert found.admitted_ps.tolist() == [0, joined]
    assert found.first_token_ps.tolist() == [alone[0], joined + both[0]]
    assert found.end_ps.tolist() == [joined + both[0] + last[0], joined + both[0]]
    assert found.token_count.tolist() == [5]


def times_of(context: int, count: int) -> int:
    return int(InstanceTimes(MODEL, DecodeInstances(), "bf16", 2).iterations_ps(1, context, count).sum())


def test_each_token_after_the_first_comes_an_iteration_behind_the_one_before():
    """Of two requests of 4 and 1 tokens the first has three gaps; one of their iterations is the second's first."""
    _, found = decode_of([(0, 10, 4), (0, 30, 1)], [0, times_of(10, 1) + 1])
    assert found.token_gap_count.tolist() == [0, 1, 1, 1]
    assert (found.token_gap_ps * found.token_gap_count).sum() == found.end_ps[0] - found.first_token_ps[0]


def test_a_static_batch_is_done_before_the_next_begins():
    """The second and third come during the first's iterations and join once all are done."""
    rows, arrivals = [(0, 10, 4), (0, 30, 1), (0, 30, 3)], [0, 1, 2]
    _, found = decode_of(rows, arrivals, batching="static")
    assert found.admitted_ps.tolist() == [0, found.end_ps[0], found.end_ps[0]]
    _, continuous = decode_of(rows, arrivals)
    assert (continuous.admitted_ps[1:] < found.admitted_ps[1:]).all()


PREFIX = SharedPrefixes(share=1, tokens=300)
TWO = {"prefill": PrefillInstances(instances=2), "decode": DecodeInstances(instances=2)}


def prefixed(rows, **others):
    return prefill_schedule(InferencePlan(MODEL, PREFIX.given_to(requests(*rows), 1), prefix_caching=True, **others))


def test_a_prefix_is_computed_and_sent_once_to_each_instance():
    """The requests take both instances in turn; the fourth is computed when the second has been, on the same one."""
    names = {"prefill_assignment": "round-robin", "decode_assignment": "round-robin"}
    found = prefixed([(0, 400, 1), (0, 500, 1), (MS, 400, 1), (MS, 200, 1)], **TWO, **names)
    assert found.cached_tokens.tolist() == found.held_tokens.tolist() == [0, 0, 300, 300]
    assert found.provider.tolist() == [0, 1, 0, 1]
    times = prefill_times(InferencePlan(MODEL, requests((0, 1, 1))))
    took_ps = (found.end_ps - found.start_ps).tolist()
    # A prompt shorter than the prefix has one token more than that.
    assert took_ps == [
        times.prefill_ps(400),
        times.prefill_ps(500),
        times.prefill_ps(100, 300),
        times.prefill_ps(1, 300),
    ]
    uncached = prefill_schedule(InferencePlan(MODEL, PREFIX.given_to(requests((0, 400, 1), (MS, 400, 1)), 1)))
    assert not uncached.cached_tokens.any()
    assert uncached.provider.tolist() == [0, 1]


def test_a_prefix_that_has_not_been_computed_is_not_held():
    """Both prompts are computed at once, on two instances: each sends its whole cache to the one decode instance."""
    found = prefixed([(0, 400, 1), (0, 400, 1)], prefill=TWO["prefill"])
    assert found.prefill.tolist() == [0, 1]
    assert found.held_tokens.tolist() == [0, 0]


def test_prefix_aware_assignment_goes_to_the_prefix_unless_that_takes_longer():
    aware = {"prefill_assignment": "prefix-aware", "decode_assignment": "prefix-aware"}
    apart = [(0, 400, 1), (MS, 400, 1), (2 * MS, 400, 1)]
    assert prefixed(apart, **TWO, **aware).prefill.tolist() == [0, 0, 0]
    # At once, the second would wait for the first's whole prompt and computes the prefix itself.
    assert prefixed([(0, 400, 1), (0, 400, 1)], **TWO, **aware).prefill.tolist() == [0, 1]


def test_tokens_behind_a_prefix_attend_to_it():
    """Operations of a prompt in two parts are those of the whole."""
    whole = prefill_layer(MODEL, 0, 400, 1).flops
    assert prefill_layer(MODEL, 0, 300, 1).flops + prefill_layer(MODEL, 0, 100, 1, cached=300).flops == whole


def test_prefixes_are_drawn_from_the_seed():
    shared = SharedPrefixes(share=0.25, tokens=100, count=3)
    many = poisson_requests(50, 20_000, TokenCounts(median=50), TokenCounts(median=2), 3)
    found = shared.given_to(many, 3)
    has_one = found.prefix >= 0
    assert has_one.mean() == pytest.approx(0.25, abs=0.02)
    assert set(found.prefix[has_one]) == {0, 1, 2}
    assert set(found.prompt_tokens[has_one]) == {101}
    assert set(found.prompt_tokens[~has_one]) == {50}


def test_a_full_batch_makes_requests_queue_in_the_order_of_their_caches():
    _, found = decode_of([(0, 10, 3), (0, 10, 3), (0, 10, 3)], [0, 2, 1], batch=1)
    assert found.admitted_ps.tolist() == [0, found.end_ps[2], found.end_ps[0]]


def test_full_memory_makes_requests_queue():
    """Room for 100 tokens: two requests of 50 at their longest, not three."""
    weights_and_caches = 2 * model_parameters(MODEL) + 100 * 2 * 2 * 512 * 2
    accelerator = ACCELERATORS["H100"].model_copy(update={"memory": weights_and_caches + 1000})
    rows = [(0, 40, 10), (0, 45, 5), (0, 40, 10)]
    _, found = decode_of(rows, [0, 0, 0], accelerator=accelerator, memory_share=1.0)
    assert found.admitted_ps.tolist() == [0, 0, found.end_ps[1]]
    _, roomy = decode_of(rows, [0, 0, 0])
    assert roomy.admitted_ps.tolist() == [0, 0, 0]
    with refused(
        PlanError,
        valid="more memory, a larger decode.tensor, or shorter requests",
        problem="101 tokens; it may use 12",
    ):
        decode_of([(0, 100, 1)], [0], accelerator=accelerator, memory_share=1.0)


def test_poisson_requests_follow_rate_medians_and_seed():
    prompt, output = TokenCounts(median=500, sigma=1, least=20, most=4000), TokenCounts(median=20)
    found = poisson_requests(50, 20_000, prompt, output, 3)
    again, other = (poisson_requests(50, 20_000, prompt, output, seed) for seed in (3, 4))
    assert (found.arrival_ps == again.arrival_ps).all()
    assert (found.prompt_tokens == again.prompt_tokens).all()
    assert (found.arrival_ps != other.arrival_ps).any()
    intervals = np.diff(found.arrival_ps)
    assert intervals.mean() == pytest.approx(1e12 / 50, rel=0.03)
    assert intervals.std() == pytest.approx(intervals.mean(), rel=0.03)
    assert np.median(found.prompt_tokens) == pytest.approx(500, rel=0.03)
    assert (found.prompt_tokens.min(), found.prompt_tokens.max()) == (20, 4000)
    assert set(found.output_tokens) == {20}
    # What is drawn for one column does not depend on the others.
    assert (poisson_requests(50, 20_000, prompt, prompt, 3).prompt_tokens == found.prompt_tokens).all()
    assert requests_at([5, 0, 3], prompt, output, 1).arrival_ps.tolist() == [0, 3, 5]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(5, 1, 1), (4, 1, 1)], "not in the order"),
        ([(0, 0, 1)], r"prompt_tokens of 0 to 0 \(valid: 1 to"),
        ([(0, 1, 1 << 21)], "output_tokens"),
        ([(LONGEST_PS + 1, 1, 1)], "arrives at"),
    ],
)
def test_requests_that_cannot_be(rows, message):
    with pytest.raises(ValueError, match=message):
        requests(*rows)


def test_prompts_that_take_too_long_are_refused():
    slow = ACCELERATORS["H100"].model_copy(update={"peak_tflops": {"bf16": 1e-12}})
    plan = InferencePlan(MODEL, requests((0, 1000, 1)), PrefillInstances(accelerator=slow))
    with refused(PlanError, valid="up to 13.344 d", problem="prompts are computed for"):
        prefill_schedule(plan)
    with refused(PlanError, valid="up to that", problem="outputs take longer than"):
        decode_of([(0, 1000, 10)], [0], accelerator=slow)


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        (
            {"prefill": PrefillInstances(tensor=3)},
            "prefill.tensor",
            {"valid": "1, 2, 4, 8", "problem": "3 does not divide 8 heads"},
        ),
        (
            {"decode": DecodeInstances(tensor=16)},
            "decode.tensor",
            {"valid": "1, 2, 4, 8", "problem": "16 does not divide"},
        ),
        (
            {"precision": "fp8", "decode": DecodeInstances(accelerator=ACCELERATORS["A100"])},
            "precision",
            {"valid": "bf16, fp16, tf32, fp32", "problem": "fp8, which the accelerator of"},
        ),
        (
            {"model": MODELS["70B"]},
            "prefill.accelerator",
            {
                "valid": "more memory, a larger prefill.tensor, or shorter requests",
                "problem": "131.4 GiB for weights",
            },
        ),
        (
            {"requests": requests(*[(0, 9, 9)] * 700_000), "kv_transfer": "by-layer"},
            "requests",
            {"valid": "up to 625,000 requests", "problem": "700,000 requests of 8"},
        ),
    ],
)
def test_plans_whose_parts_do_not_fit(changes, key, message):
    with refused(PlanError, **message) as problem:
        InferencePlan(**({"model": MODEL, "requests": requests((0, 9, 9))} | changes))
    assert problem.value.key == key


def test_more_messages_than_ranks_may_have_are_refused():
    many = requests(*[(0, 1, 1)] * 530_000)
    plan = InferencePlan(MODEL, many, kv_transfer="by-layer")
    with refused(PlanError, valid="up to 524288", problem="530000 between two instances"):
        transfer_job(plan, prefill_schedule(plan))


def test_azures_format(tmp_path):
    path = tmp_path / "azure.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:04.0319600,3180,8\r\n"
        "2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 20:17:05.009930+02:00,7,1\r\n"
    )
    found = read_requests(path, 2)
    assert found.arrival_ps.tolist() == [0, 52 * MS]
    assert (found.prompt_tokens.tolist(), found.output_tokens.tolist()) == ([4808, 3180], [10, 8])
    assert read_requests(path).arrival_ps.tolist() == [0, 52 * MS, 1_029_970 * 10**6]
    assert nanoseconds("2024-05-10T02:00:00+02:00") == nanoseconds("2024-05-10 00:00:00Z") == 1715299200 * 10**9
    assert nanoseconds("12.0000000019") == 12 * 10**9 + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            {
                "place": "requests.csv, line 1",
                "valid": "TIMESTAMP, ContextTokens, GeneratedTokens; optional: ",
            },
        ),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", {"place": "requests.csv", "valid": "1 to 1,000,000"}),
        (
            "TIMESTAMP,ContextTokens\n0,1\n",
            {
                "place": "requests.csv, line 1",
                "valid": "TIMESTAMP, ContextTokens, GeneratedTokens; optional: ",
            },
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n0,1,0\n",
            {"place": "requests.csv, line 2: GeneratedTokens", "valid": "1 to 1048576"},
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n0,1,1\nnoon,1,1\n",
            {"place": "requests.csv, line 3: TIMESTAMP", "valid": "2023-11-16 18:17:03.9799600, or seconds"},
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:17:03,1,1\n",
            {"place": "requests.csv, line 2: TIMESTAMP", "problem": "not a valid date and time"},
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n0,1,1\n999999999999,1,1\n",
            {"place": "requests.csv", "valid": "up to 1152921 s"},
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n0,1\n",
            {"place": "requests.csv, line 2", "valid": "3, as line 1"},
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n-1,1,1\n",
            {"place": "requests.csv, line 2: TIMESTAMP", "valid": "2023-11-16 18:17:03.9799600, or seconds"},
        ),
    ],
)
def test_files_that_are_no_requests(tmp_path, text, message):
    path = tmp_path / "requests.csv"
    path.write_text(text)
    with refused(BadInputError, **message) as problem:
        read_requests(path)
    assert str(path) in str(problem.value)
    with refused(BadInputError, place="none.csv", problem="cannot be read"):
        read_requests(tmp_path / "none.csv")


def test_instances_fill_hosts():
    rails = [0, 1] * 4  # rank 0, 2, 4, 6 of host 0
    prefill, decode = PrefillInstances(instances=1, tensor=2), DecodeInstances(instances=2, tensor=2)
    assert default_ranks(prefill, decode, rails) == (0, 2, 1, 3, 5, 7)
    assert default_ranks(PrefillInstances(), DecodeInstances(), [0, 1, 2]) == (0, 1)
    check_hosts(prefill, decode, (0, 2, 4, 6, 1, 3), rails)
    with refused(PlanError, valid="one host", problem="decode instance 1 has ranks 6"):
        check_hosts(prefill, decode, (0, 2, 3, 5, 6, 1), rails)
    with refused(PlanError, problem="3 ranks in hosts of 4 (valid on"):
        default_ranks(PrefillInstances(tensor=3), decode, rails)
    with refused(PlanError, problem="5 behind 1 prefill instances"):
        default_ranks(prefill, DecodeInstances(instances=5, tensor=2), rails)
