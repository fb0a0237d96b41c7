"""Presets of whole fabrics, which a scenario names at its key `preset`: keys of a scenario, each with its source.

Each is one file in `weft/presets/`, named like the preset (docs/presets.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.quantities.yaml_files import read_yaml
from weft.scenario.dotted import plain, set_at
from weft.scenario.places import KeyProblem, Places
from weft.scenario.presets import PRESET_KEY, merged

ASSUMED = "assumed"
"""Stands in place of a source for a value that no public document gives."""
_SUFFIX = ".yaml"


@dataclass(frozen=True)
class PresetSource:
    """A public document: its title, and where it is found."""

    title: str
    url: str


@dataclass(frozen=True)
class PresetKey:
    """A key of a scenario that a preset sets, by its dotted path.

    `source` is one of the preset's sources, or `ASSUMED`; `because` says where the source has the value and how Weft
    models it, or why the value is assumed.
    """

    key: str
    value: Any
    source: str
    because: str


@dataclass(frozen=True)
class FabricPreset:
    """A whole fabric by name.

    Attributes:
        name: as `preset` takes it.
        summary: what it is, in a sentence.
        sources: documents by the names that its keys use.
        keys: keys that it sets, and where each value comes from.
        example: keys of a scenario that show it on a small fabric, with traffic as its users run it.
    """

    name: str
    summary: str
    sources: Mapping[str, PresetSource]
    keys: tuple[PresetKey, ...]
    example: Mapping[str, Any]

    def tree(self) -> dict[str, Any]:
        """Return its keys as a scenario's tree."""
        tree: dict[str, Any] = {}
        for each in self.keys:
            set_at(tree, each.key, plain(each.value))
        return tree


def fabric_preset_names() -> list[str]:
    """Return the names of all presets, in order."""
    files = resources.files("weft").joinpath("presets").iterdir()
    return sorted(each.name.removesuffix(_SUFFIX) for each in files if each.name.endswith(_SUFFIX))


def fabric_preset(name: object) -> FabricPreset:
    """Return a preset by name. Raises BadInputError, with the valid names, if there is none."""
    names = fabric_preset_names()
    if not isinstance(name, str) or name not in names:
        raise BadInputError(f"no preset {shown(name)}", valid=names)
    file = resources.files("weft").joinpath(f"presets/{name}{_SUFFIX}")
    tree = plain(read_yaml(file.read_text(encoding="utf-8"), f"preset {name}"))
    return FabricPreset(
        name,
        tree["summary"],
        {key: PresetSource(**source) for key, source in tree["sources"].items()},
        tuple(PresetKey(key, **given) for key, given in tree["keys"].items()),
        tree["example"],
    )


def with_preset(tree: dict[str, Any], places: Places) -> tuple[dict[str, Any], Places]:
    """Return a scenario's tree with the keys of the preset that it names, and the places of all its keys.

    The scenario's own keys count where both have one, and sections are merged; null takes a key of the preset away.
    Raises KeyProblem for an unknown name.
    """
    if PRESET_KEY not in tree:
        return tree, places
    name = tree[PRESET_KEY]
    if name is None:
        return {key: value for key, value in tree.items() if key != PRESET_KEY}, places
    try:
        below = fabric_preset(name).tree()
    except BadInputError as error:
        raise KeyProblem(PRESET_KEY, error) from None
    return merged(below, tree), places.above(below, f"preset {name}")


def expanded(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario's tree with the keys of its preset written out, and without the preset's name.

    For code that takes keys away, which must not come back. An unknown name is left for `parse_scenario` to refuse.
    """
    try:
        found, _ = with_preset(tree, Places(""))
    except KeyProblem:
        return tree
    return {key: value for key, value in found.items() if key != PRESET_KEY}


def preset_text(preset: FabricPreset) -> str:
    """Return a preset as YAML: a scenario with the same keys, each below a comment with its source."""
    lines = [f"# {preset.name}: {preset.summary}", "#", "# Sources:"]
    lines += [f"#   [{name}] {source.title}, {source.url}" for name, source in preset.sources.items()]
    lines += ["", *_keys_text(preset.keys), ""]
    return "\n".join(lines)


def _keys_text(keys: tuple[PresetKey, ...]) -> Iterator[str]:
    """Yield lines of nested keys; keys of a section stand next to each other in a preset's file."""
    open_sections: list[str] = []
    for each in keys:
        *sections, last = each.key.split(".")
        while open_sections != sections[: len(open_sections)]:
            open_sections.pop()
        for section in sections[len(open_sections) :]:
            yield f"{'  ' * len(open_sections)}{section}:"
            open_sections.append(section)
        indent = "  " * len(sections)
        yield f"{indent}# {_origin(each)}"
        yield f"{indent}{last}: {_flow(each.value)}"


def _origin(key: PresetKey) -> str:
    return f"{ASSUMED}: {key.because}" if key.source == ASSUMED else f"[{key.source}] {key.because}"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def example_text(preset: FabricPreset, file: str) -> str:
    """Return a small scenario that names a preset and runs; `file` is where it will stand."""
    lines = [
        f"# {preset.name}: {preset.summary}",
        f"# Run it: weft run {file}",
        f"# What it sets, and where each value comes from: weft presets {preset.name}",
        f"name: {preset.name}",
        "clock: virtual              # real: in Mininet, as root",
        f"{PRESET_KEY}: {preset.name}".ljust(27) + " # keys below go before its own; null takes one of its keys away",
    ]
    for key, value in preset.example.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  - {_flow(each)}" for each in value)]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"
