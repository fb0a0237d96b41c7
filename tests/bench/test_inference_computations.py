"""Figures that tests of the inference suite compute of their trials, and where they place their traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.bench.background import background, payload_share
from weft.bench.expert_dispatch import (
    CANONICAL,
    ROUTING_MODES,
    Dispatches,
    crossing_bytes,
    even_sizes,
    expert_ranks,
    least_time_ps,
    scale_up_ps,
)
from weft.bench.inference.prefill_queue_depth import bursts_of, peak_bytes_per_s
from weft.bench.profile import Profile
from weft.bench.serving import Demand, Serving, demand_of, serving_of
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.subject import Subject, subject_of
from weft.bench.suites import SUITES
from weft.bench.variants import Variant
from weft.jobs.models import MODELS
from weft.quantities.units import PS_PER_S

CLOS = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "400Gb/s"}
RAILS = {"planes": 1, "leaves": 4, "spines": 2, "hosts_per_leaf": 4, "ranks_per_host": 4, "rail_optimised": True}
SUITE = SUITES["inference"]


def subject(fabric: dict[str, Any], **keys: Any) -> Subject:
    return subject_of({"name": "fabric", "fabric": fabric, **keys}, "fabric")


def setup(tmp_path: Path, fabric: dict[str, Any] = CLOS, profile: Profile = Profile.SMOKE, **keys: Any) -> Setup:
    found = subject(fabric, **keys)
    return Setup(found, found, Variant(), profile, tmp_path, 1)


def test_every_test_of_the_draft_is_there_once() -> None:
    sections = [test.section for test in SUITE.tests]
    expected = {5: 4, 6: 4, 7: 4, 8: 4, 9: 4, 10: 4, 11: 3, 12: 3, 13: 3}
    assert sections == [f"{chapter}.{number}" for chapter, count in expected.items() for number in range(1, count + 1)]
    for values in (
        sections,
        [test.name for test in SUITE.tests],
        [test.title for test in SUITE.tests],
        [test.objective for test in SUITE.tests],
    ):
        assert len(set(values)) == len(values)


def test_the_sections_of_kpis_are_tests() -> None:
    sections = {test.section for test in SUITE.tests}
    assert all(kpi.sections and set(kpi.sections) <= sections for kpi in SUITE.kpis)
    assert len({kpi.name for kpi in SUITE.kpis}) == len(SUITE.kpis)


def test_ranks_of_a_host_are_at_its_rails() -> None:
    """Rank n is at leaf n // 4; a host's ranks are at all four leaves."""
    found = subject(RAILS)
    assert found.servers == ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
    assert found.server_of[6] == 2
    for source, destination in found.pairs:
        assert found.server_of[source] != found.server_of[destination]
        assert found.edges[source] == found.edges[destination]
    senders = found.senders_to(0, 9)
    assert senders is not None
    assert {found.server_of[rank] for rank in senders} == {1, 2, 3}
    assert all(found.edges[rank] != found.edges[0] for rank in senders)
    alone = subject(CLOS)
    assert alone.servers == ((0,), (1,), (2,), (3,))
    assert alone.pairs == ((0, 2), (1, 3), (2, 0), (3, 1))


@pytest.mark.parametrize("load", [0.25, 0.9])
def test_background_has_the_load_that_is_asked_for(tmp_path: Path, load: float) -> None:
    each = setup(tmp_path, mtu=4096, int=False)
    until_ps = 10**9
    flows = background(each, load, until_ps, message_bytes=1 << 16)
    sent = sum(flow.size_bytes for flow in flows) * 8 / payload_share(each)
    assert sent / (4 * 400e9 * until_ps / PS_PER_S) == pytest.approx(load, rel=0.02)
    assert max(flow.start_ps for flow in flows) < until_ps + until_ps // 100
    assert not background(each, 0, until_ps)
    assert {(flow.source, flow.destination) for flow in background(each, load, until_ps, (0, 2))} == {(1, 3), (3, 1)}


def test_sizes_of_a_dispatch_follow_the_formula() -> None:
    """The draft's appendix: M3 with a batch of 256 on 96 ranks sends about 76 KB to each."""
    assert CANONICAL["M3"].pair_bytes(256, 96) == 256 * 2 * 7168 * 2 // 96 == 76458
    assert even_sizes(CANONICAL["M1"], 128, 16).tolist() == [[128 * 2 * 4096 * 2 // 16] * 16] * 16


@pytest.mark.parametrize("mode", ROUTING_MODES)
def test_modes_of_routing_move_the_tokens_that_they_may(mode: str) -> None:
    model, tokens, ranks = CANONICAL["M2"], 32, 8
    sizes = ROUTING_MODES[mode](model, tokens, ranks, 1)
    copies = tokens * ranks * model.top_k
    sent = sizes.sum() // model.token_bytes
    assert (sizes >= 0).all()
    assert (sizes % model.token_bytes == 0).all()
    received = sizes.sum(axis=0) // model.token_bytes
    if mode == "top-k with token drop":
        # 8 experts of a rank take 1.25 times the mean each.
        assert copies // 2 < sent < copies
        assert received.max() <= 1.25 * copies / ranks
    else:
        assert sent == copies
    if mode == "expert choice":
        assert set(received) == {copies // ranks}
        assert len(set(sizes.sum(axis=1))) > 1
    if mode in ("standard top-k", "auxiliary loss top-k"):
        assert set(sizes.sum(axis=1) // model.token_bytes) == {tokens * model.top_k}
    assert (ROUTING_MODES[mode](model, tokens, ranks, 1) == sizes).all()


def test_the_auxiliary_loss_makes_experts_alike() -> None:
    spread = [
        np.ptp(ROUTING_MODES[mode](CANONICAL["M2"], 128, 8, 1).sum(axis=0))
        for mode in ("auxiliary loss top-k", "standard top-k")
    ]
    assert spread[0] < spread[1] / 2


def test_a_dispatch_crosses_the_fabric_between_hosts_only(tmp_path: Path) -> None:
    each = setup(tmp_path, RAILS)
    members = expert_ranks(each, 8)
    assert members == [0, 4, 8, 12, 1, 5, 9, 13]
    sizes = np.full((8, 8), 1000, np.int64)
    crossing = crossing_bytes(each, members, sizes)
    assert crossing.sum() == 8 * 4 * 1000
    groups = Dispatches(members, sizes, 3, 10**6).groups(each)
    assert groups.count == 3
    assert len(groups.flows) == 3 * 32
    assert sorted({flow.start_ps for flow in groups.flows}) == [0, 10**6, 2 * 10**6]
    scale_up = each.subject.fabric.scale_up
    assert scale_up is not None
    assert scale_up_ps(each, members, sizes) == 3000 * 8 * PS_PER_S // scale_up.rate_bps + scale_up.latency_ps
    assert least_time_ps(each, members, sizes) == 4000 * 8 * PS_PER_S // each.subject.rank_rate_bps


def test_a_demand_is_the_same_at_every_rate() -> None:
    slow = Demand(1.0, 200, (128, 8192), (10, 100), 3)
    fast = slow.at_rate(10.0)
    assert [row[1:] for row in slow.rows()] == [row[1:] for row in fast.rows()]
    for (before, *_), (after, *_) in zip(slow.rows(), fast.rows(), strict=True):
        assert after == pytest.approx(before / 10)
    prompts = np.array([prompt for _, prompt, _ in Demand(1.0, 20_000, (128, 8192), (1, 1), 1).rows()])
    # Zipf with alpha=1: as many in each octave; the mean is (8192 - 128) / ln 64.
    assert np.histogram(prompts, [128, 1024, 8193])[0][0] / len(prompts) == pytest.approx(0.5, abs=0.02)
    assert prompts.mean() == pytest.approx(8064 / np.log(64), rel=0.03)


@pytest.mark.parametrize(("fabric", "tensor"), [(CLOS, 1), (RAILS, 4)])
def test_a_part_of_the_model_has_the_proportions_of_the_whole(
    tmp_path: Path, fabric: dict[str, Any], tensor: int
) -> None:
    """With `full` an accelerator computes and sends as much as one of eight that serve all of Llama 3 70B."""
    full = serving_of(setup(tmp_path, fabric, Profile.FULL))
    assert (full.tensor, full.scale) == (tensor, 1.0)
    whole = Serving(full.subject, MODELS["70B"].layers, 8, (0,), (1,))
    assert full.transformer.vocabulary == MODELS["70B"].vocabulary * tensor // 8
    for tokens in (128, 4096):
        assert full.times.prefill_ps(tokens) == pytest.approx(whole.times.prefill_ps(tokens), rel=1e-3)
    assert full.times.iterations_ps(16, 16_000, 1)[0] == pytest.approx(
        whole.times.iterations_ps(16, 16_000, 1)[0], rel=1e-3
    )
    assert full.kv_bytes_per_token / tensor == whole.kv_bytes_per_token / 8 == 327_680 / 8
    part = serving_of(setup(tmp_path, fabric))
    assert part.times.prefill_ps(4096) == pytest.approx(part.scale * whole.times.prefill_ps(4096), rel=1e-2)
    assert part.slo_ms == (500 * part.scale, 50 * part.scale)


def test_prefill_and_decode_are_at_different_leaves(tmp_path: Path) -> None:
    found = serving_of(setup(tmp_path, {**CLOS, "hosts_per_leaf": 4}))
    assert found.ratio == "1P3D"
    assert found.ranks() == [0, 5, 6, 7]
    prefill, *decode = (found.subject.edges[rank] for rank in found.ranks())
    assert prefill not in decode
    rails = serving_of(setup(tmp_path, RAILS))
    assert rails.ranks()[:4] == [0, 4, 8, 12]
    with pytest.raises(NotApplicableError):
        serving_of(setup(tmp_path, {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 1}))


def test_requests_are_valid_scenarios(tmp_path: Path) -> None:
    each = setup(tmp_path)
    serving = serving_of(each)
    item = serving.item(each, demand_of(each), decode={"batching": "static"}, prefix_caching=True)
    assert item["inference"]["decode"] == {"instances": 3, "tensor": 1, "batch": 64, "batching": "static"}
    assert item["inference"]["prefix_caching"] is True
    rows = Path(item["inference"]["requests"]["file"]).read_text(encoding="utf-8").splitlines()
    assert len(rows) == demand_of(each).count + 1
    same = serving.item(each, demand_of(each))["inference"]["requests"]["file"]
    assert same == item["inference"]["requests"]["file"]


def test_bursts_are_transfers_that_overlap() -> None:
    """The second begins as the first is under way, the third as both have ended, the fourth as the third ends."""
    begins, ends, sizes = (np.array(each) for each in ([0, 5, 30, 40], [20, 15, 40, 50], [100, 40, 60, 80]))
    found = bursts_of(begins, ends, sizes)
    assert found.begin_ps.tolist() == [0, 30, 40]
    assert found.end_ps.tolist() == [20, 40, 50]
    assert found.size_bytes.tolist() == [140, 60, 80]
    assert found.gaps_ps.tolist() == [10, 0]
    # 100 B in 20 ps and 40 B in 10 ps at once.
    assert peak_bytes_per_s(begins, ends, sizes) == pytest.approx(9 * PS_PER_S)
