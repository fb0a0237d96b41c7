import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.errors import BadInputError
from weft.scenario.dotted import set_at, split_path
from weft.sweeps.axes import grid_axis, parse_assignment, points_axis, require_distinct, zip_axis


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("fabric.spines=2,4,8", "fabric.spines", [2, 4, 8]),
        ("seed=1..3,7", "seed", [1, 2, 3, 7]),
        ("fabric.host_rate=10Gbps, 100Gbps", "fabric.host_rate", ["10Gbps", "100Gbps"]),
        ("traffic[0].sizes=[4K],[8K, 16K]", "traffic[0].sizes", [["4K"], ["8K", "16K"]]),
        ("int=true,false", "int", [True, False]),
    ],
)
def test_the_command_line_lists_values_as_yaml_does(text, key, values):
    parsed, listed = parse_assignment(text, "--grid")
    assert parsed == key
    assert [each[key] for each in grid_axis(parsed, listed, "--grid").assignments] == values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fabric.spines", ["--grid 'fabric.spines'", "KEY=VALUE"]),
        ("=3", ["KEY=VALUE"]),
        ("seed=[1", ["'[1' is not a list of values"]),
    ],
)
def test_what_is_no_assignment_is_reported(text, words):
    with pytest.raises(BadInputError) as caught:
        parse_assignment(text, "--grid")
    assert all(word in str(caught.value) for word in words)


def test_a_range_counts_up():
    with refused(BadInputError, place="grid: seed", valid="1 to 100000"):
        grid_axis("seed", "5..1", "grid")
    with refused(BadInputError, place="grid: seed", valid="1 to 100000"):
        grid_axis("seed", "1..1000000", "grid")


def test_an_axis_has_values_and_none_twice():
    with refused(BadInputError, place="--grid", problem="has no values"):
        grid_axis("seed", [], "--grid")
    with refused(BadInputError, place="--grid", problem="seed=2 is given twice"):
        grid_axis("seed", ["1..3", 2], "--grid")


def test_zipped_parameters_change_together():
    axis = zip_axis({"fabric.leaves": [2, 4], "seed": "8..9"}, "zip")
    assert axis.assignments == ({"fabric.leaves": 2, "seed": 8}, {"fabric.leaves": 4, "seed": 9})
    with refused(BadInputError, place="zip", problem="as many values each; a has 2, b"):
        zip_axis({"a": [1, 2], "b": [1]}, "zip")


def test_listed_points_are_mappings():
    assert points_axis([{"seed": 1}, {"seed": 1, "int": False}], "points").keys == ("seed", "int")
    with refused(BadInputError, place="points[1]", problem="must be a mapping"):
        points_axis([{"seed": 1}, 7], "points")


def test_a_parameter_belongs_to_one_axis():
    axes = [grid_axis("seed", [1], "grid"), zip_axis({"seed": [2]}, "zip")]
    with refused(BadInputError, place="lab", problem="'seed' is given twice"):
        require_distinct(axes, "lab")


def test_paths_lead_into_sections_and_lists():
    tree = {"traffic": [{"incast": "h0"}]}
    set_at(tree, "traffic[0].incast", "h1")
    set_at(tree, "traffic.0.plane", 1)
    set_at(tree, "ecn.kmin", "5KiB")
    assert tree == {"traffic": [{"incast": "h1", "plane": 1}], "ecn": {"kmin": "5KiB"}}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("traffic[1].incast", ["traffic has no [1]", "valid: 0 to 0"]),
        ("traffic.incast", ["traffic is a list", "traffic[0]"]),
        ("seed.x", ["seed is 1, no section"]),
        ("seed[0]", ["seed is 1, no list"]),
        ("a..b", ["'a..b' is not a parameter's path"]),
        ("[0]", ["is not a parameter's path"]),
        ("a]b", ["is not a parameter's path"]),
    ],
)
def test_paths_that_lead_nowhere_are_reported(path, words):
    with pytest.raises(BadInputError) as caught:
        set_at({"traffic": [{"incast": "h0"}], "seed": 1}, path, 2)
    assert all(word in str(caught.value) for word in words)


_names = st.text("abcdefgh_", min_size=1, max_size=5)


@given(st.lists(_names | st.integers(0, 99), max_size=5), _names)
def test_a_path_reads_as_it_is_written(parts, first):
    parts = [first, *parts]
    text = first + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts[1:])
    assert split_path(text) == parts
