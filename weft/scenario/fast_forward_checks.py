"""Refuses scenarios in which operations that are repeated without packets would mislead."""

from __future__ import annotations

from weft.paths import FABRIC_P4
from weft.scenario.options import FabricOptions
from weft.scenario.places import KeyProblem

KEY = "fidelity.fast_forward"
_WITHOUT = f"leave {KEY} out"
_OF_PACKETS = (
    "queues",
    "flows",
    "int_flows",
    "timelines",
    "loads",
    "counters",
    "registers",
    "state_at",
    "state_series",
    "captures",
)
"""Fields of `observe` that show or count packets, which repeated operations have none of."""


def check_fast_forward(options: FabricOptions, planes: int = 1) -> None:
    """Check that repeated operations go with the other options, on hosts in so many planes. Raises KeyProblem."""
    if options.fidelity.fast_forward is None:
        return
    for key, why in _reasons(options, planes):
        raise KeyProblem(KEY, f"fast-forward does not go with {key}: {why}", valid=_WITHOUT)


def check_capture_of_repeated(options: FabricOptions) -> None:
    """Check that frames may be captured. Raises KeyProblem."""
    if options.fidelity.fast_forward is not None:
        raise KeyProblem(KEY, "repeated operations have no packets to capture", valid=_WITHOUT)


def _reasons(options: FabricOptions, planes: int) -> list[tuple[str, str]]:
    """Return keys that do not go with it, and why."""
    observe, fields = options.observe, type(options.observe).model_fields
    found = [
        (options.clock == "real", "clock: real", "real hosts send all packets"),
        (
            options.p4 != FABRIC_P4 or bool(options.programs),
            "p4" if options.p4 != FABRIC_P4 else "programs",
            "a program of yours may keep state that each packet changes",
        ),
        (any(each.any for each in options.faults.variants), "faults", "they strike packets at random"),
        (bool(options.link_retry.links), "link_retry", "its buffers hold packets of other operations"),
        (bool(options.events), "events", "what they change would not reach an operation that is being repeated"),
        (
            options.transport.kind.spans_planes and planes > 1,
            f"transport.protocol: {options.transport.protocol} on hosts with {planes} NICs",
            "an operation would be on all planes, of which it looks at one",
        ),
        (bool(options.circuits.schedule), "circuits.schedule", "links change under operations"),
        (options.host is not None, "host", "operations of other ranks take turns on its links"),
        (bool(options.pfc.classes), "pfc", "pauses spread to the ports of other operations"),
        (bool(options.credits.classes), "credits", "waiting spreads to the ports of other operations"),
        (
            options.controller.controller_class is not None,
            "controller.class",
            "a controller of yours may act on packets",
        ),
        *(
            (
                bool(getattr(observe, name)),
                f"observe.{fields[name].alias or name}",
                "it shows packets",
            )
            for name in _OF_PACKETS
        ),
    ]
    return [(key, why) for applies, key, why in found if applies]
