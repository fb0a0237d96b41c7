"""Commands on registers, counters and meters.

BMv2's meter rates are per microsecond, P4Runtime's per second; bursts are the same in both, in bytes or packets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from finsy.proto import p4d, p4i, p4r

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.names import find
from weft.controller.switch_cli.session import CommandSession
from weft.controller.switch_cli.tables import bare, parse_handle, rates_of
from weft.controller.switch_cli.values import encoded, parse_value, parse_whole

MICROSECONDS = 10**6
_RATE = re.compile(r"\A([0-9]{1,12}(?:\.[0-9]{1,12})?):([0-9]{1,18})\Z")
_MOST_RATE = _MOST_COUNT = 2**63 - 1


def index_below(size: int, word: str) -> p4r.Index:
    """Return an index of an array with `size` cells. Raises CommandError."""
    return p4r.Index(index=parse_whole(word, 0, size - 1, "index"))


# Registers


def register_named(session: CommandSession, name: str) -> tuple[p4i.Register, int]:
    """Return a register and the width of its cells in bits. Raises CommandError."""
    register = find(session.info.registers, name, "register")
    spec = register.type_spec.bitstring
    width = spec.bit.bitwidth if spec.HasField("bit") else spec.int.bitwidth
    if not width:
        raise CommandError(f"cells of {register.preamble.name} are not numbers, the only supported form")
    return register, width


def _number(data: p4d.P4Data) -> int:
    return int.from_bytes(data.bitstring, "big")


async def read_register(session: CommandSession, register: p4i.Register, index: p4r.Index | None) -> list[int]:
    """Return the value of one cell of a register, or of all (None)."""
    query = p4r.RegisterEntry(register_id=register.preamble.id, index=index)
    return [_number(each.register_entry.data) for each in await session.read(register_entry=query)]


@command("register_read", "<register> [index]")
async def register_read(session: CommandSession, words: Sequence[str]) -> str:
    """Show one cell of a register, or all."""
    register, _ = register_named(session, words[0])
    if len(words) > 1:
        index = index_below(register.size, words[1])
        return f"{words[0]}[{index.index}]= {(await read_register(session, register, index))[0]}"
    return f"{words[0]}= " + ", ".join(map(str, await read_register(session, register, None)))


@command("register_write", "<register> <index> <value>")
async def register_write(session: CommandSession, words: Sequence[str]) -> str:
    """Set one cell of a register."""
    register, width = register_named(session, words[0])
    value = parse_value(words[2], width, f"value of {register.preamble.name}")
    await write_register(session, register, [index_below(register.size, words[1])], value)
    return ""


async def write_register(
    session: CommandSession, register: p4i.Register, indices: Iterable[p4r.Index], value: int
) -> None:
    """Set cells of a register."""
    data = p4d.P4Data(bitstring=encoded(value))
    cells = (p4r.RegisterEntry(register_id=register.preamble.id, index=index, data=data) for index in indices)
    await session.write_all(p4r.Update.MODIFY, [p4r.Entity(register_entry=cell) for cell in cells])


@command("register_reset", "<register>")
async def register_reset(session: CommandSession, words: Sequence[str]) -> str:
    """Set all cells of a register to 0."""
    register, _ = register_named(session, words[0])
    entry = p4r.RegisterEntry(register_id=register.preamble.id, data=p4d.P4Data(bitstring=b"\0"))
    await session.write(p4r.Update.MODIFY, register_entry=entry)
    return ""


# Counters


def _counter(session: CommandSession, name: str) -> p4i.Counter | p4i.DirectCounter:
    among: list[p4i.Counter | p4i.DirectCounter] = [*session.info.counters, *session.info.direct_counters]
    return find(among, name, "counter")


def _table_of(session: CommandSession, table_id: int) -> p4i.Table:
    tables: Sequence[p4i.Table] = session.info.tables
    return next(each for each in tables if each.preamble.id == table_id)


async def _cell(session: CommandSession, counter: str, index: str) -> p4r.CounterEntry | p4r.DirectCounterEntry:
    """Return the entity of a counter's cell, or of a direct counter's entry with a handle."""
    found = _counter(session, counter)
    if isinstance(found, p4i.DirectCounter):
        entry = await session.entry(_table_of(session, found.direct_table_id), parse_handle(index))
        return p4r.DirectCounterEntry(table_entry=bare(entry))
    return p4r.CounterEntry(counter_id=found.preamble.id, index=index_below(found.size, index))


def _as_entity(cell: p4r.CounterEntry | p4r.DirectCounterEntry) -> dict[str, Any]:
    name = "counter_entry" if isinstance(cell, p4r.CounterEntry) else "direct_counter_entry"
    return {name: cell}


@command("counter_read", "<counter> <index>")
async def counter_read(session: CommandSession, words: Sequence[str]) -> str:
    """Show a cell of a counter, or a direct counter's value for the entry with a handle."""
    data = await read_counter(session, await _cell(session, *words))
    number = parse_handle(words[1])
    return f"{words[0]}[{number}]= ({data.byte_count} bytes, {data.packet_count} packets)"


async def read_counter(session: CommandSession, cell: p4r.CounterEntry | p4r.DirectCounterEntry) -> p4r.CounterData:
    """Return what a cell, or a direct counter's entry, has counted."""
    ((name, wanted),) = _as_entity(cell).items()
    data: p4r.CounterData = getattr((await session.read(**{name: wanted}))[0], name).data
    return data


@command("counter_write", "<counter> <index> <packets> <bytes>")
async def counter_write(session: CommandSession, words: Sequence[str]) -> str:
    """Set a cell of a counter, or a direct counter's value for the entry with a handle."""
    packets, octets = (
        parse_whole(word, 0, _MOST_COUNT, what) for word, what in zip(words[2:], ("packets", "bytes"), strict=True)
    )
    await write_counter(session, await _cell(session, *words[:2]), packets, octets)
    return f"{words[0]}[{parse_handle(words[1])}] has been updated"


async def write_counter(
    session: CommandSession, cell: p4r.CounterEntry | p4r.DirectCounterEntry, packets: int, octets: int
) -> None:
    """Set a cell, or a direct counter's entry."""
    cell.data.CopyFrom(p4r.CounterData(packet_count=packets, byte_count=octets))
    await session.write(p4r.Update.MODIFY, **_as_entity(cell))


@command("counter_reset", "<counter>")
async def counter_reset(session: CommandSession, words: Sequence[str]) -> str:
    """Set all cells or entries of a counter to 0."""
    counter = _counter(session, words[0])
    if isinstance(counter, p4i.DirectCounter):
        await reset_direct_counters(session, _table_of(session, counter.direct_table_id))
        return ""
    cells = (
        p4r.CounterEntry(counter_id=counter.preamble.id, index=p4r.Index(index=index), data=p4r.CounterData())
        for index in range(counter.size)
    )
    await session.write_all(p4r.Update.MODIFY, (p4r.Entity(counter_entry=cell) for cell in cells))
    return ""


async def reset_direct_counters(session: CommandSession, table: p4i.Table) -> None:
    """Set the counters of all entries of a table to 0."""
    cells = [
        p4r.DirectCounterEntry(table_entry=bare(entry), data=p4r.CounterData())
        for entry in await session.entries(table)
    ]
    await session.write_all(p4r.Update.MODIFY, [p4r.Entity(direct_counter_entry=cell) for cell in cells])


# Meters


def _meter(session: CommandSession, name: str) -> p4i.Meter | p4i.DirectMeter:
    among: list[p4i.Meter | p4i.DirectMeter] = [*session.info.meters, *session.info.direct_meters]
    return find(among, name, "meter")


def meter_config(words: Sequence[str]) -> p4r.MeterConfig:
    """Return the configuration of `rate:burst rate:burst`, committed then peak. Raises CommandError."""
    if len(words) != 2:
        raise CommandError(f"has {len(words)} rates", valid="two, committed and peak, each RATE_PER_MICROSECOND:BURST")
    numbers = []
    for word in words:
        match = _RATE.match(word)
        if match is None:
            raise CommandError(f"{word[:80]!r} is not RATE_PER_MICROSECOND:BURST", valid="such as 0.001:10")
        rate, burst = round(float(match[1]) * MICROSECONDS), int(match[2])
        if rate > _MOST_RATE or burst > _MOST_RATE:
            raise CommandError(f"{word[:80]!r} is out of range", valid=f"at most {_MOST_RATE} a second")
        numbers.append((rate, burst))
    (cir, cburst), (pir, pburst) = numbers
    if pir < cir:
        raise CommandError(f"the peak rate {words[1]} is below the committed rate {words[0]}", valid="at least that")
    return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)


@command("meter_set_rates", "<meter> <index> <committed> <peak>")
async def meter_set_rates(session: CommandSession, words: Sequence[str]) -> str:
    """Set the rates of a meter's cell, or of an entry: meter_set_rates METER INDEX RATE:BURST RATE:BURST."""
    meter, config = _meter(session, words[0]), meter_config(words[2:])
    if isinstance(meter, p4i.DirectMeter):
        entry = await session.entry(_table_of(session, meter.direct_table_id), parse_handle(words[1]))
        direct = p4r.DirectMeterEntry(table_entry=bare(entry), config=config)
        await session.write(p4r.Update.MODIFY, direct_meter_entry=direct)
        return ""
    cell = p4r.MeterEntry(meter_id=meter.preamble.id, index=index_below(meter.size, words[1]), config=config)
    await session.write(p4r.Update.MODIFY, meter_entry=cell)
    return ""


@command("meter_array_set_rates", "<meter> <committed> <peak>")
async def meter_array_set_rates(session: CommandSession, words: Sequence[str]) -> str:
    """Set the rates of all cells of a meter; for a table's meter, of all present and future entries."""
    meter, config = _meter(session, words[0]), meter_config(words[1:])
    if isinstance(meter, p4i.DirectMeter):
        session.rates[meter.direct_table_id] = config
        direct = [
            p4r.DirectMeterEntry(table_entry=bare(entry), config=config)
            for entry in await session.entries(_table_of(session, meter.direct_table_id))
        ]
        await session.write_all(p4r.Update.MODIFY, [p4r.Entity(direct_meter_entry=each) for each in direct])
        return ""
    cells = (
        p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=index), config=config)
        for index in range(meter.size)
    )
    await session.write_all(p4r.Update.MODIFY, (p4r.Entity(meter_entry=cell) for cell in cells))
    return ""


async def read_rates(session: CommandSession, meter: p4i.Meter, index: p4r.Index) -> p4r.MeterConfig | None:
    """Return the rates of a meter's cell, in bytes or packets per second; None if they are not set."""
    cell = p4r.MeterEntry(meter_id=meter.preamble.id, index=index)
    found = [each.meter_entry for each in await session.read(meter_entry=cell)]
    return found[0].config if found and found[0].HasField("config") else None


@command("meter_get_rates", "<meter> <index>")
async def meter_get_rates(session: CommandSession, words: Sequence[str]) -> str:
    """Show the rates of a meter's cell, or of the entry with a handle."""
    meter = _meter(session, words[0])
    if isinstance(meter, p4i.DirectMeter):
        entry = await session.entry(_table_of(session, meter.direct_table_id), parse_handle(words[1]))
        config = await rates_of(session, entry)
    else:
        config = await read_rates(session, meter, index_below(meter.size, words[1]))
    if config is None:
        return "the meter has no rates: every packet is green"
    return "\n".join(
        f"{number}: info rate = {rate / MICROSECONDS:g}, burst size = {burst}"
        for number, (rate, burst) in enumerate(((config.cir, config.cburst), (config.pir, config.pburst)))
    )
