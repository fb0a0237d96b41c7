"""NCCL's protocols: the form in which a collective's messages travel, and the time that a step takes to go on.

The receiver of LL and LL128 polls flags between the data; that of Simple waits for a signal behind a memory fence,
which takes longer. So LL halves the rate for the least latency, LL128 takes 8 of every 128 bytes, and Simple none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from weft.quantities.definitions import MESSAGE_SIZE, ShortTime
from weft.quantities.example import Example
from weft.traffic.messages import OneOf

NONE = ""
"""No protocol: messages travel as they are, and steps go on at once."""
SIMPLE, LL, LL128 = "simple", "ll", "ll128"
PROTOCOLS = (LL, LL128, SIMPLE)
"""In the order in which NCCL changes between them as sizes grow."""
AUTO_PROTOCOL = "auto"
ProtocolChoice = Literal["simple", "ll", "ll128", "auto"]
"""As a scenario names them."""
PROTOCOL_CHOICES: tuple[str, ...] = get_args(ProtocolChoice)
ProtocolName = Annotated[str, OneOf((NONE, *PROTOCOLS))]

LINE_FORMATS = {NONE: "none", SIMPLE: "none", LL: "ll", LL128: "ll128"}
"""The engine's name for the form of each protocol's messages (engine/hosts/line_format.hpp)."""
WIRE_SHARES = {NONE: 1.0, SIMPLE: 1.0, LL: 8 / 4, LL128: 128 / 120}
"""Bytes on links for each byte of data, of a message without padding."""

Threshold = Annotated[int, MESSAGE_SIZE.between(0, example="64KiB")]


@dataclass(frozen=True)
class ProtocolSettings:
    """Costs of NCCL's protocols: the keys of a scenario's section `protocols`.

    A step's latency is paid from a message's arrival until the rank goes on, in addition to links and NICs. Defaults
    are NCCL's for rings over a network and over NVLink (`hwLatencies` in its src/graph/tuning.cc).
    """

    ll_latency: ShortTime = 2_700_000
    """Latency of a step between hosts with LL."""
    ll_scale_up_latency: ShortTime = 600_000
    """The same within a host."""
    ll128_latency: ShortTime = 4_000_000
    """Latency of a step between hosts with LL128."""
    ll128_scale_up_latency: ShortTime = 1_900_000
    """The same within a host."""
    simple_latency: ShortTime = 14_000_000
    """Latency of a step between hosts with Simple."""
    simple_scale_up_latency: ShortTime = 3_400_000
    """The same within a host."""
    ll_up_to: Annotated[Threshold | None, Example("64KiB")] = None
    """Largest size for which `protocol: auto` takes LL. By default it takes LL where LL is predicted to be fastest."""
    ll128_up_to: Annotated[Threshold | None, Example("4MiB")] = None
    """Largest size for which `auto` takes LL128, where it does not take LL. By default where LL128 is predicted to be
    faster than Simple."""

    def step_latency_ps(self, protocol: str, *, scale_up: bool) -> int:
        """Return from a message's arrival until a step goes on."""
        if protocol == NONE:
            return 0
        value: int = getattr(self, f"{protocol}_scale_up_latency" if scale_up else f"{protocol}_latency")
        return value

    def chosen(self, size_bytes: int, predicted_ps: Callable[[str], float]) -> str:
        """Return the protocol that `auto` takes for a size; `predicted_ps` returns the time of one."""
        if self.ll_up_to is not None:
            takes_ll = size_bytes <= self.ll_up_to
        else:
            takes_ll = predicted_ps(LL) <= min(predicted_ps(LL128), predicted_ps(SIMPLE))
        if takes_ll:
            return LL
        if self.ll128_up_to is not None:
            return LL128 if size_bytes <= self.ll128_up_to else SIMPLE
        return LL128 if predicted_ps(LL128) <= predicted_ps(SIMPLE) else SIMPLE


DEFAULT_PROTOCOLS = ProtocolSettings()
