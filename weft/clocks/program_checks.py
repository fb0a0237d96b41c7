"""Checks which features of a scenario switches' own programs support, and which are disabled because they do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.controller.counters import PORT_RECEIVED, PORT_SENT
from weft.controller.features import FEATURES, ecn, load_balancing, telemetry_int
from weft.controller.pipeline import SLOT_REGISTER, Pipeline, Pipelines
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.single_paths import ECMP
from weft.quantities.readable import counted
from weft.scenario.options import FabricOptions, Service
from weft.scenario.places import KeyProblem
from weft.traffic.class_reference import short_reference
from weft.traffic.extensions import congestion_needs

_ROUTES = "routes"
_OFF = {name: f"{name} is off" for name in FEATURES} | {
    _ROUTES: "there are no routes of Weft's",
    ECMP: "each prefix has one next hop",
    "ecn": "ECN marking is off",
    "identity": "classes and switches' own addresses are not set",
    "neighbours": "they do not answer ARP and neighbour discovery",
    "time exceeded": "traceroute does not see them",
}
"""Consequence of a feature that a program has no tables for."""
_SERVICE_TABLES: dict[Service, tuple[str, ...]] = {
    "synchronisation": FEATURES.named("services").tables,
    "parameter_cache": FEATURES.named("parameter cache").tables,
}
_EVERY_IP_TABLE = ("ipv4_lpm", "ipv6_lpm")
_SHOWN = 4


def options_of_programs(options: FabricOptions, pipelines: Pipelines) -> FabricOptions:
    """Return the options as the programs allow: packets carry no INT that a switch would not stamp.

    Raises:
        KeyProblem: the scenario asks for something by name that the programs cannot do; says which table is missing.
    """
    without_int = _lacking(pipelines, telemetry_int.TABLE)
    if without_int and options.int_telemetry:
        if "int_telemetry" in options.model_fields_set:
            raise KeyProblem("int", f"true, and the program of {_some(without_int)} has no table {telemetry_int.TABLE}")
        _require_no_telemetry(options, without_int)
        options = options.changed(int_telemetry=False)
    _require_ecn(options, pipelines)
    _require_routing(options, pipelines)
    if options.scheduling.classes:
        _require_on_some("scheduling.classes", pipelines, "class_map")
    for service in options.services:
        for table in _SERVICE_TABLES[service]:
            _require_on_all("services", pipelines, table, f"the service {service}")
    if options.is_notified:
        for table in FEATURES.named("bolt").tables:
            _require_on_all("transport.congestion_control", pipelines, table, "notifications")
    if options.telemetry.is_on:
        for table in FEATURES.named("INT-MD").tables:
            _require_on_all("telemetry.mode", pipelines, table, "int-md")
    readers = {"controller.link_watch": options.controller.link_watch, "health": options.health}
    for key in (key for key, section in readers.items() if section is not None):
        for counter in (PORT_RECEIVED, PORT_SENT):
            _require_counter(key, pipelines, counter)
    return options


def _require_no_telemetry(options: FabricOptions, without_int: Sequence[str]) -> None:
    """Check that nothing follows INT where packets cannot carry it. Raises KeyProblem."""
    lacking = f"the program of {_some(without_int)} has no table {telemetry_int.TABLE}"
    if options.observe.int_flows:
        raise KeyProblem("observe.int", f"records INT, and {lacking}")
    for name in options.transport.congestion_controls:
        if congestion_needs(name).telemetry:
            raise KeyProblem(
                "transport.congestion_control",
                f"{short_reference(name)} follows what INT reports, and {lacking}",
            )


def require_aggregation(pipelines: Pipelines, key: str) -> None:
    """Check that all switches can aggregate, for an item of the traffic. Raises KeyProblem."""
    lacking = _where(pipelines, lambda each: not each.slot_capacity())
    if lacking:
        raise KeyProblem(
            key,
            f"reduces in the network, and the program of {_some(lacking)} has no register {SLOT_REGISTER} "
            "(weft/aggregation.p4 has it)",
        )


def left_out_lines(pipelines: Pipelines, left_out: Mapping[str, Mapping[str, str]], *, has_lost_int: bool) -> list[str]:
    """Return what is off because programs have no place for it, as sentences.

    `left_out` is what `FabricController.left_out` says; `has_lost_int`: packets would carry INT otherwise.
    """
    features: dict[tuple[str, str], list[str]] = {}
    for switch, by_table in left_out.items():
        # A feature once, by the first table that it lacks.
        first = {_feature(table): lacking for table, lacking in reversed(list(by_table.items()))}
        for feature, lacking in reversed(list(first.items())):
            features.setdefault((feature, lacking), []).append(switch)
    if has_lost_int:
        without = _lacking(pipelines, telemetry_int.TABLE)
        features["INT", f"no table {telemetry_int.TABLE}"] = without
    return [
        f"{_subject(names, pipelines)} {lacking}: {_OFF[feature]}" for (feature, lacking), names in features.items()
    ]


def _feature(table: str) -> str:
    if table == ECMP:
        return ECMP
    return next((each.name for each in FEATURES.values() if table in each.tables), _ROUTES)


def _subject(names: Sequence[str], pipelines: Pipelines) -> str:
    if len(names) == len(pipelines):
        return "switches have"
    return f"{_some(names)} {'has' if len(names) == 1 else 'have'}"


def _require_ecn(options: FabricOptions, pipelines: Pipelines) -> None:
    if "ecn" in options.model_fields_set and options.ecn.model_fields_set:
        _require_on_some("ecn", pipelines, ecn.TABLE)


def _require_routing(options: FabricOptions, pipelines: Pipelines) -> None:
    routing = options.routing
    if routing.load_balancing != load_balancing.DEFAULT_LOAD_BALANCING:
        _require_on_some("routing.load_balancing", pipelines, load_balancing.TABLE)
    if "kind" in routing.model_fields_set:
        own = "ipv6_lpm" if options.ip_version == 6 else "ipv4_lpm"
        for table in ROUTING_KINDS.named(routing.kind).tables:
            if table == own or table not in _EVERY_IP_TABLE:
                _require_on_all("routing.kind", pipelines, table, routing.kind)


def _require_on_all(key: str, pipelines: Pipelines, table: str, what: str) -> None:
    lacking = _lacking(pipelines, table)
    if lacking:
        raise KeyProblem(key, f"{what} needs the table {table}, which the program of {_some(lacking)} has not")


def _require_on_some(key: str, pipelines: Pipelines, table: str) -> None:
    lacking = _lacking(pipelines, table)
    if len(lacking) == len(pipelines):
        raise KeyProblem(key, f"no switch's program has the table {table}, which this fills")


def _lacking(pipelines: Pipelines, table: str) -> list[str]:
    return _where(pipelines, lambda each: table not in each.names.tables)


def _where(pipelines: Pipelines, holds: Callable[[Pipeline], bool]) -> list[str]:
    """Return the switches whose programs pass a test; each program is tested once."""
    known = {id(each): each for each in pipelines.values()}
    found = {number for number, each in known.items() if holds(each)}
    return [name for name, each in pipelines.items() if id(each) in found]


def _require_counter(key: str, pipelines: Pipelines, name: str) -> None:
    lacking = _where(pipelines, lambda each: all(counter.preamble.alias != name for counter in each.p4info.counters))
    if lacking:
        raise KeyProblem(key, f"the program of {_some(lacking)} has no counter {name}")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {counted(len(names) - _SHOWN, 'other')}" if len(names) > _SHOWN else shown
