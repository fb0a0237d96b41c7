"""Tenants of a fabric: their hosts, and their quotas of switches' slots and links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.controller.errors import JobError, SettingError
from weft.quantities.readable import format_rate

WHOLE = 1.0
LEAST_PROMISE_BPS = 125_000
"""Meters represent multiples of this rate exactly: BMv2 stores bytes per microsecond as a double, and this is 2^-6.

Below it, a meter would admit more than promised, and packets would be so far apart that a lease takes seconds.
"""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Tenant:
    """A user or group that shares a fabric with others.

    Attributes:
        name: not empty; "" is for jobs without a tenant, which use unreserved resources.
        hosts: hosts allowed in its jobs; empty allows all.
        slots: slots reserved for it at each switch, and the limit for its jobs there. None: its jobs use unreserved
            slots.
        bandwidth: share of each link's rate that its jobs together may use for reduction, above 0. None: no limit.

    """

    name: str
    hosts: frozenset[str] = frozenset()
    slots: int | None = None
    bandwidth: float | None = None

    def check_hosts(self, job_id: int, hosts: Iterable[str]) -> None:
        """Raise JobError unless all hosts of a job belong to the tenant."""
        foreign = [name for name in hosts if self.hosts and name not in self.hosts]
        if foreign:
            raise JobError(
                f"job {job_id} of {self.name}: host {foreign[0]} is not one of its hosts",
                valid=sorted(self.hosts),
            )

    def quotas(self) -> dict[str, Any]:
        """Return the tenant's hosts and limits as plain JSON values for `tenant_from`."""
        return {"hosts": sorted(self.hosts), "slots": self.slots, "bandwidth": self.bandwidth}


def tenant_from(name: str, quotas: Mapping[str, Any]) -> Tenant:
    """Return a tenant from `Tenant.quotas`. Raises KeyError, TypeError or ValueError if they are invalid."""
    slots, bandwidth = quotas["slots"], quotas["bandwidth"]
    return Tenant(
        name,
        frozenset(map(str, quotas["hosts"])),
        None if slots is None else int(slots),
        None if bandwidth is None else float(bandwidth),
    )


@dataclass(frozen=True)
class TenantSettings:
    """All tenants. Their slot quotas must fit a switch, and their bandwidth shares a link."""

    tenants: tuple[Tenant, ...] = ()

    def check(self, slot_capacity: int) -> None:
        """Raise SettingError if quotas exceed the slots of a switch or the rate of a link, or a name is repeated."""
        names = [tenant.name for tenant in self.tenants]
        if len(set(names)) < len(names) or "" in names:
            raise SettingError(f"tenants {', '.join(map(repr, names))}", valid="names, each once")
        slots = sum(tenant.slots or 0 for tenant in self.tenants)
        if slots > slot_capacity:
            raise SettingError(f"tenants have {slots} slots at each switch together", valid=f"up to {slot_capacity}")
        bandwidth = sum(tenant.bandwidth or 0.0 for tenant in self.tenants)
        if bandwidth > WHOLE + _ROUNDING:
            raise SettingError(f"tenants have {bandwidth:g} of each link together", valid="up to 1")

    def check_promises(self, fastest_bps: int) -> None:
        """Raise SettingError if a tenant's share is too small even on the fastest links."""
        for tenant in self.tenants:
            if tenant.bandwidth is not None and (why := objection_to_promise(tenant.bandwidth, fastest_bps)):
                raise SettingError(f"{why}", place=f"{tenant.name}.bandwidth")

    def named(self, name: str) -> Tenant:
        """Return a tenant by name; "" is `NOBODY`, without limits. Raises JobError for unknown names."""
        if not name:
            return NOBODY
        for tenant in self.tenants:
            if tenant.name == name:
                return tenant
        valid = ", ".join(tenant.name for tenant in self.tenants) or "there is none"
        raise JobError(f"unknown tenant {name!r}", valid=valid)

    @property
    def slots(self) -> dict[str, int]:
        """Reserved slots by tenant, for tenants with a quota."""
        return {tenant.name: tenant.slots for tenant in self.tenants if tenant.slots is not None}


NOBODY = Tenant("")
NO_TENANTS = TenantSettings()


def exceeds(share: float, limit: float | None) -> bool:
    """Return whether a sum of shares exceeds a limit by more than rounding errors."""
    return limit is not None and share > limit + _ROUNDING


def objection_to_promise(share: float, rate_bps: int) -> str:
    """Return why a share of links is too small to promise, "" if it is not."""
    least = LEAST_PROMISE_BPS / max(rate_bps, 1)
    if share >= least * (1 - _ROUNDING):
        return ""
    return (
        f"{share:g} of links of {format_rate(rate_bps)} is too little "
        f"(valid: {least:g} or more, {format_rate(LEAST_PROMISE_BPS)})"
    )
