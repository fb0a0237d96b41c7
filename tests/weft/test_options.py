import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

from tests.refusals import refused
from weft import topologies
from weft.errors import BadInputError
from weft.run.fabric import Fabric
from weft.scenario import FabricKeywords, FabricOptions, Scenario
from weft.scenario.health import HealthSection
from weft.scenario.host import HostSection
from weft.scenario.keywords import FabricMark
from weft.scenario.valid_values import sections_in


def test_the_options_defaults_are_the_scenario_files():
    assert FabricOptions() == Scenario().options


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
def test_a_bad_option_is_reported_with_value_and_choices(option, value, words):
    with pytest.raises(BadInputError) as caught:
        Fabric(topologies.leaf_spine(), **{option: value})
    for word in words:
        assert word in str(caught.value)


def test_a_queue_that_holds_no_frame_is_refused():
    small = topologies.leaf_spine(queue_capacity_bytes=2000)
    with refused(BadInputError, problem="mtu of 4096"):
        Fabric(small, mtu_bytes=4096).__enter__()


def test_an_unknown_option_names_the_valid_ones():
    with pytest.raises(BadInputError) as caught:
        Fabric(topologies.leaf_spine(), dilution=10)
    assert "dilution" in str(caught.value)
    for name in FabricOptions.model_fields:
        assert name in str(caught.value)


def test_a_results_header_says_every_option():
    names = FabricOptions.model_fields.keys() - {"int_telemetry", "workers", "grpc"} | {"int"}
    telemetry = {"mode": "int-md", "collector": "h0"}
    changed = FabricOptions.model_validate(
        {
            "health": HealthSection(),
            "host": HostSection.model_validate({"layout": "server-2s"}),
            "link_retry": {"links": ["*<->*"]},
            "protocols": {"ll_latency": 1},
            "telemetry": telemetry,
            "trimming": {"classes": [3]},
        }
    )
    assert set(changed.as_dict()) == names
    # Where nobody uses them results are as they were.
    assert set(FabricOptions().as_dict()) == names - {
        "health",
        "host",
        "link_retry",
        "protocols",
        "telemetry",
        "trimming",
    }


def test_the_keywords_are_the_options() -> None:
    """Editors complete them and type checkers check them: the names, order and types of FabricOptions."""
    keywords, of_model = get_type_hints(FabricKeywords), get_type_hints(FabricOptions)
    assert list(keywords) == list(FabricOptions.model_fields)
    for name in keywords:
        taken = of_model[name] | None if sections_in(of_model[name]) else of_model[name]
        assert keywords[name] == (str | Path if name == "p4" else taken), name


def test_help_lists_every_option_with_its_default() -> None:
    parameters = inspect.signature(Fabric).parameters
    assert list(parameters) == [
        *("topology", "progress", "watcher", "processes", "runs_commands"),
        *FabricOptions.model_fields,
    ]
    assert parameters["dilation"].default == 1000.0


def test_the_mark_takes_the_parameters_of_a_leaf_spine_fabric_and_the_options() -> None:
    of_mark = get_type_hints(FabricMark)
    of_topology = inspect.signature(topologies.leaf_spine).parameters
    assert of_mark.keys() == {*of_topology, *FabricOptions.model_fields}
    kinds = {name: each.annotation for name, each in of_topology.items()}
    assert {name: str(FabricMark.__annotations__[name].__forward_arg__) for name in kinds} == kinds
