"""The table of prices and watts for `weft cost`: its sections, and reading its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import pydantic
from pydantic import Field

from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.quantities.definitions import UNITS_REQUIRED, Rate, number, whole
from weft.quantities.section import Section
from weft.quantities.text import Text
from weft.quantities.units import shortest_rate
from weft.scenario import Change, apply_changes, read_mapping, read_yaml
from weft.scenario.explain import explain
from weft.scenario.places import Places
from weft.topologies.addressing import MAX_PORTS

SHIPPED_TABLE = Path(__file__).parent / "prices.yaml"
_MOST = 1e9

Optics = Literal["pluggable", "lpo", "cpo"]
"""Kinds of optics: modules with a signal processor, linear ones without (LPO), engines in a switch's package (CPO)."""

Money = Annotated[float, number(0, _MOST, example="450")]
Watts = Annotated[float, number(0, 1e6, example="10")]
Metres = Annotated[float, number(0, 1e5, example="3")]
_Line = Annotated[str, Text("a text of one line", r"\A[^\n\r\x00-\x1f\x7f]{1,300}\Z", "assumed")]
_Name = Annotated[str, Text("a name of letters, digits, - and _", r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,31}\Z", "H100")]


class SwitchPrice(Section):
    """A switch as sold."""

    ports: Annotated[int, whole(1, 4096)]
    """Ports, all with the same rate."""
    rate: Rate
    """Rate of a port."""
    split: Annotated[int, whole(1, 64)] = 1
    """Most links that a port can be split into, each with at most its share of the port's rate."""
    price: Money
    """Price without transceivers."""
    watts: Watts
    """Power without transceivers."""

    @property
    def name(self) -> str:
        """Name in the bill."""
        return f"switch {self.ports} x {shortest_rate(self.rate)}"

    def ports_for(self, links: int, rate_bps: int) -> int:
        """Return how many ports are needed for `links` links of a rate; ValueError for a rate above the ports'."""
        if rate_bps > self.rate:
            raise ValueError(f"{rate_bps} b/s is above {self.rate} b/s")
        return -(-links // min(self.split, self.rate // rate_bps))


class NicPrice(Section):
    """A NIC with one port."""

    rate: Rate
    price: Money
    watts: Watts


class CopperPrice(Section):
    """A copper cable with its two ends."""

    rate: Rate
    reach_m: Metres
    """Longest available cable."""
    price: Money
    """Price regardless of length."""
    price_per_m: Money = 0.0
    watts: Watts = 0.0
    """Power of both ends together."""


class TransceiverPrice(Section):
    """An optical transceiver; a link has two."""

    rate: Rate
    reach_m: Metres
    """Longest fibre."""
    price: Money
    watts: Watts
    optics: Optics = "pluggable"
    year: Annotated[int, whole(1990, 2100)] | None = None
    """From when it was to be had."""


class FibrePrice(Section):
    """The fibre of an optical link, with its connectors."""

    price: Money
    """Price regardless of length."""
    price_per_m: Money = 0.0


class CircuitSwitchPrice(Section):
    """An optical circuit switch as sold."""

    ports: Annotated[int, whole(1, MAX_PORTS * 64)]
    price: Money
    watts: Watts


class StateWatts(Section):
    """Power of an accelerator by what it does, and of its share of its server's other parts (`weft power`)."""

    compute: Watts
    """While a computation runs."""
    both: Watts | None = None
    """While a computation runs and a collective or message of the rank is under way; by default as `compute`."""
    communicate: Watts
    """While a collective or message of the rank is under way and nothing computes."""
    idle: Watts
    """Otherwise."""
    host: Watts
    """Processors, memory, fans and scale-up switches of the server over its accelerators, at all times."""

    def of(self, state: str) -> float:
        """Return the watts of a state by its key."""
        return self.compute if state == "both" and self.both is None else float(getattr(self, state))


class AcceleratorPrice(Section):
    """An accelerator with its share of its server, without the fabric's NICs."""

    price: Money
    watts: Watts
    """Largest power, which the bill counts at all times."""
    states: StateWatts | None = None
    """Power over time, for `weft power`."""


class FloorLayout(Section):
    """Positions of racks and lengths of cables; `weft.cost.layout` has the model."""

    accelerators_per_rack: Annotated[int, whole(1, 4096)] = 32
    """Hosts fill racks in order; a host with several accelerators is in one rack."""
    racks_per_row: Annotated[int, whole(1, 4096)] = 16
    rack_pitch_m: Metres = 0.6
    """Distance between neighbouring racks in a row."""
    row_pitch_m: Metres = 3.0
    """Distance between neighbouring rows."""
    in_rack_m: Metres = 2.0
    """Length of a cable within a rack."""
    drop_m: Metres = 2.0
    """Height from a port to the tray above the racks, at each end of a cable between racks."""
    slack_m: Metres = 1.0
    """Extra length of a cable between racks."""


class Energy(Section):
    """Cost of operation over years."""

    price_per_kwh: Money = 0.10
    pue: Annotated[float, number(1, 10, example="1.3")] = 1.3
    """Power usage effectiveness: energy of the whole site divided by its equipment's energy (ISO/IEC 30134-2)."""
    years: Annotated[float, number(0, 50, above=True, example="4")] = 4.0
    """Years for which the equipment is used and paid."""
    cost_of_capital: Annotated[float, number(0, 1, example="0.08")] = 0.0
    """Yearly interest, as a share: the price is paid as an annuity over `years`. 0: no interest."""


class PriceTable(Section):
    """All assumptions of `weft cost`."""

    date: _Line
    """When the figures were assumed or collected."""
    source: _Line
    """Source of the figures; every output repeats it."""
    optics: Optics = "pluggable"
    """Optics of the fabric. `cpo` is of switches' ports alone: NICs have pluggable transceivers then."""
    currency: Annotated[str, Text("a currency", r"\A[^\s\x00-\x1f\x7f]{1,8}\Z", "$")] = "$"
    switches: list[SwitchPrice] = Field(min_length=1)
    nics: list[NicPrice] = Field(min_length=1)
    copper: list[CopperPrice] = Field(default_factory=list)
    """Copper cables; if empty, all links are optical."""
    transceivers: list[TransceiverPrice] = Field(min_length=1)
    fibre: FibrePrice
    circuit_switches: list[CircuitSwitchPrice] = Field(default_factory=list)
    accelerators: dict[_Name, AcceleratorPrice] = Field(default_factory=dict)
    layout: FloorLayout = FloorLayout()
    energy: Energy = Energy()

    def accelerator(self, name: str) -> AcceleratorPrice:
        """Return an accelerator by name. Raises BadInputError, which lists valid names."""
        if name not in self.accelerators:
            raise BadInputError(
                f"the table of prices has no accelerator '{name}'; {did_you_mean(name, self.accelerators)}"
            )
        return self.accelerators[name]

    def states_of(self, name: str) -> StateWatts:
        """Return an accelerator's watts by state. Raises BadInputError if the table lacks it, or these."""
        states = self.accelerator(name).states
        if states is None:
            valid = [each for each, found in self.accelerators.items() if found.states is not None]
            raise BadInputError(
                "is missing: the power of an accelerator by what it does",
                place=f"accelerators.{name}.states",
                valid=valid,
            )
        return states


class _Rated(Protocol):
    @property
    def rate(self) -> int: ...


_RatedKind = TypeVar("_RatedKind", bound=_Rated)


def of_class(items: Iterable[_RatedKind], rate_bps: int, what: str) -> list[_RatedKind]:
    """Return the items with the lowest sufficient rate. Raises BadInputError, which gives the largest rate."""
    listed = list(items)
    rates = sorted({each.rate for each in listed})
    least = next((rate for rate in rates if rate >= rate_bps), None)
    if least is None:
        raise BadInputError(
            f"the table of prices has no {what} for {shortest_rate(rate_bps)}",
            valid=f"up to {shortest_rate(rates[-1]) if rates else 'nothing, there is none'}",
        )
    return [each for each in listed if each.rate == least]


def shipped_table_text() -> str:
    """Return the text of the shipped table, including comments."""
    return SHIPPED_TABLE.read_text(encoding="utf-8")


def read_prices(path: Path | None = None, changes: Sequence[Change] = ()) -> PriceTable:
    """Return the table from a file, by default the shipped one, with changes of its keys applied.

    Raises:
        BadInputError: the file is unreadable, or a key or value is invalid; names the place and valid values.
    """
    source = path or SHIPPED_TABLE
    tree: dict[str, Any] = read_mapping(source, "a table of prices") if path else read_yaml(shipped_table_text(), "")
    options = apply_changes(tree, changes)
    places = Places(str(path) if path else "the shipped table of prices", tree, options)
    try:
        return PriceTable.model_validate(dict(tree), context={UNITS_REQUIRED: True})
    except pydantic.ValidationError as error:
        raise explain(error, PriceTable, tree, places) from None
