import pytest

from tests.refusals import refused
from weft.errors import BadInputError, EnvironmentLacksError
from weft.paths import FABRIC_P4, ROOT
from weft.sweeps import SweepPlan, grid_axis


def points_of(path, *axes):
    return SweepPlan.read(path, [grid_axis(key, values, "--grid") for key, values in axes]).points()


def test_the_last_axis_changes_fastest(small):
    points = points_of(small, ("fabric.hosts_per_leaf", [3, 4]), ("seed", "1..2"))
    assert [point.label for point in points] == [
        "fabric.hosts_per_leaf=3, seed=1",
        "fabric.hosts_per_leaf=3, seed=2",
        "fabric.hosts_per_leaf=4, seed=1",
        "fabric.hosts_per_leaf=4, seed=2",
    ]
    assert points[3].tree["fabric"]["hosts_per_leaf"] == 4
    assert len({point.identity for point in points}) == 4


def test_without_axes_there_is_the_scenario_itself(small):
    assert [point.parameters for point in points_of(small)] == [{}]


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        ("fabric.spinez", [2], ["small.yaml with fabric.spinez=2", "did you mean 'spines'"]),
        ("fabric.planes", [1, 999], ["small.yaml with fabric.planes=999", "valid: 1 to 256"]),
        ("traffic[0].incast", ["h0", "h7"], ["with traffic[0].incast=h7", "no host 'h7'"]),
        ("traffic[3].incast", ["h0"], ["traffic has no [3]", "valid: 0 to 0"]),
        ("fabric.host_rate", ["fast"], ["fabric.host_rate", "fast", "Gb/s"]),
        ("clock", ["real"], ["with clock=real", "virtual clock"]),
        ("p4", ["absent.p4"], ["absent.p4", "no such P4 program"]),
    ],
)
def test_bad_values_are_reported_before_anything_starts(small, key, values, words):
    with pytest.raises(BadInputError) as caught:
        points_of(small, (key, values))
    assert all(word in str(caught.value) for word in words), caught.value


def test_many_bad_values_are_not_all_reported(small):
    with pytest.raises(BadInputError) as caught:
        points_of(small, ("fabric.planes", "310..320"))
    assert str(caught.value).count("\n") == 5
    assert str(caught.value).endswith("… and 6 more")


def test_too_many_points_are_refused(small):
    with refused(BadInputError, place="small.yaml", valid="up to 100000"):
        points_of(small, ("seed", "1..1000"), ("slots", "1..1000"))


def test_what_the_virtual_clock_has_not_is_refused(small):
    with refused(EnvironmentLacksError, problem="with target=bmv2: BMv2 runs in"):
        points_of(small, ("target", ["bmv2"]))


def test_identity_is_of_values_not_of_their_spelling(small):
    (a,), (b,) = points_of(small, ("fabric.delay", ["1us"])), points_of(small, ("fabric.delay", ["1000ns"]))
    assert a.identity == b.identity


def test_identity_follows_the_program_s_meaning(small, tmp_path):
    program = tmp_path / "mine.p4"
    include = f'#include "{FABRIC_P4}"\n'
    program.write_text(include, encoding="utf-8")
    (before,) = points_of(small, ("p4", [str(program)]))
    program.write_text("// explained\n" + include, encoding="utf-8")
    (commented,) = points_of(small, ("p4", [str(program)]))
    assert commented.identity == before.identity
    program.write_text(f'#include "{ROOT / "benchmarks" / "null.p4"}"\n', encoding="utf-8")
    (other,) = points_of(small, ("p4", [str(program)]))
    assert other.identity != before.identity


def test_a_sweep_file_names_or_holds_its_scenario(small, tmp_path):
    (tmp_path / "named.yaml").write_bytes(small.read_bytes())
    named = tmp_path / "sweep.yaml"
    named.write_text(
        "scenario: named.yaml\nzip: {fabric.hosts_per_leaf: [3, 4], slots: [8, 16]}\n"
        "points: [{int: true}, {int: false}]\ngrid: {seed: 1..2}\n",
        encoding="utf-8",
    )
    points = SweepPlan.read(named).points()
    assert len(points) == 8
    assert points[-1].parameters == {"fabric.hosts_per_leaf": 4, "slots": 16, "int": False, "seed": 2}
    held = tmp_path / "held.yaml"
    held.write_text("scenario: {seed: 5}\ngrid: {fabric.planes: [1, 2]}\n", encoding="utf-8")
    assert [point.tree["seed"] for point in SweepPlan.read(held).points()] == [5, 5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scenario: {}\ngird: {}\n", ["unknown key 'gird'", "valid: scenario, grid, zip, points"]),
        ("scenario: 7\n", ["scenario: must be a path or a mapping, is '7'"]),
        ("scenario: absent.yaml\n", ["absent.yaml", "cannot be read"]),
        ("scenario: {seed: x}\n", ["scenario", "seed"]),
        ("scenario: {}\ngrid: [1]\n", ["grid: must be a mapping"]),
        ("scenario: {}\nzip: 3\n", ["zip: must be a mapping"]),
        ("scenario: {}\npoints: 3\n", ["points: must be a list"]),
    ],
)
def test_a_bad_sweep_file_is_reported(tmp_path, text, words):
    path = tmp_path / "sweep.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        SweepPlan.read(path)
    assert all(word in str(caught.value) for word in words), caught.value
