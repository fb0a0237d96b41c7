"""Every key of a scenario, from the sections themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from weft.quantities.section import meaning_of
from weft.scenario.model import Scenario
from weft.scenario.presets import preset_names
from weft.scenario.traffic import TRAFFIC_KINDS, TrafficSection
from weft.scenario.valid_values import sections_in, valid_values
from weft.scenario.values import SectionOnUse
from weft.topologies.kinds import TOPOLOGY_KINDS
from weft.topologies.kinds.base import TopologySection


@dataclass(frozen=True)
class Key:
    """A key that holds a value, not a section.

    `path` is what people write, with [] for each item of a list: `fabric.host_rate`, `faults.links[].loss`. `section`
    is the class that has it, as `name`; `field` what is declared there.
    """

    path: str
    section: type[BaseModel]
    name: str
    field: FieldInfo

    @property
    def meaning(self) -> str:
        """The text below its declaration."""
        return meaning_of(self.section, self.name)

    @property
    def valid(self) -> str:
        """Valid values, in words."""
        return valid_values(self.field.annotation, self.field.metadata)


@dataclass(frozen=True)
class SectionOfKeys:
    """A section: its path (empty: the scenario itself), its class, and the keys that hold values.

    `presets` are the names that may stand in its place.
    """

    path: str
    model: type[BaseModel]
    keys: list[Key]
    presets: tuple[str, ...] = ()


def sections() -> list[SectionOfKeys]:
    """Return all sections, the scenario's own keys first, kinds of traffic last: `traffic[] (incast)`."""
    return list(_sections_of("", Scenario))


def _sections_of(path: str, model: type[BaseModel], presets: tuple[str, ...] = ()) -> Iterator[SectionOfKeys]:
    keys: list[Key] = []
    below: list[tuple[str, type[BaseModel], tuple[str, ...]]] = []
    for name, field in model.model_fields.items():
        own = f"{path}.{field.alias or name}".lstrip(".")
        on_use = [each.load() for each in field.metadata if isinstance(each, SectionOnUse)]
        inner = on_use or sections_in(field.annotation)
        if model is not TrafficSection and name in TrafficSection.model_fields and issubclass(model, TrafficSection):
            continue  # of items of `together`, where it is described
        if issubclass(model, TopologySection) and name in model.refused:
            continue
        if not inner or (inner == [TrafficSection] and path):
            keys.append(Key(own, model, name, field))
        elif inner == [TopologySection]:
            below += [(f"{own} ({kind})", each.section, ()) for kind, each in TOPOLOGY_KINDS.items()]
        elif inner == [TrafficSection]:
            below += [(f"{own}[] ({kind})", each, ()) for kind, each in TRAFFIC_KINDS.items()]
        elif len(inner) == 1:
            own = f"{own}[]" if _is_list(field.annotation) else own
            below.append((own, inner[0], preset_names(field.metadata)))
    yield SectionOfKeys(path, model, keys, presets)
    for own, section, names in below:
        yield from _sections_of(own, section, names)


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_is_list(each) for each in get_args(annotation))
