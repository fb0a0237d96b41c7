"""Tenants of a fabric: which hosts are theirs, and how much of the switches' slots and links they may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.controller.errors import JobError, SettingError
from weft.quantities.readable import format_rate

WHOLE = 1.0
LEAST_PROMISE_BPS = 125_000
"""Meters hold multiples of it exactly: BMv2 keeps a rate as a double of bytes per microsecond, these are of 2^-6.

At less, a meter would let through more than is promised, and packets would be so far apart that a lease takes seconds.
"""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Tenant:
    """Somebody who shares a fabric with others.

    Attributes:
        name: not "", which stands for nobody: jobs of nobody have what no tenant has.
        hosts: that take part in its jobs; none: all hosts may.
        slots: that are set aside for it at each switch, and are the most that its jobs have there. None: its jobs
            share those of nobody.
        bandwidth: share of each link's rate that its jobs together may reduce with, above 0. None: no limit.

    """

    name: str
    hosts: frozenset[str] = frozenset()
    slots: int | None = None
    bandwidth: float | None = None

    def check_hosts(self, job_id: int, hosts: Iterable[str]) -> None:
        """Raise JobError unless all hosts of a job are the tenant's."""
        foreign = [name for name in hosts if self.hosts and name not in self.hosts]
        if foreign:
            raise JobError(
                f"job {job_id} of {self.name}: host {foreign[0]} is not one of its hosts "
                f"(valid: {', '.join(sorted(self.hosts))})"
            )

    def quotas(self) -> dict[str, Any]:
        """Return its hosts and limits as plain JSON values; `tenant_from` reads them."""
        return {"hosts": sorted(self.hosts), "slots": self.slots, "bandwidth": self.bandwidth}


def tenant_from(name: str, quotas: Mapping[str, Any]) -> Tenant:
    """Return the tenant of these `Tenant.quotas`. Raises KeyError, TypeError or ValueError if they are none."""
    slots, bandwidth = quotas["slots"], quotas["bandwidth"]
    return Tenant(
        name,
        frozenset(map(str, quotas["hosts"])),
        None if slots is None else int(slots),
        None if bandwidth is None else float(bandwidth),
    )


@dataclass(frozen=True)
class TenantSettings:
    """All tenants. Quotas of slots must fit a switch, and shares of bandwidth a link."""

    tenants: tuple[Tenant, ...] = ()

    def check(self, slot_capacity: int) -> None:
        """Raise SettingError for quotas that exceed what switches and links have, and for a name twice."""
        names = [tenant.name for tenant in self.tenants]
        if len(set(names)) < len(names) or "" in names:
            raise SettingError(f"tenants {', '.join(map(repr, names))} (valid: names, each once)")
        slots = sum(tenant.slots or 0 for tenant in self.tenants)
        if slots > slot_capacity:
            raise SettingError(
                f"tenants have {slots} slots at each switch together (valid: up to {slot_capacity})"
            )
        bandwidth = sum(tenant.bandwidth or 0.0 for tenant in self.tenants)
        if bandwidth > WHOLE + _ROUNDING:
            raise SettingError(f"tenants have {bandwidth:g} of each link together (valid: up to 1)")

    def check_promises(self, fastest_bps: int) -> None:
        """Raise SettingError if even of the fastest links a tenant would be promised too little."""
        for tenant in self.tenants:
            if tenant.bandwidth is not None and (why := objection_to_promise(tenant.bandwidth, fastest_bps)):
                raise SettingError(f"{tenant.name}.bandwidth: {why}")

    def named(self, name: str) -> Tenant:
        """Return a tenant, for "" nobody, who has no limits. Raises JobError."""
        if not name:
            return NOBODY
        for tenant in self.tenants:
            if tenant.name == name:
                return tenant
        valid = ", ".join(tenant.name for tenant in self.tenants) or "there is none"
        raise JobError(f"unknown tenant {name!r} (valid: {valid})")

    @property
    def slots(self) -> dict[str, int]:
        """The slots that are set aside, by tenant, of those who have some."""
        return {tenant.name: tenant.slots for tenant in self.tenants if tenant.slots is not None}


NOBODY = Tenant("")
NO_TENANTS = TenantSettings()


def exceeds(share: float, limit: float | None) -> bool:
    """Return whether a sum of shares is above a limit, by more than rounding."""
    return limit is not None and share > limit + _ROUNDING


def objection_to_promise(share: float, rate_bps: int) -> str:
    """Return why so small a share of links cannot be promised, "" if it can."""
    least = LEAST_PROMISE_BPS / max(rate_bps, 1)
    if share >= least * (1 - _ROUNDING):
        return ""
    return (
        f"{share:g} of links of {format_rate(rate_bps)} is too little "
        f"(valid: {least:g} or more, {format_rate(LEAST_PROMISE_BPS)})"
    )
