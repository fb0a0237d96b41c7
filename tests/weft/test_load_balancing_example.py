"""What docs/load-balancing.md says of 1,024 hosts holds for the sixteen of its example, too."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from weft.paths import ROOT
from weft.results.flows import FlowsResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

EXAMPLE = yaml.safe_load((ROOT / "examples" / "load_balancing.yaml").read_text(encoding="utf-8"))
LINE_PS = 2_000_000 * 8 * 10
"""What 2 MB take at 100 Gb/s, without headers."""


@cache
def permuted(mode: str, retransmission: str = "selective-repeat", queue_pairs: int = 1) -> FlowsResult:
    scenario: dict[str, Any] = EXAMPLE["scenario"]
    window = f"{400 // queue_pairs}KB"
    transport = {"retransmission": retransmission, "parameters": {"window": window}}
    item = scenario["traffic"][0] | {"queue_pairs": queue_pairs}
    changed = {
        "clock": "virtual",
        "routing": {"load_balancing": mode},
        "transport": scenario["transport"] | transport,
        "traffic": [item],
    }
    (flows,) = run_scenario(parse_scenario(scenario | changed)).flows
    return flows


def test_the_example_has_every_mode() -> None:
    modes = EXAMPLE["grid"]["routing.load_balancing"]
    assert modes == ["flow", "flow_and_queue_pair", "flowlet", "round_robin", "random", "adaptive"]


@pytest.mark.parametrize("mode", ["round_robin", "adaptive"])
def test_taking_turns_fills_the_line(mode: str) -> None:
    """But for headers (1.5 %), a round trip of 16 us and what waits."""
    assert permuted(mode).mean_completion_ps < 1.1 * LINE_PS + 5_000_000
    assert permuted(mode).retransmissions == 0


def test_random_spraying_is_between_turns_and_flows() -> None:
    times_ps = [permuted(mode).mean_completion_ps for mode in ("round_robin", "random", "flow")]
    assert times_ps == sorted(times_ps)
    assert times_ps[1] < 1.1 * times_ps[0]


def test_more_queue_pairs_spread_a_flow_better() -> None:
    one, four, sixteen = (
        permuted("flow_and_queue_pair", queue_pairs=count).largest_completion_ps for count in (1, 4, 16)
    )
    assert permuted("adaptive").largest_completion_ps < min(four, sixteen) < max(four, sixteen) < one


@pytest.mark.parametrize("mode", ["round_robin", "random"])
def test_go_back_n_repeats_much_of_what_is_sprayed(mode: str) -> None:
    sprayed, flow = permuted(mode, "go-back-n"), permuted("flow", "go-back-n")
    packets = 16 * -(-2_000_000 // 4096)
    assert flow.retransmissions == 0
    assert sprayed.retransmissions > packets / 2
    assert sprayed.mean_completion_ps > 1.5 * permuted(mode).mean_completion_ps


def test_adaptive_by_flowlets_keeps_the_order_that_go_back_n_needs() -> None:
    assert permuted("adaptive", "go-back-n").retransmissions == 0
