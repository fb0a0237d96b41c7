"""Mixtures of experts: which tokens go where, and what ranks send for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.jobs.accelerators import ACCELERATORS
from weft.jobs.expert_routing import Routing, routed_tokens
from weft.jobs.models import MODELS, Experts, Transformer
from weft.jobs.parallelism import Parallelism
from weft.jobs.traffic_bytes import sent_bytes
from weft.jobs.training_job import pipeline_job, training_job
from weft.jobs.training_plan import PlanError, Precisions, TrainingPlan
from weft.traffic.jobs import Kind
from weft.traffic.jobs.checks import check_job
from weft.traffic.jobs.ideal import ideal_times

MODEL = Transformer(
    layers=2,
    hidden=512,
    heads=8,
    feed_forward=1024,
    vocabulary=1000,
    sequence=256,
    experts=Experts(count=16, top_k=4, feed_forward=256),
)
FP8 = Precisions(dispatch="fp8")


def plan_of(routing: Routing, ranks_per_host: int = 4, model: Transformer = MODEL, **parallel) -> TrainingPlan:
    return TrainingPlan(
        model,
        Parallelism(**({"data": 8, "expert": 8} | parallel)),
        accelerator=ACCELERATORS["H800"],
        precisions=FP8,
        routing=routing,
        ranks_per_host=ranks_per_host,
    )


@given(
    hosts=st.integers(1, 4),
    local=st.integers(1, 4),
    each=st.integers(1, 3),
    top_k=st.integers(1, 6),
    limit=st.none() | st.integers(1, 4),
    skew=st.floats(0, 3),
    seed=st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_tokens_are_kept(hosts, local, each, top_k, limit, skew, seed):
    """Every copy comes to its expert's rank, over at most as many hosts as a token may use."""
    members, tokens = hosts * local, 20
    routing = Routing(hosts_per_token=limit, skew=skew)
    found = routed_tokens(routing, members * each, top_k, members, local, tokens, seed)
    most_hosts = min(hosts, limit or hosts)
    count = min(top_k, most_hosts * local * each)
    assert (found.copies.sum(axis=1) == tokens * count).all()
    assert found.to_hosts.max() <= tokens
    assert (found.to_hosts.sum(axis=1) <= tokens * min(most_hosts, count)).all()
    assert (found.to_hosts.sum(axis=1) >= tokens).all()
    # A relay has its own place; what it passes on within the host is all that the host's experts compute.
    assert (found.to_relays().sum(axis=1) == found.to_hosts.sum(axis=1)).all()
    assert (found.within_hosts().sum(axis=0) == found.copies.sum(axis=0)).all()
    places = np.arange(members)
    assert found.to_relays()[places[:, None] % local != places % local].sum() == 0
    assert found.within_hosts()[places[:, None] // local != places // local].sum() == 0
    assert sum(found.load(member) for member in range(members)) == pytest.approx(members)


def test_popular_experts_have_more_tokens():
    even = routed_tokens(Routing(popularity=[1.0] * 16), 16, 4, 8, 4, 4000, 1)
    assert [even.load(member) for member in range(8)] == pytest.approx([1.0] * 8, abs=0.03)
    given_popularity = [1.0] * 14 + [100.0] * 2
    skewed = routed_tokens(Routing(popularity=given_popularity), 16, 4, 8, 4, 4000, 1)
    # Nearly every token chooses both experts of the last rank: two of its four copies.
    assert skewed.load(7) == pytest.approx(8 / 2, rel=0.05)


def test_fewer_hosts_mean_fewer_tokens_on_the_network():
    """DeepSeek-V3 (section 2.1.2): 8 of 256 experts on at most 4 hosts; of 8 hosts unlimited routing meets 5.3.

    8·(1 - (7/8)^8) = 5.25, and a little more as no expert is chosen twice.
    """
    met = {}
    for limit in (4, None):
        routing = Routing(hosts_per_token=limit, popularity=[1.0] * 256)
        found = routed_tokens(routing, 256, 8, 64, 8, 200, 1)
        met[limit] = found.to_hosts.sum() / (64 * 200)
    assert met[None] == pytest.approx(8 * (1 - (7 / 8) ** 8), rel=0.02)
    assert met[4] == pytest.approx(4 * (1 - (3 / 4) ** 8), rel=0.02)


def test_bytes_of_balanced_routing_by_hosts():
    """Tokens × hosts over the network, tokens × top-k in the hosts; FP8 there and BF16 back, in both passes."""
    plan = plan_of(Routing(hosts_per_token=1))
    tokens, element = 256, 512 * (1 + 2)
    across, within = tokens * 1 * element // 2, tokens * 4 * element * 3 // 4
    layers, passes = 2, 2
    job = training_job(plan)
    assert sent_bytes(job, 5)["expert"] == layers * passes * (across + within)
    names = {group.name for group in job.groups}
    assert {"expert across hosts of rank 1", "expert within host of rank 4"} <= names
    ranks = {group.name: group.ranks for group in job.groups}
    assert ranks["expert across hosts of rank 1"] == (1, 5)
    assert ranks["expert within host of rank 4"] == (4, 5, 6, 7)


def test_bytes_of_deepseek_v3_by_hosts():
    model = MODELS["DeepSeek-V3"].model_copy(update={"layers": 4})
    plan = plan_of(Routing(hosts_per_token=4), 8, model, data=64, expert=64)
    tokens, element = 4096, 7168 * (1 + 2)
    expected = 2 * tokens * element * (4 * 7 / 8 + 8 * 7 / 8)
    assert sent_bytes(training_job(plan), 0)["expert"] == expected


@pytest.mark.parametrize("limit", [None, 1, 2])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"pipeline": 2, "data": 8, "expert": 4},
        {"tensor": 2, "sequence": True, "data": 4, "expert": 4},
    ],
    ids=["one stage", "two stages and replicas", "tensor"],
)
def test_skewed_jobs_send_what_was_drawn(limit, shape):
    plan = plan_of(Routing(hosts_per_token=limit, skew=1.5), **shape)
    job = training_job(plan)
    check_job(job)
    drawn = plan.drawn_tokens
    hops = [drawn.copies] if limit is None else [drawn.to_relays(), drawn.within_hosts()]
    there = sum(hop.sum() - np.trace(hop) for hop in hops)
    layers, passes = 2, 2
    groups = plan.parallel.rank_count // plan.parallel.pipeline // plan.parallel.expert
    assert sum(sent_bytes(job, rank)["expert"] for rank in range(len(job.parts))) == (
        layers * passes * there * groups * 512 * (1 + 2)
    )
    # The rank whose experts are the most popular computes most, and the others wait for it.
    busy = [int(part.operations.duration_ps[part.operations.of_kind(Kind.COMPUTE)].sum()) for part in job.parts]
    last_stage = busy[-len(busy) // plan.parallel.pipeline :]
    loads = [
        drawn.load(plan.parallel.expert_member(rank)) for rank in plan.parallel.stage_ranks(plan.parallel.pipeline - 1)
    ]
    assert int(np.argmax(last_stage)) == int(np.argmax(loads))
    ideal_ps = max(each.end_ps for each in ideal_times(pipeline_job(plan)))
    assert max(each.end_ps for each in ideal_times(job)) > ideal_ps


@pytest.mark.parametrize(
    ("routing", "shape", "key", "message"),
    [
        (Routing(popularity=[1, 2]), {}, "routing.popularity", {"valid": "of 16", "problem": "of 2 experts"}),
        (Routing(hosts_per_token=2), {"expert": 2, "data": 6, "ranks_per_host": 3}, "", ""),
        (
            Routing(hosts_per_token=2),
            {"expert": 8, "data": 8, "ranks_per_host": 3},
            "parallel.expert",
            {"valid": "a multiple of 3", "problem": "8, of which 3 share a host"},
        ),
        (
            Routing(skew=1.0),
            {"tensor": 2, "sequence": True, "data": 4, "expert": 4, "ranks_per_host": 5},
            "parallel.tensor",
            {"valid": "a divisor of 5", "problem": "of 5"},
        ),
    ],
)
def test_routing_that_does_not_fit(routing, shape, key, message):
    if not key:
        assert plan_of(routing, **shape).expert_hosts == 1
        return
    with refused(PlanError, **message) as problem:
        plan_of(routing, **shape)
    assert problem.value.key == key
