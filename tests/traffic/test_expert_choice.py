"""Where the tokens of a mixture of experts go, and over which channels."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.refusals import refused
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.collectives.moe_dispatch import MoeDispatch
from weft.traffic.data_types import DataType
from weft.traffic.expert_choice import ExpertChoice
from weft.traffic.schedule_nodes import SCALE_UP, Write
from weft.traffic.schedules import CollectiveSpec

UNLIMITED = ExpertChoice(tokens=16, top_k=4, hosts_per_token=2, skew=0.0, capacity=64)


def spec_of(choice, ranks_per_host=4, hosts=8, stride=1, token_elements=2):
    return CollectiveSpec(
        ranks_per_host * hosts,
        choice.tokens * token_elements * choice.data_per_input,
        DataType.INT32,
        Operation.SUM,
        (1,),
        ranks_per_host=ranks_per_host,
        rank_stride=stride,
    )


def experts_of_tokens(choice, spec):
    experts = {}
    for landed in choice.dispatch(spec).received:
        for each in landed:
            experts.setdefault((each.source, each.token), []).append(each.to)
    return experts


@pytest.mark.parametrize("stride", [1, 4, 8])
def test_every_token_goes_to_distinct_experts_on_few_hosts(stride):
    spec = spec_of(UNLIMITED, stride=stride)
    experts = experts_of_tokens(UNLIMITED, spec)
    assert set(experts) == {(rank, token) for rank in range(32) for token in range(16)}
    for ranks in experts.values():
        assert len(set(ranks)) == len(ranks) == 4
        assert 1 <= len({spec.position(rank) // 4 for rank in ranks}) <= 2


def test_popular_experts_get_more_the_more_skew_there_is():
    most = []
    for skew in (0.0, 0.5, 1.0):
        choice = replace(UNLIMITED, skew=skew)
        received = choice.dispatch(spec_of(choice)).received
        most.append(max(map(len, received)) / (16 * 4))
    assert most[0] < 1.5 < most[1] < most[2]


def test_an_expert_takes_no_more_than_its_capacity():
    choice = replace(UNLIMITED, skew=1.5, capacity=1)
    spec = spec_of(choice)
    dispatch = choice.dispatch(spec)
    results = [len(dispatch.result(rank)) for rank in range(32)]
    assert max(results) == spec.element_count
    assert sum(results) < 32 * spec.element_count
    for rank, landed in enumerate(dispatch.received):
        ends = [0] + [each.begin + dispatch.length(each) for each in landed]
        assert [each.begin for each in landed] == ends[:-1]
        assert {each.to for each in landed} <= {rank}


def test_a_token_goes_once_to_each_host_along_the_rail_and_fans_out_inside():
    spec = spec_of(UNLIMITED, stride=8)
    collective = COLLECTIVE_KINDS["moe_dispatch"]
    assert isinstance(collective, MoeDispatch)

    class Mine(MoeDispatch):
        name = "mine"
        choice = UNLIMITED

    sent = Counter()
    for algorithm in ("direct", "hierarchical"):
        for rank in range(32):
            for node in Mine().schedule(algorithm, spec, rank).nodes:
                if isinstance(node, Write):
                    inside = node.channel.label == SCALE_UP
                    assert inside == spec.share_a_host(rank, node.channel.peer)
                    assert (
                        inside
                        or algorithm == "direct"
                        or spec.position(rank) % 4 == spec.position(node.channel.peer) % 4
                    )
                    sent[algorithm, inside] += 1
    experts = experts_of_tokens(UNLIMITED, spec)
    hosts = {key: {spec.position(rank) // 4 for rank in ranks} for key, ranks in experts.items()}
    others = sum(len(at - {spec.position(source) // 4}) for (source, _), at in hosts.items())
    assert sent["hierarchical", False] == others < sent["direct", False]


def test_wrong_numbers_are_refused():
    with refused(ValueError, valid="skew of 0 or more, the others 1 or more", problem="skew"):
        ExpertChoice(top_k=0)
    with pytest.raises(ValueError, match="valid: a multiple of 16"):
        COLLECTIVE_KINDS["moe_dispatch"].check("direct", replace(spec_of(ExpertChoice()), element_count=17))


def test_the_result_is_the_tokens_in_order_of_their_senders():
    spec = spec_of(UNLIMITED)
    inputs = [np.arange(spec.element_count, dtype=np.int32) + 100_000 * rank for rank in range(32)]

    class Mine(MoeDispatch):
        name = "mine"
        choice = UNLIMITED

    (result,) = Mine().terms(spec, inputs, 5)
    part = Mine().result_part(spec, 5)
    senders = result[part.start : part.stop] // 100_000
    assert len(part) > 0
    assert np.all(np.diff(senders) >= 0)
    assert not result[part.stop :].any()
