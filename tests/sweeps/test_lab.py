"""The sweep of labs/07-sweep, and its plot."""

import subprocess
import sys
from xml.etree import ElementTree

import pytest
import ruamel.yaml

from weft.paths import LABS_DIRECTORY
from weft.sweeps import SweepPlan, run_sweep

LAB = LABS_DIRECTORY / "07-sweep"


def test_its_points_are_valid():
    points = SweepPlan.read(LAB / "sweep.yaml").points()
    assert len(points) == 24
    assert len({point.identity for point in points}) == 24


@pytest.mark.slow
def test_its_plot_has_a_curve_for_each_ring_and_one_for_the_network(tmp_path):
    tree = ruamel.yaml.YAML(typ="safe").load((LAB / "sweep.yaml").read_text(encoding="utf-8"))
    tree["grid"] = {"fabric.hosts_per_leaf": [1, 2], "traffic[0].sizes": [["4KiB"], ["16KiB"]]}
    tree["scenario"]["fabric"]["leaves"] = 2
    small = tmp_path / "sweep.yaml"
    with small.open("w", encoding="utf-8") as file:
        ruamel.yaml.YAML(typ="safe").dump(tree, file)
    result = run_sweep(small, [], tmp_path / "out")
    assert result.ok
    command = [sys.executable, str(LAB / "plot.py"), str(result.table)]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    picture = ElementTree.fromstring(drawn)
    names = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 3
    assert {"ring, 2 hosts", "ring, 4 hosts", "in-network, 2 to 4 hosts"} <= set(names)
