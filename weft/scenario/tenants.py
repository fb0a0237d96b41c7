"""Section of a scenario file on who shares the fabric, and with how much of it each may reduce in the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weft.controller.errors import SettingError
from weft.controller.tenants import Tenant, TenantSettings, objection_to_promise
from weft.errors import translated
from weft.hints import did_you_mean
from weft.quantities.definitions import number, whole
from weft.quantities.example import Example
from weft.quantities.units import shown
from weft.scenario.places import KeyProblem
from weft.scenario.values import Section, Text

MAX_TENANT_SLOTS = 65536
TenantName = Annotated[str, Text("a name of up to 41 of a-z, 0-9 and -", r"\A[a-z0-9][a-z0-9-]{0,40}\Z", "blue")]


class TenantSection(Section):
    """A tenant: its hosts, and its part of switches and links."""

    hosts: Annotated[list[str], Example("[h0, h1, h4]")] = Field(default=[])
    """That take part in its reductions; by default any may."""
    slots: Annotated[int, whole(1, MAX_TENANT_SLOTS, example="512")] | None = None
    """Slots of each switch reserved for its jobs, which get no others; by default they share the unreserved slots."""
    bandwidth: Annotated[float, number(0, 1, above=True, example="0.25")] | None = None
    """Share of each link that its jobs together are promised, in equal parts: hosts send at it, and switches drop what
    exceeds it. A job's part is 125 kb/s or more. By default there is no limit, and nothing is promised."""
    share: Annotated[float, number(0.01, 0.99, example="0.5")] | None = None
    """Share of each link that all its traffic is guaranteed. What a tenant does not use, others may. Its items travel
    in a class of their own, served by weighted turns; up to four tenants have one. By default it has what others leave.
    """


def tenant_settings(tenants: Mapping[str, TenantSection]) -> TenantSettings:
    """Return what the controller takes."""
    return TenantSettings(
        tuple(Tenant(name, frozenset(each.hosts), each.slots, each.bandwidth) for name, each in tenants.items())
    )


def check_tenants(tenants: Mapping[str, TenantSection], slot_capacity: int) -> None:
    """Check that quotas fit switches of so many slots, and links. Raises KeyProblem."""
    with translated(SettingError, KeyProblem, "tenants"):
        tenant_settings(tenants).check(slot_capacity)


def check_promises(tenants: Mapping[str, TenantSection], fastest_bps: int) -> None:
    """Check that tenants are promised enough of some links. Raises KeyProblem."""
    for name, tenant in tenants.items():
        if tenant.bandwidth is not None and (why := objection_to_promise(tenant.bandwidth, fastest_bps)):
            raise KeyProblem(f"tenants.{name}.bandwidth", why)


def check_hosts_of_tenants(tenants: Mapping[str, TenantSection], hosts: list[str]) -> None:
    """Check that tenants have hosts of the fabric, each once. Raises KeyProblem."""
    for name, tenant in tenants.items():
        for place, host in enumerate(tenant.hosts):
            key = f"tenants.{name}.hosts[{place}]"
            if host not in hosts:
                raise KeyProblem(key, f"no host {shown(host)}; {did_you_mean(host, hosts)}")
            if host in tenant.hosts[:place]:
                raise KeyProblem(key, f"{host} twice", valid="each host once")


def check_tenant(tenants: Mapping[str, TenantSection], name: str, reduces: bool, key: str) -> None:
    """Check the tenant to whom an item of the traffic belongs. Raises KeyProblem for `key`."""
    if name and name not in tenants:
        raise KeyProblem(key, f"no tenant {shown(name)}; {did_you_mean(name, list(tenants))}")
    if name and not reduces and tenants[name].share is None:
        raise KeyProblem(
            key,
            f"{name} has quotas of reductions in the network, and this item has none",
            valid=f"leave it out, or give it a share (tenants.{name}.share)",
        )
