"""Every quantity that Weft accepts: its unit, and its lowest and highest valid value.

Scenario files, the command line and the Python API read and check numbers with these. The engine counts picoseconds
and bytes in 64 bits. The limits leave a margin for derived values: the time to drain a full queue at the lowest rate,
timeouts of several round trips, the times of a run's events.

Settings of hosts are declared with them, too, so pydantic is imported late: processes of hosts need none.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from weft.errors import BadInputError, InvalidValueError, translated
from weft.quantities import limits
from weft.quantities.units import (
    DURATION_UNITS,
    RATE_UNITS,
    SIZE_UNITS,
    TIME_UNITS,
    likely_rate,
    parse_duration_s,
    parse_rate_bps,
    parse_size_bytes,
    parse_time_ps,
    shortest_duration,
    shortest_rate,
    shortest_size,
    shortest_time,
    shown,
)

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema, core_schema

_PERCENT = re.compile(r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$")
UNITS_REQUIRED = "units_required"
"""Key of pydantic's context: require units for rates and times, as in files and options."""


@dataclass(frozen=True)
class Quantity:
    """A kind of number.

    Attributes:
        name: name of the quantity, with its article.
        unit: unit of the values, empty for plain numbers.
        lowest, highest: the valid range, inclusive unless excluded.
        parse: converts user input to a value in `unit`. Raises ValueError.
        write: converts a value to text for users.
        example: example for the scenario reference; empty if a key's default or its own example has to give one.
        lowest_excluded, highest_excluded: whether this end of the range is invalid.
    """

    name: str
    unit: str
    lowest: float
    highest: float
    parse: Callable[[Any], float]
    write: Callable[[Any], str]
    example: str = ""
    lowest_excluded: bool = False
    highest_excluded: bool = False

    def between(self, lowest: float, highest: float | None = None, *, example: str = "") -> Quantity:
        """Return the same kind of number with another range."""
        return replace(
            self,
            lowest=lowest,
            highest=self.highest if highest is None else highest,
            example=example or self.example,
        )

    @property
    def range_text(self) -> str:
        """The valid range as text: `1Mb/s to 100Tb/s`."""
        above = "above " if self.lowest_excluded else ""
        below = "below " if self.highest_excluded else ""
        return f"{above}{self.write(self.lowest)} to {below}{self.write(self.highest)}"

    def holds(self, value: float) -> bool:
        """Return whether a value is in range."""
        low = self.lowest < value if self.lowest_excluded else self.lowest <= value
        return low and (value < self.highest if self.highest_excluded else value <= self.highest)

    def read(self, value: object, units_required: bool = False) -> Any:
        """Convert user input to a value in `unit`. Raises ValueError with the value and the valid range."""
        bare = isinstance(value, int) and not isinstance(value, bool)
        if units_required and bare and value and self.unit in ("b/s", "ps"):
            assert isinstance(value, int)
            raise ValueError(f"{shown(value)} has no unit; {self._likely_meaning(value)}")
        number = self.parse(value)
        if not self.holds(number):
            likely = self._likely_meaning(value) if bare and self.unit == "b/s" else ""
            raise InvalidValueError(f"{shown(value)} is out of range", valid=self.range_text, hint=likely)
        return number

    def __call__(self, value: float) -> float:
        """Return a value of a message, in `unit`. Raises ValueError if it is out of range."""
        if not self.holds(value):
            raise InvalidValueError(f"is {shown(value)}", valid=self.range_text)
        return value

    def check(self, value: float, what: str) -> None:
        """Check a value from the Python API, in `unit`. Raises BadInputError with a message that begins with `what`."""
        with translated(ValueError, BadInputError, place=what):
            self.read(value)

    def _likely_meaning(self, value: Any) -> str:
        if self.unit == "b/s":
            return f"did you mean {likely_rate(value)}?" if 0 < value < 10**16 else "give one, such as 100Gb/s"
        return f"did you mean {value}us?" if 0 < value <= 1000 else "give one, such as 10us"

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic read values with `read`."""
        from pydantic_core import core_schema

        def read(value: object, info: core_schema.ValidationInfo) -> Any:
            return self.read(value, units_required=bool((info.context or {}).get(UNITS_REQUIRED)))

        return core_schema.with_info_plain_validator_function(read)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON Schema for editors: a text with a unit, or a number within range."""
        if self.unit in _UNITS:
            # A bare size is in bytes; a rate or time without a unit can only be 0.
            bare = {"type": "integer", "minimum": self.lowest} if self.unit == "B" else {"const": 0}
            pattern = rf"^\s*[0-9]+(\.[0-9]+)?\s*({'|'.join(_UNITS[self.unit])})\s*$"
            text = {"type": "string", "pattern": pattern, "examples": [self.example]}
            return {"anyOf": [text, bare], "x-unit": self.unit}
        low = "exclusiveMinimum" if self.lowest_excluded else "minimum"
        high = "exclusiveMaximum" if self.highest_excluded else "maximum"
        kind = "integer" if self.parse is parse_whole_number else "number"
        bare = {"type": kind, low: self.lowest, high: self.highest}
        if self.parse is not parse_share:
            return bare
        return {"anyOf": [{"type": "string", "pattern": _PERCENT.pattern, "examples": [self.example]}, bare]}


def parse_whole_number(value: object) -> int:
    """Convert a value to an integer. Raises ValueError."""
    if isinstance(value, bool | str):
        raise ValueError(f"{shown(value)} is not a whole number")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{shown(value)} is not a whole number") from None


def parse_number(value: object) -> float:
    """Convert a value to a finite float. Raises ValueError."""
    if isinstance(value, bool | str):
        raise ValueError(f"{shown(value)} is not a number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{shown(value)} is not a number") from None
    except OverflowError:
        raise ValueError(f"{shown(value)} is out of range") from None
    if not math.isfinite(number):
        raise ValueError(f"{shown(value)} is not a finite number")
    return number


def parse_share(value: object) -> float:
    """Convert a number, or a text such as 1%, to a part of the whole. Raises ValueError."""
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return parse_number(float(value.strip().removesuffix("%")) / 100)
    try:
        return parse_number(value)
    except ValueError:
        raise ValueError(f"{shown(value)} is no part of a whole, such as 1%") from None


def _percent(value: float) -> str:
    return f"{100 * value:g}%"


def _plain(value: float) -> str:
    return f"{int(value):,}" if value >= 10_000 and value == int(value) else f"{value:g}"


_UNITS = {"b/s": RATE_UNITS, "ps": TIME_UNITS, "B": SIZE_UNITS, "s": DURATION_UNITS}


TIME = Quantity("a time", "ps", 0, limits.MAX_TIME_PS, parse_time_ps, shortest_time, "10us")
"""A time or duration on the emulated clock."""
POSITIVE_TIME = TIME.between(1)
SHORT_TIME = TIME.between(0, limits.MAX_DELAY_PS, example="500ns")
"""Delay of a packet at one place: a link, a switch, an adapter."""
DURATION = Quantity("a duration", "s", 0, limits.MAX_DURATION_S, parse_duration_s, shortest_duration, "30min")
"""A duration of a cluster's life, of which no packet is simulated."""
RATE = Quantity("a rate", "b/s", limits.MIN_RATE_BPS, limits.MAX_RATE_BPS, parse_rate_bps, shortest_rate, "100Gb/s")
SIZE = Quantity("a size", "B", 1, limits.MAX_QUEUE_CAPACITY_BYTES, parse_size_bytes, shortest_size, "64KiB")
"""Size of a switch's or port's memory, or of a part of it."""
QUEUE_SIZE = SIZE.between(limits.MIN_QUEUE_CAPACITY_BYTES)
"""Size of a port's dedicated memory, which holds at least one frame."""
MESSAGE_SIZE = SIZE.between(1, 64 * 2**30, example="1MiB")
"""Size of a collective's buffer, or of a layer's gradients."""
FLOW_SIZE = SIZE.between(1, limits.MAX_FLOW_BYTES, example="1MiB")
COUNT = Quantity("a whole number", "", 0, 2**63 - 1, parse_whole_number, _plain)
QUEUE_PAIRS = COUNT.between(1, limits.MAX_FLOW_QUEUE_PAIRS, example="4")
TOLERANCE = Quantity("a part of a whole", "", 0.0, 0.1, parse_share, _percent, "1%", lowest_excluded=True)
"""How far figures that count as equal may be apart."""
NUMBER = Quantity("a number", "", 0.0, 1e6, parse_number, _plain)
PROBABILITY = replace(NUMBER, lowest=0.0, highest=1.0, highest_excluded=True, example="0.001")
PLAIN_NUMBER = NUMBER.between(-1e15, 1e15)

_OF_SUFFIXES = {"_ps": TIME, "_bps": RATE.between(1000), "_bytes": SIZE.between(0), "_packets": PLAIN_NUMBER}
"""By the unit that ends the engine's name for a quantity; a scenario leaves it out and writes it with the value."""

Time = Annotated[int, TIME]
"""Picoseconds of emulated time; written as `10us`."""
PositiveTime = Annotated[int, POSITIVE_TIME]
ShortTime = Annotated[int, SHORT_TIME]
Duration = Annotated[float, DURATION]
"""Seconds of a cluster's life; written as `30min`."""
PositiveDuration = Annotated[float, DURATION.between(1e-6)]
Rate = Annotated[int, RATE]
"""Bits per second; written as `100Gb/s`."""
Size = Annotated[int, SIZE]
"""Bytes; written as `64KiB`."""
SizeOrZero = Annotated[int, SIZE.between(0)]
QueueSize = Annotated[int, QUEUE_SIZE]
MessageSize = Annotated[int, MESSAGE_SIZE]
FlowSize = Annotated[int, FLOW_SIZE]
QueuePairs = Annotated[int, QUEUE_PAIRS]
"""Number of queue pairs that share a flow."""
Probability = Annotated[float, PROBABILITY]


def whole(lowest: int, highest: int, *, example: str = "") -> Quantity:
    """Return the quantity of whole numbers within a range."""
    return COUNT.between(lowest, highest, example=example)


def number(lowest: float, highest: float, *, above: bool = False, example: str = "") -> Quantity:
    """Return the quantity of numbers within a range; with `above`, `lowest` itself is invalid."""
    return replace(NUMBER, lowest=lowest, highest=highest, lowest_excluded=above, example=example)


def without_unit(name: str) -> str:
    """Return a scenario's name for a quantity of the engine: `retransmission_timeout` without `_ps`."""
    for unit in _OF_SUFFIXES:
        name = name.removesuffix(unit)
    return name


def quantity_of(name: str) -> Quantity:
    """Return how a scenario writes a quantity, by the unit that ends the engine's name for it."""
    return next((each for unit, each in _OF_SUFFIXES.items() if name.endswith(unit)), PLAIN_NUMBER)
