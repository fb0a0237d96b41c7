import dataclasses

import pytest

from weft import topologies
from weft.errors import BadInputError
from weft.run.fabric import Fabric
from weft.scenario import Scenario
from weft.scenario.options import FabricOptions


def test_the_options_defaults_are_the_scenario_files():
    assert FabricOptions() == FabricOptions.of(Scenario())


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("mtu_bytes", 1000, ["mtu", "1000", "256, 512, 1024, 2048 or 4096"]),
        ("dilation", 0.5, ["dilation", "0.5", "valid: 1 to 1,000,000"]),
        ("target", "tofino", ["target", "tofino", "'embedded' or 'bmv2'"]),
        ("slots", 0, ["slots", "0"]),
        ("seed", -1, ["seed", "-1"]),
    ],
)
def test_a_bad_option_is_told_with_value_and_choices(option, value, words):
    with pytest.raises(BadInputError) as caught:
        Fabric(topologies.leaf_spine(), **{option: value})
    for word in words:
        assert word in str(caught.value)


def test_a_queue_that_holds_no_frame_is_refused():
    small = topologies.leaf_spine(queue_capacity_bytes=2000)
    with pytest.raises(BadInputError, match=r"2000 B.*4220 B.*mtu of 4096"):
        Fabric(small, mtu_bytes=4096).__enter__()


def test_an_unknown_option_names_the_valid_ones():
    with pytest.raises(BadInputError) as caught:
        Fabric(topologies.leaf_spine(), dilution=10)
    assert "dilution" in str(caught.value)
    for field in dataclasses.fields(FabricOptions):
        assert field.name in str(caught.value)


def test_a_results_header_says_every_option():
    names = {field.name for field in dataclasses.fields(FabricOptions)} - {"int_telemetry", "workers", "grpc"}
    assert set(FabricOptions().as_dict()) == names | {"int"}
