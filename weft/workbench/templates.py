"""Scenarios to begin with."""

from __future__ import annotations

import functools
from importlib import resources

from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.system.shipped_labs import LAB_PREFIX, lab_file, names_of_scenarios

_SMALL = "small"
_EMPTY = "empty"


@functools.cache
def template_names() -> dict[str, str]:
    """Return the templates' names, with what each is: the scenario of `weft init`, none, and the labs' scenarios."""
    labs = {name: f"the scenario of a lab, {name}" for name in names_of_scenarios(LAB_PREFIX)}
    return {_SMALL: "a small fabric with an incast and an all-reduce, commented", _EMPTY: "an empty file", **labs}


def template(name: object, file: str) -> str:
    """Return the text of a template for a scenario file. Raises BadInputError."""
    if not isinstance(name, str) or name not in template_names():
        raise BadInputError(f"there is no template {shown(name)}", valid=template_names())
    if name == _EMPTY:
        return ""
    if name == _SMALL:
        text = resources.files("weft").joinpath("templates/scenario.yaml").read_text(encoding="utf-8")
        return text.replace("FILE", file)
    return lab_file(name.removeprefix(LAB_PREFIX)).read_text(encoding="utf-8")
