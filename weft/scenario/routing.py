"""Section of a scenario file on the paths that packets take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import field_validator, model_validator

from weft.controller.features.intermediates import DEFAULT_UGAL_THRESHOLD_BYTES, UgalSettings
from weft.controller.features.load_balancing import (
    DEFAULT_DEPTH_LIFETIME_PS,
    DEFAULT_FLOWLET_GAP_PS,
    DEFAULT_HYSTERESIS_BYTES,
    DEFAULT_LOAD_BALANCING,
    LoadBalancingMode,
    LoadBalancingSettings,
)
from weft.controller.routing import DEFAULT_ROUTING, ROUTING_KINDS
from weft.controller.routing.ev_paths import EvRoutesKind
from weft.hints import did_you_mean
from weft.quantities.definitions import PositiveTime, SizeOrZero
from weft.quantities.example import Example
from weft.quantities.units import shown
from weft.scenario.values import FeatureSection, Name, SectionKeyError

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions

_OF_MODES: dict[str, tuple[LoadBalancingMode, ...]] = {
    "flowlet_gap": ("flowlet", "adaptive"),
    "adaptive_unit": ("adaptive",),
    "hysteresis": ("adaptive",),
    "depth_lifetime": ("adaptive",),
}


class RoutingSection(FeatureSection):
    """Which paths there are, and how switches choose among equal ones."""

    kind: Annotated[
        str, Name("kind of routing", lambda: ROUTING_KINDS), Example("dimension_order", ("fabric={shape: [4, 4]}",))
    ] = DEFAULT_ROUTING
    """By which switches have their routes."""
    load_balancing: LoadBalancingMode = DEFAULT_LOAD_BALANCING
    """How a switch chooses among equal next hops.

    `flow`: by a hash of the five-tuple. `flow_and_queue_pair`: that and RoCEv2's destination queue pair (E-ECMP).
    `flowlet`: at random, again after a pause of the flow. `round_robin`, `random`: each packet of a flow takes the next
    one, or any. `adaptive`: by the depths of three queues, the flow's own (for packets, the next one's) and two at
    random.
    """
    flowlet_gap: Annotated[PositiveTime, Example("100us", (".load_balancing=flowlet",))] = DEFAULT_FLOWLET_GAP_PS
    """A pause so long lets `flowlet`, and `adaptive` by flowlets, choose again."""
    adaptive_unit: Annotated[Literal["packet", "flowlet"] | None, Example("flowlet", (".load_balancing=adaptive",))] = (
        None
    )
    """Unit that `adaptive` chooses for; by default packets if `transport.retransmission` is selective-repeat, which
    accepts any order, otherwise flowlets."""
    hysteresis: Annotated[SizeOrZero, Example("32KiB", (".load_balancing=adaptive",))] = DEFAULT_HYSTERESIS_BYTES
    """`adaptive` keeps to a flow's own next hop unless another one's queue is shorter by at least this."""
    depth_lifetime: Annotated[PositiveTime, Example("2ms", (".load_balancing=adaptive",))] = DEFAULT_DEPTH_LIFETIME_PS
    """`adaptive`, and UGAL, take a queue from which nothing was sent for longer as empty."""
    ugal_threshold: Annotated[
        SizeOrZero, Example("64KiB", (".kind=dimension_order_ugal", "fabric={shape: [4, 4]}"))
    ] = DEFAULT_UGAL_THRESHOLD_BYTES
    """Kinds by UGAL keep to the minimal route unless its queue times its hops exceeds the other one's by more."""

    @field_validator("kind")
    @classmethod
    def _check_kind(cls, name: str) -> str:
        if name not in ROUTING_KINDS:
            raise ValueError(f"no kind of routing {shown(name)}; {did_you_mean(name, list(ROUTING_KINDS))}")
        return name

    @model_validator(mode="after")
    def _check_parameters(self) -> RoutingSection:
        compares_queues = _compares_queues(self.kind)
        if "ugal_threshold" in self.model_fields_set and not compares_queues:
            valid = ", ".join(kind for kind in ROUTING_KINDS if _compares_queues(kind))
            raise SectionKeyError("ugal_threshold", f"kind: {self.kind} has none", valid=valid)
        for name, modes in _OF_MODES.items():
            if name == "depth_lifetime" and compares_queues:
                continue
            if name in self.model_fields_set and self.load_balancing not in modes:
                valid = " or ".join(modes)
                raise SectionKeyError(name, f"load_balancing: {self.load_balancing} has none", valid=valid)
        return self

    @property
    def ev_routes(self) -> EvRoutesKind | None:
        """How EVs of the hosts' transport name paths; None: switches hash them."""
        return ROUTING_KINDS.named(self.kind).ev_routes

    @property
    def follows_demand(self) -> bool:
        """Whether routes follow from the traffic that is about to run."""
        return ROUTING_KINDS.named(self.kind).follows_demand

    @property
    def has_intermediates(self) -> bool:
        """Whether packets may go to an intermediate first, each to another one."""
        return ROUTING_KINDS.named(self.kind).intermediates is not None

    def of_features(self, options: FabricOptions) -> Iterator[object]:
        """Return how switches choose among next hops, and between routes of different length."""
        yield options.load_balancing
        yield self.ugal

    @property
    def ugal(self) -> UgalSettings:
        """Return by what switches choose between routes of different length."""
        return UgalSettings(self.ugal_threshold, self.depth_lifetime)

    def settings(self, retransmission: str) -> LoadBalancingSettings:
        """Return the switches' settings; `retransmission` is the hosts'."""
        unit = self.adaptive_unit or ("packet" if retransmission == "selective-repeat" else "flowlet")
        per_packet = self.load_balancing == "adaptive" and unit == "packet"
        return LoadBalancingSettings(
            mode=self.load_balancing,
            flowlet_gap_ps=0 if per_packet else self.flowlet_gap,
            hysteresis_bytes=self.hysteresis,
            depth_lifetime_ps=self.depth_lifetime,
        )


def _compares_queues(kind: str) -> bool:
    """Return whether a kind of routing chooses by UGAL."""
    return "ecmp_nonminimal" in ROUTING_KINDS.named(kind).tables
