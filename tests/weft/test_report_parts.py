"""Figures of reports take what people have: ranges, arrays, tuples."""

import json
from collections import deque

import numpy as np
import pytest

from weft.report.html import json_in_script
from weft.results.report_parts import Axis, Curve, CurveFigure


@pytest.mark.parametrize("x", [range(3), np.arange(3), (0, 1, 2), deque([0, 1, 2]), [np.int64(0), np.float64(1), 2]])
def test_a_curve_is_of_any_sequence(x: object) -> None:
    curve = Curve("c", x, range(3, 6))  # type: ignore[arg-type]
    figure = CurveFigure("t", Axis("x"), Axis("y"), [curve])
    drawn = json.loads(json_in_script(figure.data()))
    assert drawn["curves"] == [{"name": "c", "x": [0, 1, 2], "y": [3, 4, 5]}]


def test_what_no_figure_can_have_is_named() -> None:
    with pytest.raises(TypeError, match="a figure has a object"):
        json_in_script({"x": object()})
