"""Loss and corruption of chosen links, from scenarios and from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.clocks.switch_configs import switch_configs
from weft.errors import BadInputError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import FaultsOfLinks, FaultsSection, LinkChoice, parse_scenario
from weft.scenario.options import FabricOptions
from weft.topologies import Endpoint

FABRIC = {
    "planes": 1,
    "leaves": 2,
    "spines": 2,
    "hosts_per_leaf": 2,
    "host_rate": "100Gbps",
    "delay": "500ns",
}
TRAFFIC = [{"permutation": "256KiB"}, {"collective": "allreduce", "sizes": ["32KiB"]}]


def run(**keys: Any) -> RunResult:
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": TRAFFIC, **keys}))


def struck(result: RunResult) -> set[str]:
    return {each.link for each in result.link_faults}


def test_only_the_chosen_links_lose() -> None:
    every_pair = [{"collective": "alltoall", "sizes": ["256KiB"], "repetitions": 4}]
    both = run(faults={"links": [{"link": "p0l0<->p0s*", "loss": 0.02}]}, traffic=every_pair)
    assert both.ok
    assert struck(both) == {"p0l0->p0s0", "p0l0->p0s1", "p0s0->p0l0", "p0s1->p0l0"}
    assert sum(each.lost_packets for each in both.link_faults) == both.planes[0].injected_losses
    assert both.retransmissions > 0
    assert struck(run(faults={"links": [{"link": "h0->p0l0", "loss": 0.1}]})) == {"h0->p0l0"}
    assert struck(run()) == set()


def test_corruption_is_a_cause_of_its_own() -> None:
    result = run(faults={"loss": 0.005, "links": [{"link": "*->p0l1", "bit_error_rate": 5e-6}]})
    assert result.ok
    plane = result.planes[0]
    assert plane.injected_losses == sum(each.lost_packets for each in result.link_faults)
    assert plane.corrupted_packets == sum(each.corrupted_packets for each in result.link_faults)
    assert {each.link for each in result.link_faults if each.corrupted_packets} <= {
        "h2->p0l1", "h3->p0l1", "p0s0->p0l1", "p0s1->p0l1"
    }  # fmt: skip
    assert plane.corrupted_packets
    assert plane.injected_losses
    assert {each["link"] for each in result.as_dict()["link_faults"]} == struck(result)


def test_the_last_item_that_names_a_link_counts_and_keeps_what_it_does_not_say() -> None:
    faults = FaultsSection.model_validate(
        {
            "loss": 0.1,
            "duplicate": 0.2,
            "links": [
                {"link": "p0l0<->p0s*", "loss": 0.3, "bit_error_rate": 1e-6},
                {"link": "p0l0->p0s1", "loss": 0.0},
            ],
        }
    )
    host, leaf, spine = Endpoint("h0", 0), Endpoint("p0l0", 1), Endpoint("p0s1", 1)
    assert (faults.on(host, leaf).loss, faults.on(host, leaf).duplicate) == (0.1, 0.2)
    assert (faults.on(spine, leaf).loss, faults.on(spine, leaf).bit_error_rate) == (0.3, 1e-6)
    last = faults.on(leaf, spine)
    assert (last.loss, last.duplicate, last.bit_error_rate) == (0.0, 0.2, 1e-6)


def test_switches_are_notified_of_each_direction() -> None:
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    faults = FaultsSection(links=[FaultsOfLinks(link="h1->p0l1", loss=0.25)])
    losses = {
        (config.name, port.port): (port.faults.loss, port.uplink_faults.loss)
        for config in switch_configs(fabric, FabricOptions(faults=faults), frame_bytes=1300)
        for port in config.ports
    }
    assert {key: value for key, value in losses.items() if any(value)} == {("p0l1", 1): (0.0, 0.25)}


@pytest.mark.parametrize(
    ("text", "taken", "left"),
    [
        ("p0l0<->p0s1", [("p0l0", "p0s1"), ("p0s1", "p0l0")], [("p0l0", "p0s0"), ("p0l1", "p0s1")]),
        ("p0l0->p0s1", [("p0l0", "p0s1")], [("p0s1", "p0l0")]),
        (" h* -> * ", [("h0", "p0l0"), ("h12", "p1l3")], [("p0l0", "h0")]),
        ("p?l0<->p?s[01]", [("p1s1", "p1l0")], [("p1s2", "p1l0")]),
        ("p0l0:1<->p0s1", [("p0l0", "p0s1")], [("p0l1", "p0s1")]),
        ("p0l0:2<->p0s1", [], [("p0l0", "p0s1"), ("p0s1", "p0l0")]),
    ],
)
def test_names_of_links(text: str, taken: list[tuple[str, str]], left: list[tuple[str, str]]) -> None:
    choice = LinkChoice.parse(text)
    assert all(choice.takes(Endpoint(a, 1), Endpoint(b, 1)) for a, b in taken)
    assert not any(choice.takes(Endpoint(a, 1), Endpoint(b, 1)) for a, b in left)


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"links": [{"link": "p0l0/p0s0"}]}, ["faults.links[0].link", "is not a link", "<->"]),
        ({"links": [{"loss": 0.1}]}, ["faults.links[0].link", "is missing", "a link, two nodes"]),
        ({"links": [{"link": "a<->b", "los": 0.1}]}, ["unknown key 'faults.links[0].los'"]),
        ({"links": [{"link": "a<->b", "loss": 1.0}]}, ["faults.links[0].loss", "below 1"]),
        ({"bit_error_rate": -1e-9}, ["faults.bit_error_rate", "valid: 0 to below 1"]),
        (
            {"links": [{"link": "a<->b", "extra_delay": "1us"}]},
            ["faults.links[0]", "delay_probability (0)", "extra_delay (1000000 ps)", "go together"],
        ),
    ],
)
def test_errors_name_the_key_and_what_is_valid(faults: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"faults": faults})
    for word in words:
        assert word in str(caught.value)


def test_a_link_that_the_fabric_lacks_is_refused_before_anything_is_built() -> None:
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    faults = FaultsSection(links=[FaultsOfLinks(link="p0l0<->p0l1", loss=0.1)])
    with refused(BadInputError, place="faults.links[0].link", valid="h0<->p0l0, p0l0<->p0s0, h1<->p0l1, p0l1<->p0s0"):
        Fabric(fabric, clock="virtual", faults=faults)


def test_results_say_what_the_faults_were() -> None:
    options = FabricOptions(faults=FaultsSection(links=[FaultsOfLinks(link="h0->p0l0", loss=0.1)]))
    (link,) = json.loads(json.dumps(options.as_dict()))["faults"]["links"]
    assert (link["link"], link["loss"], link["bit_error_rate"]) == ("h0->p0l0", 0.1, None)


def test_drops_are_recorded_with_their_cause_and_place() -> None:
    result = run(
        faults={"links": [{"link": "p0l0->p0s*", "loss": 0.02, "bit_error_rate": 1e-6}]},
        observe={"drops": True},
    )
    drops = result.observations.tables["drops"]
    reasons, places = list(drops["reason"].texts()), list(drops["place"].texts())
    assert reasons.count("link lost") == result.planes[0].injected_losses
    assert reasons.count("link corrupted") == result.planes[0].corrupted_packets
    assert {place.split(":")[0] for place in places} == {"p0l0"}


@pytest.mark.parametrize("seed", [1, 2])
def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path, seed: int) -> None:
    faults = {
        "loss": 0.001, "bit_error_rate": 1e-7,
        "links": [{"link": "p0l*->p0s1", "bit_error_rate": 2e-6}, {"link": "h1<->*", "loss": 0.01}],
    }  # fmt: skip
    written = []
    for workers in (1, 2, 3):
        result = run(seed=seed, workers=workers, faults=faults, observe={"drops": True, "flows": True})
        assert result.ok
        assert result.link_faults
        folder = tmp_path / str(workers)
        result.save(folder)
        written.append({path.name: path.read_bytes() for path in folder.iterdir() if path.name != "wall_times.json"})
    assert written[0] == written[1] == written[2]
