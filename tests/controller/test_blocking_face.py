"""The blocking face of the fabric's controller has all that is public there, made from the same declarations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing

import pytest
from p4info_fixture import fabric_p4info

from weft.clocks.virtual.loop import VirtualTimeLoop, VirtualTimeRunner
from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import FabricController
from weft.controller.grpc_targets import embedded_targets
from weft.controller.pipeline import Pipeline
from weft.engine import Engine
from weft.topologies import leaf_spine

METHODS = dict(each for each in inspect.getmembers(FabricController, inspect.isfunction) if not each[0].startswith("_"))


@pytest.fixture
def face() -> Iterator[BlockingFabricController]:
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)
    pipeline = Pipeline(fabric_p4info(), b'{"program": "not pushed"}')
    with closing(VirtualTimeLoop(Engine())) as loop:
        controller = FabricController(fabric, pipeline, embedded_targets(fabric, "nowhere"))
        yield BlockingFabricController(controller, VirtualTimeRunner(loop))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_made_from_the_controller_s(name: str) -> None:
    method, own = getattr(BlockingFabricController, name), METHODS[name]
    assert inspect.unwrap(method) is own
    assert (method.__name__, method.__doc__) == (name, own.__doc__)
    assert not inspect.iscoroutinefunction(method)
    returns = str(inspect.signature(own).return_annotation)
    assert inspect.isgeneratorfunction(method) == returns.startswith("AsyncIterator[")


def test_properties_and_attributes_are_the_controller_s(face: BlockingFabricController) -> None:
    controller = face.controller
    names = {name for name in dir(controller) if not name.startswith("_")} - METHODS.keys()
    assert {"jobs", "lease_s"} <= names
    for name in names:
        assert getattr(face, name) == getattr(controller, name), name
    for name in names & vars(controller).keys():
        value = object()
        setattr(face, name, value)
        assert getattr(controller, name) is value
    with pytest.raises(AttributeError):
        face.jobs = ()  # type: ignore[misc]


def test_methods_return_results(face: BlockingFabricController) -> None:
    assert face.nics_with_trees(planes=[0], jobs=[["h0", "h1"]]) == (0,)
    assert face.job_epoch(7) is None
    face.note_dropped_packet_in("p0l0")
    assert face.dropped_packet_ins == {"p0l0": 1}
