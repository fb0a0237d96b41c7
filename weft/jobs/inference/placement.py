"""Places instances on a fabric: each within a host, decode instances behind prefill instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.jobs.inference.instances import DecodeInstances, PrefillInstances
from weft.jobs.training_plan import PlanError


def default_ranks(prefill: PrefillInstances, decode: DecodeInstances, hosts: Sequence[int]) -> tuple[int, ...]:
    """Return the fabric rank of each rank of the job, given the host of each fabric rank.

    Instances fill hosts in order; the first decode instance starts a new host. Raises PlanError if the instances do not
    fit.
    """
    in_order = sorted(range(len(hosts)), key=lambda rank: (hosts[rank], rank))
    size = sum(1 for host in hosts if host == hosts[in_order[0]])
    for key, instances in (("prefill", prefill), ("decode", decode)):
        if size % instances.tensor:
            valid = ", ".join(str(each) for each in range(1, size + 1) if size % each == 0)
            raise PlanError(
                f"{key}.tensor",
                f"{instances.tensor} ranks in hosts of {size} (valid on this fabric: {valid})",
            )
    first_decode = -(-prefill.rank_count // size) * size
    needed = first_decode + decode.rank_count
    if needed > len(hosts):
        raise PlanError(
            "decode.instances",
            f"{decode.instances} behind {prefill.instances} prefill instances need {needed} ranks of whole hosts "
            f"(valid on this fabric: up to {len(hosts)})",
        )
    return (*in_order[: prefill.rank_count], *in_order[first_decode:needed])


def check_hosts(prefill: PrefillInstances, decode: DecodeInstances, ranks: Sequence[int], hosts: Sequence[int]) -> None:
    """Raise PlanError for the first instance with ranks on several hosts; `ranks` are the fabric ranks of the job."""
    for name, own in _instances(prefill, decode):
        found = {hosts[ranks[rank]] for rank in own}
        if len(found) > 1:
            shown = ", ".join(str(ranks[rank]) for rank in own)
            raise PlanError("ranks", f"{name} has ranks {shown} on {len(found)} hosts", valid="one host")


def _instances(prefill: PrefillInstances, decode: DecodeInstances) -> Iterator[tuple[str, range]]:
    for number in range(prefill.instances):
        yield f"prefill instance {number}", prefill.ranks_of(number)
    for number in range(decode.instances):
        yield f"decode instance {number}", decode.ranks_of(number, prefill.rank_count)
