"""labs/04-training-step: what of a step's communication shows follows from its buckets' all-reduces by themselves."""

import pytest

from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.scenario.parsing import read_mapping

LAB = ROOT / "labs" / "04-training-step" / "scenario.yaml"
LAST_LAYER_US = 100  # of the backward pass, when the last but one bucket is full


@pytest.mark.slow
def test_exposed_time_is_what_the_last_buckets_take(tmp_path):
    tree = read_mapping(LAB, "scenario") | {"clock": "virtual"}
    steps = run_scenario(parse_scenario(tree), directory=tmp_path / "steps").training_steps
    tree["traffic"] = [
        {"collective": "allreduce", "algorithms": [step.algorithm], "sizes": ["32KiB", "256KiB", "800KiB"]}
        for step in steps[:3]
    ]
    alone = run_scenario(parse_scenario(tree), directory=tmp_path / "alone").collectives
    times_us = {(each.algorithm, each.size_bytes >> 10): each.time_ps / 1e6 for each in alone}
    for step in steps:
        exposed_us = (step.step_ps - step.compute_ps) / 1e6
        if step.buckets == 1:
            assert exposed_us == pytest.approx(times_us[step.algorithm, 800], rel=0.001)
        else:
            buckets_us = times_us[step.algorithm, 256] - LAST_LAYER_US + times_us[step.algorithm, 32]
            assert exposed_us == pytest.approx(buckets_us, rel=0.03)
