"""The form has every key of the schema, and writes what is typed as a file has it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from asking import Asking
from devtools import Page
from weft.scenario import read_yaml
from weft.scenario.dotted import key_of, plain
from weft.scenario.reference import example_of
from weft.scenario.schema import SectionOfKeys, sections
from weft.scenario.valid_values import field_of
from weft.workbench.actions import changed

# Shows a scenario in the form with everything open; returns the keys without an input, and for the others what typing
# their examples asks the server to change.
TYPE_EXAMPLES = """(({tree, kinds, examples}) => {
  const form = workbench.form();
  const changes = [];
  form.change = (made) => changes.push(made);
  form.show({ file: "examples", tree, kinds, problems: [] });
  const all = () => [...form.root.querySelectorAll("details:not([open])")];
  const open = () => {
    for (const each of all()) {
      form.open.add(each.dataset.key);
    }
    form.show(form.scenario);
    if (all().length) open();
  };
  open();
  const found = {};
  const fields = new Map([...form.root.querySelectorAll(".field")].reverse().map((each) => [each.dataset.key, each]));
  for (const [key, example] of Object.entries(examples)) {
    const field = fields.get(key);
    const input = field?.querySelector("input, select, textarea");
    if (!input || !field.querySelector("label[for]")) continue;
    input.value = example;
    if (input.value !== example) continue;
    changes.length = 0;
    input.dispatchEvent(new Event("change"));
    found[key] = changes[0]?.[0] ?? null;
  }
  return found;
})"""
NAME_IN_A_MAPPING = "7"
"""A class of packets, and a name for what has names."""


def is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) is dict or any(is_mapping(each) for each in get_args(annotation))


def place_of(section: SectionOfKeys, models: Mapping[str, SectionOfKeys]) -> tuple[list[str | int], dict[str, str]]:
    """Return a section's path in a tree that has one item of each list and mapping, and the kinds on the way."""
    path: list[str | int] = []
    kinds: dict[str, str] = {}
    so_far = ""
    for part in section.path.split("."):
        if not part:
            continue
        above, so_far = so_far, f"{so_far}.{part}".lstrip(".")
        name, _, kind = part.partition(" (")
        path.append(name.removesuffix("[]"))
        field = field_of(models[above].model, str(path[-1]))
        if name.endswith("[]"):
            path.append(0)
        elif field is not None and is_mapping(field.annotation):
            path.append(NAME_IN_A_MAPPING)
        if kind:
            kinds[key_of(path)] = kind.removesuffix(")")
    return path, kinds


def cases() -> list[dict[str, Any]]:
    """Return a tree for each kind of topology and of traffic, and one for all other sections, with all their keys."""
    models = {section.path: section for section in sections()}
    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"tree": {}, "kinds": {}, "examples": {}})
    for section in models.values():
        path, kinds = place_of(section, models)
        case = found[section.path.split(".")[0] if "(" in section.path else ""]
        case["kinds"] |= kinds
        here = case["tree"]
        for part, after in zip(path, [*path[1:], ""], strict=False):
            below = [] if isinstance(after, int) else {}
            if isinstance(here, list):
                if not here:
                    here.append(below)
                here = here[0]
            else:
                here = here.setdefault(part, below)
        for key in section.keys:
            case["examples"][key_of([*path, key.path.rpartition(".")[2]])] = example_of(key).value
    return list(found.values())


@pytest.mark.slow
def test_every_key_has_an_input_that_writes_its_example(bench: Asking, tmp_path: Path) -> None:
    with Page(bench.server.url, tmp_path) as page:
        page.wait_for("document.documentElement.dataset.ready")
        count = 0
        for case in cases():
            made = page.value(f"{TYPE_EXAMPLES}({json.dumps(case)})")
            # Items of `together` are added like the traffic's own.
            adding = page.value('!!document.getElementById("add-traffic[0].together")')
            missing = case["examples"].keys() - made.keys()
            assert missing == ({"traffic[0].together"} if adding else set())
            for key, example in case["examples"].items():
                if key in missing:
                    continue
                if key.endswith(".kind") and key.startswith("fabric"):
                    assert made[key] is None or made[key]["path"] == ["fabric", "kind"]
                    continue
                change = made[key]
                assert key_of(change["path"]) == key
                text = changed("", change, "x")
                tree = plain(read_yaml(text, "x"))
                for part in change["path"]:
                    tree = tree[part]
                assert json.dumps(tree) == json.dumps(plain(read_yaml(example, "x"))), key
                count += 1
        assert count > 400
        assert page.console == []
