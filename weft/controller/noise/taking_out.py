"""Takes noisy parts out of use, as far as enough of the fabric is left."""

from __future__ import annotations

from weft.controller.circuits import keeps_destinations
from weft.controller.elements import Element, host_element, link_element, plane_element
from weft.controller.noise.evidence import Evidence, NoisyPart, PartKind
from weft.controller.noise.limits import LINKS_LEFT, PLANES_LEFT
from weft.controller.operations import OperationRefusedError, Operations
from weft.topologies import FabricLink


class TakingOut:
    """Decides what to do about noisy parts, and does it.

    Args:
        operations: of the fabric.
        acts: False only reports.

    """

    def __init__(self, operations: Operations, *, acts: bool) -> None:
        self._operations = operations
        self._fabric = operations.controller.fabric
        self._acts = acts
        self._host_names = frozenset(host.name for host in self._fabric.hosts)

    def is_out(self, link: FabricLink) -> bool:
        """Return whether a link is down or out of use, alone or with its host."""
        operations = self._operations
        name = self._fabric.link_name(link)
        is_down = link.ends in operations.controller.failures.links
        return is_down or name in operations.cordoned or link.a.node in operations.hosts_out

    async def link(self, link: FabricLink, evidence: Evidence) -> NoisyPart:
        """Take a link out of use: itself, or for a host's link the host or the plane."""
        element = link_element(self._fabric, link)
        if link.a.node in self._host_names:
            return await self._act(element.name, "host link", evidence, self._instead_of(link))
        return await self._act(element.name, "link", evidence, [(element, self._too_few_left(link))])

    async def host(self, name: str, evidence: Evidence) -> NoisyPart:
        """Have a spare take the rank of a host."""
        return await self._act(name, "host", evidence, [self._spare_for(name)])

    def _spare_for(self, name: str) -> tuple[Element, str]:
        without = "" if self._fabric.spares else "the fabric has no spare hosts"
        return host_element(self._fabric, name), without

    def _instead_of(self, link: FabricLink) -> list[tuple[Element, str]]:
        """Return what can be taken out of use in place of a host's link, each with what is against it."""
        fabric, host = self._fabric, link.a.node
        plane = fabric.host(host).nics[link.a.port].plane
        left = [each for each in self._operations.planes_in_use if each != plane]
        against = ""
        if plane == fabric.storage_plane:
            against = f"plane {plane} is all of the storage network"
        elif len(left) < PLANES_LEFT * (planes := len(fabric.training_planes)):
            against = f"without plane {plane}, {len(left)} of {planes} planes would be left"
        return [self._spare_for(host), (plane_element(fabric, plane), against)]

    def _too_few_left(self, link: FabricLink) -> str:
        """Return why a link between switches cannot go: at an end too few others would be left; "" if it can."""
        failures = self._operations.controller.failures | self._operations.controller.avoided
        for end in (link.a, link.b):
            switch = self._fabric.switch(end.node)
            ports = [port for port in switch.fabric_ports if port.peer.node not in self._host_names]
            without = failures.with_link(link)
            left = sum(without.is_up(switch.name, port) for port in ports)
            if left < LINKS_LEFT * len(ports):
                return f"without it, {left} of {len(ports)} links of {switch.name} to other switches would be left"
        # Some kinds of routing need a link that connectivity could spare.
        controller = self._operations.controller
        if not keeps_destinations(self._fabric, controller.settings.routing, failures, [link]):
            return f"without it, routes of kind {controller.settings.routing} would lose destinations"
        return ""

    async def _act(
        self, part: str, kind: PartKind, evidence: Evidence, choices: list[tuple[Element, str]]
    ) -> NoisyPart:
        """Cordon the first element that nothing is against, and return what was found and done."""
        operations = self._operations
        time_ps = operations.since_up_ps(operations.clock.now_ps())
        operations.note(evidence.fault, part, evidence.words)
        reasons = []
        for element, against in choices if self._acts else ():
            problem = against
            if not problem:
                try:
                    await operations.cordon(element)
                except OperationRefusedError as refusal:
                    problem = str(refusal)
            if not problem:
                return _noisy(time_ps, part, kind, evidence, element.name, "")
            reasons.append(problem)
        reason = "; ".join(reasons) if self._acts else "health.act is false"
        operations.note("kept in use", part, reason)
        return _noisy(time_ps, part, kind, evidence, "", reason)


def _noisy(time_ps: int, part: str, kind: PartKind, evidence: Evidence, element: str, reason: str) -> NoisyPart:
    return NoisyPart(
        time_ps=time_ps,
        part=part,
        kind=kind,
        fault=evidence.fault,
        measured=evidence.measured,
        usual=evidence.usual,
        evidence=evidence.words,
        action="cordoned" if element else "reported",
        element=element,
        reason=reason,
    )
