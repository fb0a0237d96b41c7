"""Tenants' shares of all links: a class for each tenant's traffic, served by weighted turns, with memory of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from weft.controller.routing import ROUTING_KINDS
from weft.paths import FABRIC_P4
from weft.quantities.traffic_classes import DATA_CLASS
from weft.scenario.places import KeyProblem
from weft.scenario.tenants import TenantSection
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions

TENANT_CLASSES = (5, 4, 2, 1)
"""Classes of tenants with shares, in order; all other data stay in the class of data, plain IP traffic in class 0."""
_OF_OTHERS = (DATA_CLASS, 0)
LEAST_SHARE = 0.01
"""Least share of everybody else, and of a tenant."""
_WHOLE = 1.0
_ROUNDING = 1e-9
_LEAST_QUANTUM = 64
"""The smallest that a port takes."""
_HEADERS_BYTES = 128
"""More than the headers of a packet of RoCEv2."""
_RESERVED_PART = 2
"""One in so many bytes of a port's memory is divided by shares; the rest is for whoever comes first."""


def shares_of(tenants: Mapping[str, TenantSection]) -> dict[str, float]:
    """Return the shares of the tenants that have one."""
    return {name: each.share for name, each in tenants.items() if each.share is not None}


def class_of_tenant(tenants: Mapping[str, TenantSection], name: str) -> int:
    """Return the class of a tenant's traffic: the class of data for tenants without a share, and for nobody ("")."""
    return dict(zip(shares_of(tenants), TENANT_CLASSES, strict=False)).get(name, DATA_CLASS)


def with_tenant_shares(options: FabricOptions, fabric: FabricSpec) -> FabricOptions:
    """Return options with the classes, turns and memory that give tenants their shares. Raises KeyProblem."""
    shares = shares_of(options.tenants)
    if not shares:
        return options
    first = f"tenants.{next(iter(shares))}.share"
    _check(options, fabric, shares, first)
    classes = dict(zip(TENANT_CLASSES, shares.values(), strict=False))
    rest = max(LEAST_SHARE, _WHOLE - sum(shares.values()))
    weights = classes | dict.fromkeys(_OF_OTHERS, rest / len(_OF_OTHERS))
    # Short rounds: what waits for the others' turns looks like congestion to hosts. A class may take several rounds to
    # a frame.
    unit_bytes = max(
        (options.mtu_bytes + _HEADERS_BYTES) / max(weights.values()), _LEAST_QUANTUM / min(weights.values())
    )
    quantum = {number: math.ceil(unit_bytes * weight) for number, weight in weights.items()}
    scheduling = options.scheduling.model_copy(update={"classes": sorted(classes), "quantum": quantum})
    buffer = options.buffer
    if "reserved" not in buffer.model_fields_set:
        port_bytes = min(port.link.memory_to_share_bytes for switch in fabric.switches for port in switch.ports)
        reserved = {number: int(port_bytes * weight / _RESERVED_PART) for number, weight in weights.items()}
        buffer = buffer.model_copy(update={"reserved": reserved})
    return options.changed(scheduling=scheduling, buffer=buffer)


def _check(options: FabricOptions, fabric: FabricSpec, shares: Mapping[str, float], first: str) -> None:
    if len(shares) > len(TENANT_CLASSES):
        raise KeyProblem("tenants", f"{len(shares)} tenants have a share", valid=f"up to {len(TENANT_CLASSES)}")
    if sum(shares.values()) > _WHOLE - LEAST_SHARE + _ROUNDING:
        raise KeyProblem(
            "tenants",
            f"tenants have {sum(shares.values()):g} of each link together",
            valid=f"up to {_WHOLE - LEAST_SHARE:g}",
        )
    scheduling = options.scheduling
    if scheduling.classes or scheduling.quantum:
        raise KeyProblem(
            "scheduling", f"{first} divides ports among classes itself", valid="no classes and no quantum, or no share"
        )
    for name in ("pfc", "credits", "trimming"):
        if getattr(options, name).classes:
            raise KeyProblem(f"{name}.classes", f"does not go with {first}, which has classes of its own", valid="none")
    lanes = ROUTING_KINDS.named(options.routing.kind).lanes_of_planes(fabric)
    if any(each.count > 1 for each in lanes):
        raise KeyProblem(
            "routing.kind",
            f"{options.routing.kind} divides data into lanes, which take the classes of {first}",
            valid="a kind with one lane on this fabric",
        )
    if options.p4 != FABRIC_P4 or options.programs:
        raise KeyProblem(
            first, "is for Weft's own program, which sorts packets into classes", valid="no p4 or programs"
        )
    if options.target != "embedded":
        raise KeyProblem("target", f"{options.target} has no weighted turns, which {first} needs", valid="embedded")
