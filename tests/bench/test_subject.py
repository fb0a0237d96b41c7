"""A fabric under test: where its traffic goes, and what variants make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench.fabrics import LEAF_SPINE, LOSSLESS, PLANES, RAILS, subject, written
from weft.bench.profile import Profile
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.subject import read_subject
from weft.bench.training.tenants import OVERLAPS, placed
from weft.bench.variants import LOAD_BALANCING, TRANSPORTS, Variant, variants_of, with_variant
from weft.errors import BadInputError


def setup_of(folder: Path, fabric: dict[str, Any], **keys: Any) -> Setup:
    found = subject(folder, fabric, **keys)
    return Setup(found, found, Variant(), Profile.SMOKE, folder / "flows", 1)


@pytest.mark.parametrize("fabric", [LEAF_SPINE, RAILS, PLANES], ids=["leaf-spine", "rails", "planes"])
def test_every_rank_sends_to_one_other_and_receives_from_one(tmp_path: Path, fabric: dict[str, Any]) -> None:
    found = subject(tmp_path, fabric)
    sources, destinations = zip(*found.pairs, strict=True)
    assert sorted(sources) == sorted(destinations) == list(range(found.ranks))
    per_host = found.ranks_per_host
    for source, destination in found.pairs:
        assert source // per_host != destination // per_host
        assert source % per_host == destination % per_host
    source, destination = found.remote_pair()
    assert per_host > 1 or found.edges[source] != found.edges[destination]


def test_traffic_and_events_of_the_file_say_nothing_of_the_fabric(tmp_path: Path) -> None:
    traffic = [{"permutation": "1KiB"}]
    found = subject(tmp_path, LEAF_SPINE, traffic=traffic, observe={"drops": True}, clock="virtual")
    assert not {"traffic", "observe", "clock"} & found.tree.keys()


def test_a_file_that_is_no_fabric_is_refused_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, {**LEAF_SPINE, "planes": 0})
    with pytest.raises(BadInputError, match="planes") as caught:
        read_subject(path)
    assert "fabric.yaml" in str(caught.value)


def test_senders_are_of_other_switches_first_and_of_other_hosts(tmp_path: Path) -> None:
    found = subject(tmp_path, LEAF_SPINE)
    assert found.senders_to(0, 5) == [5, 6, 7, 8, 9]
    assert found.senders_to(0, 9) == [5, 6, 7, 8, 9, 1, 2, 3, 4]
    assert found.senders_to(0, 10) is None
    rails = subject(tmp_path, RAILS)
    senders = rails.senders_to(0, 8)
    assert senders is not None
    assert all(sender // 4 != 0 for sender in senders)


def test_uplinks_are_the_ports_of_leaves_to_spines(tmp_path: Path) -> None:
    found = subject(tmp_path, LEAF_SPINE)
    assert [(group.switch, group.ports) for group in found.uplinks] == [
        ("p0l0", ("p0l0:6", "p0l0:7")),
        ("p0l1", ("p0l1:6", "p0l1:7")),
    ]
    assert found.has_parallel_paths
    assert not subject(tmp_path, {**LEAF_SPINE, "spines": 1}).has_parallel_paths


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("balancing", LOAD_BALANCING)
def test_a_variant_is_a_valid_fabric(tmp_path: Path, transport: str, balancing: str) -> None:
    base = subject(tmp_path, LEAF_SPINE, **LOSSLESS)
    found = with_variant(base, Variant(transport, balancing))
    options = found.spec.options
    assert options.transport.protocol == (TRANSPORTS[transport].protocol or "rc")
    if balancing in ("flowlet", "adaptive"):
        assert options.routing.load_balancing == balancing
    if transport not in ("own", "rc"):
        assert not options.pfc.classes
        assert options.trimming.classes == [3]


def test_a_variant_of_the_fabrics_own_transport_keeps_its_sections(tmp_path: Path) -> None:
    base = subject(tmp_path, LEAF_SPINE, **{**LOSSLESS, "transport": {"congestion_control": "swift"}})
    assert with_variant(base, Variant("rc")).spec.options.transport.congestion_control == "swift"
    uet = subject(tmp_path, LEAF_SPINE, transport={"protocol": "uet"}, int=False, trimming={"classes": [3]})
    assert with_variant(uet, Variant("rc")).spec.options.transport.congestion_control == "dcqcn"


def test_variants_are_every_combination_and_names_are_checked() -> None:
    assert variants_of([], []) == [Variant()]
    assert len(variants_of(["rc", "uet-rud"], ["ecmp", "spray", "ecmp"])) == 4
    for transports, balancings in ((["tcp"], []), ([], ["magic"])):
        with pytest.raises(BadInputError, match="valid"):
            variants_of(transports, balancings)


def test_a_fabric_that_does_not_go_with_a_variant_is_not_applicable(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, LEAF_SPINE, int=False, fidelity={"segment": "16KiB"})
    with pytest.raises(NotApplicableError, match="segment"):
        setup.under(Variant("uet-rud"))


def test_a_transfer_is_divided_among_nics_unless_queue_pairs_span_them(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, PLANES)
    assert [(flow.plane, flow.size_bytes) for flow in setup.transfer(0, 5, 4096)] == [(n, 1024) for n in range(4)]
    mrc = setup.under(Variant("mrc"))
    assert [(flow.plane, flow.size_bytes) for flow in mrc.transfer(0, 5, 4096)] == [(0, 4096)]


def test_equal_lists_of_flows_are_one_file(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, LEAF_SPINE)
    first, second = (setup.flows(setup.transfer(0, 5, 4096)) for _ in range(2))
    assert first == second
    assert first != setup.flows(setup.transfer(0, 6, 4096))
    assert len(list((tmp_path / "flows").iterdir())) == 2


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_two_jobs_share_as_many_leaf_switches_as_they_say(tmp_path: Path, overlap: float) -> None:
    setup = setup_of(tmp_path, {**LEAF_SPINE, "leaves": 8, "hosts_per_leaf": 4})
    found = placed(setup, overlap)
    assert found is not None
    share, first, second = found
    assert share == pytest.approx(overlap, abs=0.13)
    assert not set(first) & set(second)
    assert len(first) == len(second)
    edges = [{setup.subject.edges[rank] for rank in job} for job in (first, second)]
    assert len(edges[0] & edges[1]) / len(edges[0] | edges[1]) == pytest.approx(share)
