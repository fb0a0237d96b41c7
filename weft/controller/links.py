"""Takes links of a running lab down and up from outside: `weft controller link`."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from weft.controller.errors import ControllerError, RequestRefusedError, SettingError
from weft.controller.failures import Failures
from weft.controller.features import Settings
from weft.controller.features.ecn import EcnSettings
from weft.controller.features.telemetry_int import IntSettings
from weft.controller.grpc_targets import open_channel
from weft.controller.health import SwitchHealth, check_switch
from weft.controller.lab import Lab
from weft.controller.operations_protocol import avoided
from weft.controller.plan import FabricState, desired_entities
from weft.controller.port_states import FollowedPorts, failures_of, port_states
from weft.controller.readers import for_each_switch
from weft.topologies import FabricLink, FabricSpec

FOLLOW_TIMEOUT_S = 10.0
_LOOK_AGAIN_S = 0.05


def routes_only(lab: Lab) -> Settings:
    """Return settings for the entries determined by topology, kind of routing and hash seed alone.

    Entries for thresholds, INT and load balancing depend on the operator's choices.
    """
    return Settings(features=(EcnSettings({}), IntSettings(False)), routing=lab.routing, hash_seed=lab.hash_seed)


class LinkRefusedError(ControllerError):
    """The lab or the machine does not allow taking a link down or up."""


def named_link(fabric: FabricSpec, name: str) -> FabricLink:
    """Return the link with this name: p0l0<->p0s1, p0l0-p0s1, or p0l0:3<->p0s1:1 for a parallel link.

    Raises:
        SettingError, TopologyError: there is none; the message lists the valid names.

    """
    ends = name.split("<->" if "<->" in name else "-")
    if len(ends) != 2:
        raise SettingError(f"{name!r} names no link", valid="NODE-NODE, such as p0l0-p0s1")
    return fabric.link_between(*(end.strip() for end in ends))


def set_link(lab: Lab, link: FabricLink, up: bool) -> None:
    """Set the interfaces of a link's switches up or down; the switches notice and notify the lab's controller.

    Raises:
        LinkRefusedError: the lab has no interfaces there, or the machine does not permit the change.

    """
    fabric = lab.fabric
    assert fabric is not None
    if lab.facts.name == "bmv2":
        raise LinkRefusedError("links of BMv2 do not fail", valid="a lab with target: embedded")
    switches = {switch.name for switch in fabric.switches}
    interfaces = [fabric.switch(end.node).port(end.port).interface for end in (link.a, link.b) if end.node in switches]
    # To take a link down, one end suffices (the switch's end of a host link); to bring it up needs both ends.
    for interface in interfaces if up else interfaces[-1:]:
        if not _is_the_labs(interface, lab.interface_group):
            raise LinkRefusedError(
                f"{interface} is not an interface of the lab: with links: internal, links between switches exist only "
                "in the engine",
                valid="links: veth",
            )
        state = "up" if up else "down"
        done = subprocess.run(
            ["ip", "link", "set", "dev", interface, state], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LinkRefusedError(f"{interface} cannot be brought {state}: {done.stderr.strip()}")


def _is_the_labs(interface: str, group: int) -> bool:
    """Return whether an interface exists and is in the lab's group, which excludes others with the same name."""
    try:
        found = Path("/sys/class/net", interface, "netdev_group").read_text(encoding="ascii")
    except OSError:
        return False
    return group != 0 and int(found) == group


async def ports_of(lab: Lab) -> dict[tuple[int, int], bool]:
    """Return whether ports of a lab's switches are up, by device id and port. SwitchUnavailableError: no answer."""
    states: dict[tuple[int, int], bool] = {}
    for address in {target.address for target in lab.targets.values()}:
        channel = open_channel(address)
        try:
            states |= await port_states(channel, address)
        finally:
            await channel.close()
    return states


async def wait_until_followed(lab: Lab, link: FabricLink, up: bool) -> None:
    """Wait until the switches report the link's intended state and all tables reflect it.

    Raises:
        RequestRefusedError: it takes more than `FOLLOW_TIMEOUT_S`; the message says what is wrong.

    """
    deadline = time.monotonic() + FOLLOW_TIMEOUT_S
    assert lab.fabric is not None
    async with FollowedPorts({target.address for target in lab.targets.values()}) as ports:
        while True:
            failures = failures_of(lab.fabric, ports.states)
            patience_s = FOLLOW_TIMEOUT_S
            amiss = _amiss_of_ports(lab, link, up, failures)
            if not amiss:
                amiss = await _amiss_of_tables(lab, failures | avoided(lab))
                # P4Runtime does not notify clients of others' writes, so poll for the writes of the lab's controller.
                patience_s = _LOOK_AGAIN_S
            left_s = deadline - time.monotonic()
            if not amiss:
                return
            if left_s <= 0.0:
                raise RequestRefusedError(f"{amiss} ({FOLLOW_TIMEOUT_S:g} s later)")
            await ports.change(min(left_s, patience_s))


def _amiss_of_ports(lab: Lab, link: FabricLink, up: bool, failures: Failures) -> str:
    """Return how the reported state differs from the intended one; empty if it does not."""
    assert lab.fabric is not None
    if (link.ends in failures.links) != up:
        return ""
    amiss = f"the switches say that {lab.fabric.link_name(link)} is still {'down' if up else 'up'}"
    if up and link.a.node not in lab.targets:
        amiss += f" (is {link.a.node}'s own interface up?)"
    return amiss


async def _amiss_of_tables(lab: Lab, around: Failures) -> str:
    """Return which switches' tables do not match the plan around these failures; empty if all do."""
    behind = [each.switch for each in await _look_at(lab, around) if each.missing or each.changed]
    return f"the tables of {', '.join(behind)} are not up to date" if behind else ""


async def _look_at(lab: Lab, failures: Failures) -> list[SwitchHealth]:
    assert lab.fabric is not None
    planned = desired_entities(lab.fabric, routes_only(lab), FabricState(failures))
    return await for_each_switch(
        lab,
        [name for name in lab.targets if name not in failures.switches],
        lambda session: check_switch(session, lab.pipelines.get(session.name), planned[session.name]),
        need_program=False,
    )
