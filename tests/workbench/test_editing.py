"""Changes of single keys in a scenario's text: everything else stays as its author wrote it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.scenario import read_yaml
from weft.scenario.dotted import plain
from weft.workbench.editing import flow, remove_key, set_key

TEMPLATE = (ROOT / "weft/templates/scenario.yaml").read_text(encoding="utf-8")
LABS = sorted((ROOT / "labs").glob("*/scenario.yaml"))


def lines_changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines that went and those that came; all others are in both texts, in the same order."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return old, new


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (["fabric", "leaves"], 4, ["  leaves: 2"], ["  leaves: 4"]),
        (["fabric", "oversubscription"], 2, [], ["  oversubscription: 2"]),
        (["observe", "timelines"], True, [], ["observe:", "  timelines: true"]),
        (["name"], "12", ["name: first-fabric"], ["name: '12'"]),
        (["traffic", 1, "sizes"], ["1MiB"], ["    sizes: [64KiB, 1MiB]"], ["    sizes: [1MiB]"]),
        (["traffic", 2], {"ping": "all"}, [], ["  - ping: all"]),
        (["traffic", 2, "workload", "load"], 0.5, [], ["  - workload:", "      load: 0.5"]),
        (
            ["traffic", 0, "incast"],
            "h3",
            ["  - incast: h0              # all others write to h0 at once"],
            ["  - incast: h3              # all others write to h0 at once"],
        ),
        (
            ["transport", "classes", "5", "congestion_control"],
            "hpcc",
            [],
            ["  classes:", "    5:", "      congestion_control: hpcc"],
        ),
    ],
)
def test_setting_a_key_changes_its_line_alone(
    path: list[str | int], value: Any, old: list[str], new: list[str]
) -> None:
    assert lines_changed(TEMPLATE, set_key(TEMPLATE, path, value, "x")) == (old, new)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (["fabric", "leaves"], ["  leaves: 2"], []),
        (["traffic", 1, "collective"], 2, ["  - algorithms: [ring, in-network]"]),
        (["traffic", 0], 2, []),
        (["transport", "congestion_control"], 2, []),
        (["traffic"], 6, []),
    ],
)
def test_removing_a_key_removes_its_lines_alone(path: list[str | int], old: list[str] | int, new: list[str]) -> None:
    gone, came = lines_changed(TEMPLATE, remove_key(TEMPLATE, path, "x"))
    assert (gone if isinstance(old, list) else len(gone)) == old
    assert came == new


@pytest.mark.parametrize(
    ("text", "path", "value", "after"),
    [
        ("", ["fabric", "leaves"], 3, "fabric:\n  leaves: 3\n"),
        ("# nothing yet\n", ["seed"], 3, "# nothing yet\nseed: 3\n"),
        ("seed: 1", ["mtu"], 4096, "seed: 1\nmtu: 4096\n"),
        ("fabric:\nseed: 1\n", ["fabric", "leaves"], 3, "fabric: {leaves: 3}\nseed: 1\n"),
        ("fabric: {}\n", ["fabric", "leaves"], 3, "fabric: {leaves: 3}\n"),
        (
            "fabric: {leaves: 2, # few\n  spines: 1}\n",
            ["fabric", "leaves"],
            3,
            "fabric: {leaves: 3, # few\n  spines: 1}\n",
        ),
        ("fabric: {leaves: 2}\n", ["fabric", "spines"], 3, "fabric: {leaves: 2, spines: 3}\n"),
        ("traffic: [{ping: all}]\n", ["traffic", 1], {"ping": "x: y"}, "traffic: [{ping: all}, {ping: 'x: y'}]\n"),
        ("a: &a {x: 1}\nb: *a\n", ["b", "x"], 3, "a: {x: 1}\nb: {x: 3}\n"),
        ("a: &a {x: 1}\nb: *a\nc: 1 # one\n", ["c"], 2, "a: &a {x: 1}\nb: *a\nc: 2 # one\n"),
        ("a: |\n  lines\nb: 1\n", ["a"], 3, "a: 3\nb: 1\n"),
        ("a: 'x' # why\n", ["a"], "q\"'", "a: q\"' # why\n"),
    ],
)
def test_all_layouts_can_be_changed(text: str, path: list[str | int], value: Any, after: str) -> None:
    assert set_key(text, path, value, "x") == after


def test_the_last_key_of_a_section_takes_the_section_with_it_but_never_a_kind_of_traffic() -> None:
    assert remove_key("seed: 1\nobserve: {flows: true}\n", ["observe", "flows"], "x") == "seed: 1\n"
    text = "traffic:\n  - workload:\n      load: 0.5\n"
    assert plain(read_yaml(remove_key(text, ["traffic", 0, "workload", "load"], "x"), "x")) == {
        "traffic": [{"workload": {}}]
    }


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (["fabric", 0], "fabric is .*; it has no \\[0\\]"),
        (["traffic", "x"], "traffic is .*; it has no x"),
        (["traffic", 7], "traffic has no \\[7\\]"),
        (["seed", "x"], "seed is 1; it has no x"),
        ([], "is not the path of a key"),
        ([0], "is not the path of a key"),
    ],
)
def test_paths_that_lead_nowhere_are_refused(path: list[str | int], problem: str) -> None:
    with pytest.raises(BadInputError, match=problem):
        set_key(TEMPLATE, path, 1, "x")


def test_a_key_that_is_not_there_cannot_be_removed() -> None:
    with refused(BadInputError, problem="there is no fabric.nothing"):
        remove_key(TEMPLATE, ["fabric", "nothing"], "x")


def leaves_of(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from leaves_of(value, (*path, key))
    elif isinstance(tree, list) and any(isinstance(each, dict) for each in tree):
        for index, value in enumerate(tree):
            yield from leaves_of(value, (*path, index))
    else:
        yield path, tree


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_key_of_the_labs_can_be_changed_and_removed(lab: Path) -> None:
    text = lab.read_text(encoding="utf-8")
    tree = plain(read_yaml(text, "x"))
    comments = re.findall(r"#.*", text)
    for path, value in leaves_of(tree):
        same = set_key(text, path, value, "x")
        assert plain(read_yaml(same, "x")) == tree
        assert re.findall(r"#.*", same) == comments
        changed = plain(read_yaml(set_key(text, path, "changed", "x"), "x"))
        assert [each for each, found in leaves_of(changed) if found == "changed"] == [path]
        remove_key(text, path, "x")


def test_a_value_on_one_line_is_read_back() -> None:
    for value in (1, 0.5, True, None, "100Gb/s", "1", "yes", "a: b", "#", "", "x\ny", [1, ["a, b"]], {"a": {"b": [1]}}):
        assert plain(read_yaml(f"k: {flow(value)}", "x")) == {"k": value}


KEYS = st.text("abcxyz_", min_size=1, max_size=4) | st.integers(0, 7).map(str)
SCALARS = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["1us", "x y", "a: b", "# c", "yes", "'", "1"])
)
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


def written(tree: Any, is_flow: bool | None, indent: int) -> str:
    yaml = ruamel.yaml.YAML(typ="safe", pure=True)
    yaml.default_flow_style = is_flow
    yaml.indent = indent
    stream = io.StringIO()
    yaml.dump(tree, stream)
    return stream.getvalue()


def paths_in(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from paths_in(value, (*path, key))


@settings(max_examples=50, deadline=None)
@given(TREES, st.sampled_from([True, False, None]), st.sampled_from([2, 4]), SCALARS | TREES, st.data())
def test_any_mapping_can_be_changed_anywhere(
    tree: dict[str, Any], is_flow: bool | None, indent: int, value: Any, data: st.DataObject
) -> None:
    """`set_key` and `remove_key` themselves compare their result with the change; here they must find a way."""
    text = written(tree, is_flow, indent)
    paths = [*paths_in(tree), ("new",), ("new", "deep", 0)]
    path = data.draw(st.sampled_from(paths))
    found = plain(read_yaml(set_key(text, path, value, "x"), "x"))
    for part in path:
        found = found[part]
    assert json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)
    if path[0] != "new":
        remove_key(text, path, "x")
