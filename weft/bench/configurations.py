"""The five configurations that the training draft compares for UET's packet spraying (its sections 6.3 and 9.4)."""

from __future__ import annotations

from collections.abc import Mapping

from weft.bench.setup import NotApplicableError, Setup
from weft.bench.variants import Variant

CONFIGURATIONS: Mapping[str, Variant] = {
    "UET RUD + Packet Spray": Variant("uet-rud", "spray"),
    "UET ROD + Packet Spray": Variant("uet-rod", "spray"),
    "RoCEv2 RC + Packet Spray": Variant("rc", "spray"),
    "RoCEv2 RC + ECMP (baseline)": Variant("rc", "ecmp"),
    "UET RUD + DLB/Flowlet": Variant("uet-rud", "flowlet"),
}


def under_each(setup: Setup, variants: Mapping[str, Variant]) -> tuple[dict[str, Setup], list[str]]:
    """Return the fabric under each variant by its name, and a sentence for each that it does not go with.

    NotApplicableError: it goes with none.
    """
    found, refused = {}, []
    for name, variant in variants.items():
        try:
            found[name] = setup.under(variant)
        except NotApplicableError as error:
            refused.append(f"{name}: not applicable: {error}")
    if not found:
        raise NotApplicableError("; ".join(refused))
    return found, refused
