"""Checks that involve several keys of a scenario."""

from __future__ import annotations

from weft.controller.features.identity import class_by_dscp
from weft.engine import CongestionNeeds
from weft.errors import InvalidValueError, translated
from weft.quantities.traffic_classes import DATA_CLASS
from weft.scenario.link_retry import check_link_retry
from weft.scenario.model import Scenario
from weft.scenario.options import MAX_SLOTS, FabricOptions
from weft.scenario.places import KeyProblem
from weft.scenario.routing_checks import check_order
from weft.scenario.tenants import check_tenant, check_tenants
from weft.scenario.topology import check_fabric
from weft.scenario.traffic import check_starts_by_itself
from weft.topologies import FabricSpec
from weft.traffic.class_reference import is_class_reference, short_reference
from weft.traffic.ev_profiles import MAX_EVS
from weft.traffic.extensions import congestion_needs
from weft.traffic.transports.registry import require_carried


def check_across(scenario: Scenario) -> None:
    """Check a scenario's sections against each other. Raises KeyProblem."""
    fabric = scenario.fabric
    check_fabric(fabric)
    check_options(scenario)
    for index, traffic in enumerate(scenario.traffic):
        check_starts_by_itself(traffic, f"traffic[{index}]")
        traffic.check(fabric, f"traffic[{index}]")
        for key, number in traffic.named_classes(f"traffic[{index}]"):
            check_class(scenario, number, key)
        transport = scenario.transport.kind
        for key, operations in traffic.posted_operations(f"traffic[{index}]"):
            with translated(InvalidValueError, KeyProblem, key):
                require_carried(transport, operations)
        for key, name, reduces in traffic.named_tenants(f"traffic[{index}]"):
            check_tenant(scenario.tenants, name, reduces, key)


def check_options(options: FabricOptions) -> None:
    """Check options against each other. Raises KeyProblem."""
    ecn = options.ecn
    given = [value is not None for value in (ecn.kmin, ecn.kmax, ecn.pmax)]
    if any(given) and not all(given):
        raise KeyProblem("ecn", "kmin, kmax and pmax go together")
    if ecn.kmin is not None and ecn.kmax is not None and ecn.kmax <= ecn.kmin:
        raise KeyProblem("ecn.kmax", f"{ecn.kmax} B must be above kmin, {ecn.kmin} B")
    for name in options.transport.congestion_controls:
        if not is_class_reference(name):
            needs = congestion_needs(name)
            check_telemetry(options, name, needs)
            check_order(options, name, needs)
    _check_transport(options)
    check_notifications(options)
    for number in options.transport.classes:
        check_class(options, number, f"transport.classes.{number}")
    for number, faults in enumerate(options.faults.variants):
        if bool(faults.delay_probability) != bool(faults.extra_delay):
            raise KeyProblem(
                f"faults.links[{number - 1}]" if number else "faults",
                f"delay_probability ({faults.delay_probability:g}) and extra_delay ({faults.extra_delay} ps) "
                "go together",
            )
    _check_flow_control(options)
    _check_storms(options)
    check_link_retry(options)
    _check_trimming(options)
    check_tenants(options.tenants, MAX_SLOTS)
    watch = options.controller.link_watch
    if watch is not None and watch.slow is not None and (options.pfc.classes or options.credits.classes):
        raise KeyProblem(
            "controller.link_watch.slow",
            f"{watch.slow:g} does not go with pfc or credits: by its counters a paused port looks like a slow link",
        )


def _check_transport(options: FabricOptions) -> None:
    """Check that what is asked for goes with the hosts' transport. Raises KeyProblem."""
    kind = options.transport.kind
    key, name = "transport.protocol", kind.name
    if options.int_telemetry and not kind.carries_int:
        raise KeyProblem(key, f"packets of {name} carry no INT", valid=f"{name} with int: false")
    if options.fidelity.has_segments and not kind.has_segments:
        raise KeyProblem(key, f"messages of {name} do not travel in segments", valid=f"{name} without fidelity.segment")
    if options.scheduling.classes and not kind.goes_with_data_classes:
        raise KeyProblem(
            key,
            f"the code points of {name} stand for no class but {DATA_CLASS}, so it does not go with "
            f"scheduling.classes: {options.scheduling.classes}",
        )


def check_ev_count(options: FabricOptions, nics_per_host: int) -> None:
    """Check that queue pairs have an EV for each plane. Raises KeyProblem."""
    kind, count = options.transport.kind, options.transport.ev_count
    if kind.has_evs and count < nics_per_host:
        raise KeyProblem(
            "transport.ev_count",
            f"{count} EVs of a queue pair over {nics_per_host} planes",
            valid=f"{nics_per_host} to {MAX_EVS}, one for each plane",
        )


def check_storage_network(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that queue pairs can keep to a storage network, or off it. Raises KeyProblem."""
    kind = options.transport.kind
    if fabric.storage_plane is not None and kind.spans_planes:
        raise KeyProblem(
            "fabric.storage_network",
            f"each queue pair of transport.protocol: {options.transport.protocol} uses all NICs of a host",
            valid="a protocol whose queue pairs use one, or no storage network",
        )


def check_notifications(options: FabricOptions) -> None:
    """Check that switches can notify senders, and hosts take it, where a congestion control needs it.

    Raises KeyProblem.
    """
    if not options.is_notified:
        if options.transport.notification_threshold is not None:
            raise KeyProblem("transport.notification_threshold", "no congestion control takes notifications")
        return
    reasons = (
        (options.clock == "real", "clock: real, where a host's kernel would answer them"),
        (options.target == "bmv2", "target: bmv2, which counts queues in packets, and time in microseconds"),
        (options.fidelity.has_segments, "fidelity.segment, as each packet is notified of"),
        (
            not options.transport.kind.takes_notifications,
            f"transport.protocol: {options.transport.protocol}, whose packets they do not know",
        ),
        (options.telemetry.is_on, "telemetry.mode: int-md, for which notifications are not made"),
    )
    for is_given, reason in reasons:
        if is_given:
            controls = options.transport.congestion_controls
            (name, *_) = (each for each in controls if congestion_needs(each).notifications)
            problem = f"{name} needs notifications of switches, which do not go with {reason}"
            raise KeyProblem("transport.congestion_control", problem)


def check_class(options: FabricOptions, number: int, key: str) -> None:
    """Check that switches keep a class of data apart. Raises KeyProblem for the key that names it."""
    known = options.scheduling.data_classes
    if number not in known:
        raise KeyProblem(
            key,
            f"switches do not keep class {number} of data apart",
            valid=f"{', '.join(map(str, known))}; "
            f"scheduling.classes: {sorted({*options.scheduling.classes, number})} has them do so",
        )


def check_telemetry(options: FabricOptions, congestion_control: str, needs: CongestionNeeds) -> None:
    """Check that packets carry INT if a congestion control needs it. Raises KeyProblem."""
    if needs.telemetry and not options.int_telemetry:
        name = short_reference(congestion_control)
        raise KeyProblem("transport.congestion_control", f"{name} follows what INT reports, so it needs int: true")


def _check_trimming(options: FabricOptions) -> None:
    trimming = options.trimming
    for number in trimming.classes:
        check_class(options, number, "trimming.classes")
    if not trimming.classes:
        return
    lossless = sorted(set(options.lossless_classes).intersection(trimming.classes))
    if lossless:
        section = "pfc" if options.pfc.classes else "credits"
        raise KeyProblem(
            "trimming.classes", f"{lossless} are lossless by {section}.classes: their queues refuse nothing to trim"
        )
    known = class_by_dscp(options.scheduling.data_classes)
    for key in ("dscp", "last_hop_dscp"):
        of_class = known.get(getattr(trimming, key), trimming.queue)
        if of_class != trimming.queue:
            raise KeyProblem(
                f"trimming.{key}",
                f"{getattr(trimming, key)} is the DSCP of packets in class {of_class}, and trimmed packets go to "
                f"trimming.queue, {trimming.queue}",
            )


def _check_storms(options: FabricOptions) -> None:
    """Check that NICs pause only what PFC may pause, and no two storms of one at a time. Raises KeyProblem."""
    ends: dict[str | None, int | None] = {}
    for index, event in sorted(enumerate(options.events), key=lambda each: each[1].at or 0):
        if not event.is_storm:
            continue
        pausable = sorted(set(options.pfc.classes))
        if not pausable:
            raise KeyProblem(
                f"events[{index}].state", "storming: links have no PFC, so nobody obeys", valid="pfc.classes: [3]"
            )
        if unknown := sorted(set(event.classes or ()) - set(pausable)):
            raise KeyProblem(f"events[{index}].classes", f"{unknown} are not in pfc.classes", valid=pausable)
        if event.host in ends and (ends[event.host] is None or (ends[event.host] or 0) >= (event.at or 0)):
            raise KeyProblem(f"events[{index}].at", f"{event.host} is storming already at that time")
        ends[event.host] = event.until


def _check_flow_control(options: FabricOptions) -> None:
    if not options.credits.classes:
        return
    if options.pfc.classes:
        raise KeyProblem(
            "pfc.classes",
            f"{options.pfc.classes} and credits.classes: {options.credits.classes} exclude each other: a link has "
            "one flow control",
        )
    if not all(faults.keeps_order_and_number for faults in options.faults.variants):
        raise KeyProblem(
            "faults",
            "duplicate and delay_probability do not go with credits, which count what comes, in order; loss and "
            "bit_error_rate do",
        )
