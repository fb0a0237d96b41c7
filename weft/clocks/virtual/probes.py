"""The probes of a fabric in virtual time: one for each engine that has a port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.engine import Link, Probe, TransmitPort
from weft.recording.observations import Recorded
from weft.recording.places import Places
from weft.scenario import ObserveSection
from weft.switch.daemon.wired_switches import WiredSwitch
from weft.topologies import FabricSpec


class FabricProbes:
    """Records what a scenario asks for, from now on.

    `host_ports`: every host's transmit ports by plane, in order of rank. `is_served` says which nodes this process
    serves; what others record is theirs.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        observe: ObserveSection,
        switches: Iterable[WiredSwitch],
        host_ports: Sequence[Sequence[TransmitPort]],
        is_served: Callable[[str], bool] = lambda _node: True,
    ) -> None:
        self._is_served = is_served
        places = Places(fabric)
        self._places = places
        self._numbers = places.numbers
        self._host_links: dict[str, tuple[Link, Link, int]] = {}
        self._observe = observe
        self._sampled = set(places.ports if observe.queues == "all" else observe.queues)
        # And whether this process serves what it records.
        self._probes: dict[Probe, bool] = {}
        self._switches = {switch.config.name: switch for switch in switches}
        for switch in self._switches.values():
            self._watch_switch(switch)
        self._watch_circuits(fabric)
        for host, ports in zip(fabric.hosts, host_ports, strict=True):
            for plane, port in enumerate(ports):
                name = f"{host.name}:{plane}"
                probe = self._watch_port(name, port)
                to_fabric, from_fabric, leaf_port = self._host_links[name]
                probe.watch(to_fabric, self._numbers[name])
                probe.watch(from_fabric, leaf_port)

    def _watch_switch(self, wired: WiredSwitch) -> None:
        for number, port in wired.ports.items():
            name = f"{wired.config.name}:{number}"
            probe = self._watch_port(name, port.transmit)
            probe.watch(port.link, self._numbers[name])
            probe.watch(wired.switch.native, self._numbers[wired.config.name])
            # The probe at a link's far end counts its drops there.
            arriving = port.uplink_link or port.arriving
            if arriving is not None:
                probe.watch(arriving, self._numbers[self._places.peer(name)])
            if port.uplink_link is not None:
                self._host_links[self._places.peer(name)] = (port.uplink_link, port.link, self._numbers[name])

    def _watch_circuits(self, fabric: FabricSpec) -> None:
        """Watch links at all far ends that they may be joined to."""
        for circuit in fabric.circuits.circuits if fabric.circuits is not None else ():
            for sender, receiver in (circuit, circuit[::-1]):
                link = self._switches[sender.node].ports[sender.port].link
                probe = Probe.of(self._switches[receiver.node].ports[receiver.port].transmit)
                probe.watch(link, self._numbers[str(sender)])

    def _watch_port(self, name: str, port: TransmitPort) -> Probe:
        probe = Probe.of(port)
        if probe not in self._probes:
            self._probes[probe] = self._is_served(name.rpartition(":")[0])
            if self._observe.queues:
                probe.start_sampling(self._observe.interval)
        probe.watch(port, self._numbers[name])
        if name in self._sampled:
            probe.sample(port, self._numbers[name])
        return probe

    def take(self, now_ps: int) -> list[Recorded]:
        """Return what was recorded up to now and since the last call, probe by probe."""
        return [probe.take(now_ps) for probe, is_served in self._probes.items() if is_served]

    def rows_lost(self) -> int:
        """Return how many rows were beyond the probes' limit."""
        return sum(sum(probe.rows_lost().values()) for probe, is_served in self._probes.items() if is_served)
