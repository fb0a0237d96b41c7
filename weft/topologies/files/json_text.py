"""Parses JSON of topology files: UTF-8, without repeated keys, and without numbers that JSON lacks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

from weft.quantities.plain_data import repeated_name
from weft.quantities.units import shown
from weft.topologies.errors import TopologyError


def parsed_json(content: bytes) -> object:
    """Return the value that a JSON text holds. Raises TopologyError with the line, where there is one."""
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_without_repeats, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise TopologyError(f"line {error.lineno}: is not JSON: {error.msg}") from None
    except RecursionError:
        raise TopologyError("is nested too deeply", place="the whole") from None
    except TopologyError:
        raise
    except ValueError as error:
        raise TopologyError(f"is not JSON in UTF-8: {error}", place="the whole") from None


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    twice = repeated_name(pairs)
    if twice is not None:
        raise TopologyError(f"key {shown(twice)} is repeated in a mapping", place="the whole")
    return dict(pairs)


def _no_number(text: str) -> NoReturn:
    raise TopologyError(f"{text} is not a number", place="the whole")
