"""Why an algorithm cannot do what a spec asks: conditions that algorithms name as `unsuitable`."""

from __future__ import annotations

from weft.traffic.protocols import NONE, SIMPLE
from weft.traffic.schedules.spec import CollectiveSpec


def not_a_power_of_two(spec: CollectiveSpec) -> str:
    """Condition of algorithms that halve the ranks until each is left with a chunk."""
    if spec.rank_count & (spec.rank_count - 1) == 0:
        return ""
    return f"{spec.rank_count} ranks are not each left with a chunk (valid: powers of two)"


def scale_up_domain(spec: CollectiveSpec) -> str:
    """Condition of algorithms by the switches of a scale-up domain."""
    if spec.is_scale_up:
        return ""
    return "the fabric is no scale-up domain (valid: in-network, or fabric.kind: scale_up)"


def host_switches(spec: CollectiveSpec) -> str:
    """Condition of algorithms by the switches inside hosts, alone or with an exchange between hosts."""
    if not spec.host_reductions:
        if spec.ranks_per_host > 1 or spec.hosts:
            return "the links inside hosts have no switch that reduces (valid: fabric.scale_up.reductions: true)"
        return scale_up_domain(spec) or "each accelerator of the domain is a host (valid: nvls)"
    if spec.protocol not in (NONE, SIMPLE):
        return f"the switches inside hosts know no flags of {spec.protocol} (valid: simple, as in NCCL)"
    if spec.is_within_a_host:
        return ""
    return one_rank_a_host(spec)


def host_switches_and_network(spec: CollectiveSpec) -> str:
    """Condition of algorithms by the switches inside several hosts with something else than rings between them."""
    if spec.is_within_a_host and spec.host_reductions:
        return "all ranks share a host (valid: nvls)"
    return host_switches(spec)


def one_rank_a_host(spec: CollectiveSpec) -> str:
    """Condition of algorithms that work inside hosts first, over scale-up links."""
    if spec.ranks_per_host > 1:
        return ""
    if spec.hosts:
        return "ranks lie on hosts in no regular order (valid: as many on each, at equal distances)"
    return "hosts of 1 rank have no links inside (valid: 2 ranks a host or more)"
