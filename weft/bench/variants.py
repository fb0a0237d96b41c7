"""The axes of a benchmark: transports, and ways of balancing load, as changes of a fabric's scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weft.bench.subject import Subject, subject_of
from weft.errors import BadInputError
from weft.scenario.dotted import plain, set_at

OWN = "own"
"""The fabric's own transport, or its own load balancing."""
Changes = Mapping[str, Any]
"""Values of a scenario's keys by dotted path; None removes a key."""

_LOSSLESS_ROCE: Changes = {
    "transport": {"congestion_control": "dcqcn"},
    "pfc.classes": [3],
    "credits": None,
    "trimming": None,
    "ecn": None,
}
_BEST_EFFORT: Changes = {
    "int": False,
    "pfc": None,
    "credits": None,
    "scheduling": None,
    "ecn": None,
    "trimming": {"classes": [3]},
}


@dataclass(frozen=True)
class Transport:
    """A transport that tests compare.

    Attributes:
        name: as `--transport` takes it.
        title: as tables have it.
        protocol: as `transport.protocol` of a scenario; None if it is the fabric's own.
        service: as `transport.service`.
        changes: of a fabric with another transport; a fabric that has this one keeps its own sections.
    """

    name: str
    title: str
    protocol: str | None = None
    service: str | None = None
    changes: Changes = field(default_factory=dict)

    def is_of(self, subject: Subject) -> bool:
        """Whether a fabric has this transport."""
        transport = subject.spec.options.transport
        return self.protocol is None or (
            transport.protocol == self.protocol and (self.service is None or transport.service == self.service)
        )


def _uet(service: str) -> Transport:
    transport = {"protocol": "uet", "service": service}
    name = f"uet-{service}"
    return Transport(name, f"UET {service.upper()}", "uet", service, {**_BEST_EFFORT, "transport": transport})


TRANSPORTS = {
    each.name: each
    for each in (
        Transport(OWN, "the fabric's own"),
        Transport("rc", "RoCEv2 RC", "rc", None, _LOSSLESS_ROCE),
        Transport("mrc", "MRC", "mrc", None, {**_BEST_EFFORT, "transport": {"protocol": "mrc"}}),
        *map(_uet, ("rud", "rod", "rudi", "uud")),
    )
}


@dataclass(frozen=True)
class LoadBalancing:
    """A way of balancing load that tests compare, for each family of transports; `title` as tables have it.

    Attributes:
        ordered: changes for transports whose packets take one path each, unless switches spread them.
        multipath: changes for transports that spread packets themselves.
    """

    name: str
    title: str
    ordered: Changes = field(default_factory=dict)
    multipath: Changes = field(default_factory=dict)


_ONE_PATH: Changes = {"transport.path": "flow", "routing.load_balancing": "flow"}
LOAD_BALANCING = {
    each.name: each
    for each in (
        LoadBalancing(OWN, "the fabric's own"),
        LoadBalancing("ecmp", "ECMP", _ONE_PATH, _ONE_PATH),
        LoadBalancing(
            "flowlet",
            "DLB (flowlet)",
            {**_ONE_PATH, "routing.load_balancing": "flowlet"},
            {**_ONE_PATH, "routing.load_balancing": "flowlet"},
        ),
        LoadBalancing(
            "spray",
            "packet spray",
            {
                **_ONE_PATH,
                "routing.load_balancing": "random",
                "transport.retransmission": "selective-repeat",
            },
            {"routing.load_balancing": "flow"},
        ),
        LoadBalancing(
            "adaptive",
            "adaptive routing",
            {
                **_ONE_PATH,
                "routing.load_balancing": "adaptive",
                "transport.retransmission": "selective-repeat",
            },
            {"transport.path": "flow", "routing.load_balancing": "adaptive"},
        ),
    )
}
_MRC_HAS_NO_PATH = "transport.path"


@dataclass(frozen=True)
class Variant:
    """A transport and a way of balancing load; both may be the fabric's own."""

    transport: str = OWN
    load_balancing: str = OWN

    @property
    def title(self) -> str:
        """As reports name it; "" for the fabric as it is."""
        parts = []
        if self.transport != OWN:
            parts.append(TRANSPORTS[self.transport].title)
        if self.load_balancing != OWN:
            parts.append(LOAD_BALANCING[self.load_balancing].title)
        return " + ".join(parts)


def variants_of(transports: Sequence[str], load_balancings: Sequence[str]) -> list[Variant]:
    """Return every combination, each once.

    Raises:
        BadInputError: a name is unknown.
    """
    for option, given, valid in (
        ("--transport", transports, TRANSPORTS),
        ("--load-balancing", load_balancings, LOAD_BALANCING),
    ):
        for name in given:
            if name not in valid:
                raise BadInputError(f"'{name}'", place=option, valid=valid)
    return list(
        dict.fromkeys(
            Variant(transport, balancing)
            for transport in transports or (OWN,)
            for balancing in load_balancings or (OWN,)
        )
    )


def with_variant(subject: Subject, variant: Variant) -> Subject:
    """Return a fabric with a variant's transport and load balancing.

    Raises:
        BadInputError: the fabric does not go with them.
    """
    if variant == Variant():
        return subject
    transport = TRANSPORTS[variant.transport]
    changes: dict[str, Any] = {} if transport.is_of(subject) else dict(transport.changes)
    protocol = transport.protocol or subject.spec.options.transport.protocol
    service = transport.service or subject.spec.options.transport.service
    changes.update(_balancing(LOAD_BALANCING[variant.load_balancing], protocol, service, subject.nics))
    tree = changed(subject.tree, changes)
    return replace(subject_of(tree, f"{subject.name} with {variant.title}"), name=subject.name)


def _balancing(balancing: LoadBalancing, protocol: str, service: str, nics: int) -> Changes:
    if protocol == "rc" or (protocol == "uet" and service == "rod"):
        own = ("transport.retransmission",) if protocol == "uet" else ()
        return {key: value for key, value in balancing.ordered.items() if key not in own}
    if protocol == "mrc" and _MRC_HAS_NO_PATH in balancing.multipath:
        others = {key: value for key, value in balancing.multipath.items() if key != _MRC_HAS_NO_PATH}
        # One entropy value for each NIC: one path in each plane.
        return {**others, "transport.ev_count": nics, "transport.ev_backups": 0}
    return balancing.multipath


def changed(tree: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """Return a scenario's tree with changes, in their order."""
    found: dict[str, Any] = plain(tree)
    for key, value in changes.items():
        if value is None:
            _remove(found, key)
        else:
            set_at(found, key, plain(value))
    return found


def _remove(tree: dict[str, Any], key: str) -> None:
    *sections, name = key.split(".")
    here: Any = tree
    for section in sections:
        here = here.get(section) if isinstance(here, dict) else None
    if isinstance(here, dict):
        here.pop(name, None)
