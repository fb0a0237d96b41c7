"""The fabric's hosts and links in Mininet: namespaces, veth pairs, addresses; no packet is sent from here.

Mininet makes the namespaces and the pairs; addresses and link settings go through `ip -batch`, one process for
each namespace instead of several for each interface.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mininet.link import Intf, Link
from mininet.log import MininetLogger, setLogLevel
from mininet.node import Node, Switch

from weft.clocks.real import interfaces
from weft.clocks.real.fabric_hosts import FabricHost
from weft.clocks.real.mininet_iperf import MeasuringMininet
from weft.errors import EnvironmentLacksError
from weft.system.namespaces import end_all_in, network_namespace
from weft.topologies import FabricSpec, HostSpec, NicSpec
from weft.topologies.networks import NetworkHost

# Mininet makes its class that of every later logger: each would write to the terminal by itself, without line ends.
if logging.getLoggerClass() is MininetLogger:
    logging.setLoggerClass(logging.Logger)

# The fabric computes and checks checksums itself, so every frame on a veth pair must be whole.
_OFFLOADS = ("tx", "rx", "sg", "tso", "gso", "gro")

# No router advertisements, no solicitations; addr_gen_mode 1: no link-local address by itself.
# keep_addr_on_down: an interface that goes down keeps its IPv6 addresses, as it does its IPv4 ones.
# mldv2_unsolicited_report_interval, in ms: reports of multicast groups are repeated at once, before switches count
# what they drop.
_QUIET_IPV6 = {
    "accept_ra": "0",
    "router_solicitations": "0",
    "addr_gen_mode": "1",
    "keep_addr_on_down": "1",
    "mldv2_unsolicited_report_interval": "1",
}


_ETHERNET_MTU_BYTES = 1500
_NO_PLAIN_HOSTS: Mapping[str, NetworkHost] = MappingProxyType({})


class FabricSwitch(Switch):  # type: ignore[misc]
    """A switch of the fabric as Mininet's CLI shows it; the embedded daemon or BMv2 runs it."""

    def start(self, controllers: Any) -> None:
        """Do nothing: the fabric starts its switches before Mininet starts."""

    def stop(self, deleteIntfs: bool = True) -> None:
        """Remove the interfaces."""
        super().stop(deleteIntfs)


class FabricInterface(Intf):  # type: ignore[misc]
    """An interface that the fabric brings up. Removing it leaves other interfaces alone."""

    def __init__(self, *arguments: Any, group: int, **parameters: Any) -> None:
        self._group = group
        super().__init__(*arguments, **parameters)

    def config(self, *, up: bool | None = None, **parameters: Any) -> Any:
        """Configure it as Mininet does, but bring it up only when asked to."""
        return super().config(up=up, **parameters)

    def delete(self) -> None:
        """Remove it, unless another of its name has replaced it. Interfaces of hosts go with their namespaces."""
        if not self.node.inNamespace:
            interfaces.delete(self.name, self._group)
        self.node.delIntf(self)
        self.link = None


class FabricLink(Link):  # type: ignore[misc]
    """A veth pair that has been made. Mininet's own command makes one at a time, and cannot name a group."""

    def __init__(self, node1: Node, node2: Node, *, group: int, **parameters: Any) -> None:
        parameters["intf"] = partial(FabricInterface, group=group)
        super().__init__(node1, node2, **parameters)

    def makeIntfPair(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class _LinkEnd:
    node: Node
    interface: str
    mac: str
    port: int | None

    @property
    def for_kernel(self) -> interfaces.End:
        return self.interface, self.mac, self.node.pid


class FabricNetwork:
    """A fabric's hosts, switches' interfaces and links, up in Mininet."""

    def __init__(
        self,
        fabric: FabricSpec,
        interface_group: int,
        internal_links: bool = False,
        own: Callable[..., None] = lambda *process_ids: None,
        hosts_file: Path | None = None,
        *,
        mtu_bytes: int,
        plain_hosts: Mapping[str, NetworkHost] = _NO_PLAIN_HOSTS,
    ) -> None:
        """Make everything, interfaces in a group (`weft.clocks.real.interfaces`).

        `mtu_bytes` is the interfaces'. `own` is called early, with the process ids of the shells that hold the
        namespaces. `hosts_file` takes the place of /etc/hosts in the hosts. `plain_hosts` have the name of their
        interface, gateway and neighbours from a network file, no IPv6, and Ethernet's usual MTU.

        Raises:
            EnvironmentLacksError: the kernel refuses something, or an interface of a name is there already.
        """
        setLogLevel("output")
        self.fabric = fabric
        self.internal_links = internal_links
        self._interface_group = interface_group
        self._mtu_bytes = mtu_bytes
        self._plain_hosts = plain_hosts
        _require_free_names(fabric)
        self.net = MeasuringMininet(controller=None, switch=FabricSwitch, build=False)
        try:
            for host in fabric.hosts:
                _quiet_namespace(self.net.addHost(host.name, cls=FabricHost, ip=None).pid)
            for switch in fabric.switches:
                self.net.addSwitch(switch.name, dpid=f"{switch.device_id:016x}", inNamespace=False)
            own(*(node.pid for node in (*self.net.hosts, *self.net.switches)))
            self._add_links()
            self._configure_switch_interfaces()
            for host in fabric.hosts:
                self._configure_host(host)
                if hosts_file is not None:
                    self.net.get(host.name).use_hosts_file(hosts_file)
            self.net.start()
        except BaseException:
            # A half-built network may fail to stop; the error to raise is the one that interrupted the build.
            with contextlib.suppress(Exception):
                self.stop()
            raise

    @property
    def switch_interfaces(self) -> list[str]:
        """Interfaces of switches in the root namespace."""
        return [
            port.interface
            for switch in self.fabric.switches
            for port in switch.ports
            if not port.is_dark and (port.peer_is_host or not self.internal_links)
        ] + [end for pair in self._cpu_pairs for end in pair]

    @property
    def _cpu_pairs(self) -> list[tuple[str, str]]:
        """Interfaces between switches and controllers, both ends in the root namespace."""
        return [
            (port.interface, port.peer_interface)
            for switch in self.fabric.switches
            for port in switch.ports
            if port.leads_to_controller
        ]

    def _add_links(self) -> None:
        ends = [
            (self._end(host.name, nic.interface), self._switch_end(nic.switch, nic.switch_port))
            for host in self.fabric.hosts
            for nic in host.nics
        ]
        if not self.internal_links:
            switches = {switch.name for switch in self.fabric.switches}
            ends += [
                (self._switch_end(link.a.node, link.a.port), self._switch_end(link.b.node, link.b.port))
                for link in self.fabric.links
                if link.a.node in switches and link.b.node in switches
            ]
        interfaces.add_pairs(
            self._interface_group,
            [
                *((one.for_kernel, other.for_kernel) for one, other in ends),
                *(
                    ((one, self.net.randMac(), os.getpid()), (other, self.net.randMac(), os.getpid()))
                    for one, other in self._cpu_pairs
                ),
            ],
        )
        for one, other in ends:
            self.net.addLink(
                one.node,
                other.node,
                port1=one.port,
                port2=other.port,
                intfName1=one.interface,
                intfName2=other.interface,
                addr1=one.mac,
                addr2=other.mac,
                cls=FabricLink,
                group=self._interface_group,
            )

    def _end(self, node: str, interface: str, port: int | None = None) -> _LinkEnd:
        return _LinkEnd(self.net.get(node), interface, self.net.randMac(), port)

    def _switch_end(self, switch: str, port: int) -> _LinkEnd:
        return self._end(switch, self.fabric.switch(switch).port(port).interface, port)

    def _configure_switch_interfaces(self) -> None:
        lines = []
        for interface in self.switch_interfaces:
            # A port of a switch: frames only, no host that reports multicast groups. Nor does the machine hear hosts
            # or answer them, as Linux would for each of its addresses: no source is right here, where no route leads.
            _write_sysctl(f"net/ipv6/conf/{interface}/disable_ipv6", "1")
            _write_sysctl(f"net/ipv4/conf/{interface}/rp_filter", "1")
            lines += [
                f"address flush dev {interface}",
                f"link set {interface} addrgenmode none arp off mtu {self._mtu_bytes} up",
            ]
        _ip_batch(["ip", "-batch", "-"], lines)
        _turn_offloads_off(self.switch_interfaces)

    def _configure_host(self, host: HostSpec) -> None:
        if host.name in self._plain_hosts:
            self._configure_plain_host(host, self._plain_hosts[host.name])
            return
        node = self.net.get(host.name)
        enter = ["mnexec", "-a", str(node.pid)]
        lines = ["link set lo up"]
        for nic in host.nics:
            lines += [
                f"link set {nic.interface} address {nic.mac} mtu {self._mtu_bytes} up",
                f"address add {nic.ipv4} dev {nic.interface}",
                f"address add {nic.ipv6} dev {nic.interface} nodad",
                *_routes(self.fabric, nic),
            ]
            intf = node.intf(nic.interface)
            intf.ip, intf.prefixLen, intf.mac = str(nic.ipv4.ip), str(nic.ipv4.network.prefixlen), nic.mac
        _ip_batch([*enter, "ip", "-batch", "-"], lines)
        _turn_offloads_off([nic.interface for nic in host.nics], enter)

    def _configure_plain_host(self, host: HostSpec, plain: NetworkHost) -> None:
        node, (nic,) = self.net.get(host.name), host.nics
        enter = ["mnexec", "-a", str(node.pid)]
        _run(
            [
                *enter,
                "sysctl",
                "-qw",
                *(f"net.ipv6.conf.{each}.disable_ipv6=1" for each in ("all", "default")),
            ]
        )
        name = plain.interface
        lines = ["link set lo up"]
        if name != nic.interface:
            lines.append(f"link set {nic.interface} name {name}")
        lines += [
            f"link set {name} address {nic.mac} mtu {_ETHERNET_MTU_BYTES} up",
            f"address add {nic.ipv4} dev {name}",
        ]
        if plain.gateway is not None:
            lines.append(f"route replace default via {plain.gateway} dev {name}")
        lines += [f"neigh replace {ip} lladdr {mac} dev {name} nud permanent" for ip, mac in plain.neighbours]
        _ip_batch([*enter, "ip", "-batch", "-"], lines)
        intf = node.intf(nic.interface)
        del node.nameToIntf[nic.interface]
        intf.name, node.nameToIntf[name] = name, intf
        intf.ip, intf.prefixLen, intf.mac = str(nic.ipv4.ip), str(nic.ipv4.network.prefixlen), nic.mac
        _turn_offloads_off([name], enter)

    def restore_routes(self, host: str, nic: int) -> None:
        """Restore the routes of a host that Linux removed while a NIC was down.

        Does nothing where they cannot be restored because the host's addresses have been changed.
        """
        command = ["mnexec", "-a", str(self.net.get(host).pid), "ip", "-force", "-batch", "-"]
        with contextlib.suppress(EnvironmentLacksError):
            _ip_batch(command, _routes(self.fabric, self.fabric.host(host).nic(nic)))

    def popen(self, host: str, command: list[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program inside a host's namespace; its process id is the program's own."""
        process: subprocess.Popen[str] = self.net.get(host).popen(command, text=True, **options)
        return process

    def stop(self) -> None:
        """Take everything down, and end what still runs on the hosts."""
        namespaces = [network_namespace(host.pid) for host in self.net.hosts]
        interfaces.delete_all(self._interface_group)
        try:
            self.net.stop()
        except AssertionError:
            # A node whose command was interrupted accepts no other, so its interfaces go with its namespace.
            for node in (*self.net.hosts, *self.net.switches):
                node.terminate()
        # Programs that nobody waited for: servers, say, that the prompt's `popen` has started.
        end_all_in([namespace for namespace in namespaces if namespace is not None])


def _routes(fabric: FabricSpec, nic: NicSpec) -> list[str]:
    """Return commands of `ip` that lead to a NIC's whole plane."""
    return [
        # A network file's addresses need not have the gateway's among them, so it is said to be on the link.
        f"route replace {prefix} via {gateway} dev {nic.interface} onlink"
        for prefix, gateway in fabric.gateways(nic).items()
    ]


def _require_free_names(fabric: FabricSpec) -> None:
    taken = {entry.name for entry in os.scandir("/sys/class/net")}
    for switch in fabric.switches:
        for port in switch.ports:
            ours = {port.interface, port.peer_interface} if port.leads_to_controller else {port.interface}
            for interface in taken & ours:
                raise EnvironmentLacksError(
                    f"the interface {interface} exists already; `weft clean` removes what an interrupted run left"
                )


def _quiet_namespace(pid: int) -> None:
    """Keep interfaces that enter a namespace from sending anything of their own (IPv6 itself stays on)."""
    settings = [f"net.ipv6.conf.default.{name}={value}" for name, value in _QUIET_IPV6.items()]
    _run(["mnexec", "-a", str(pid), "sysctl", "-qw", *settings])


def _turn_offloads_off(interfaces: Sequence[str], enter: Sequence[str] = ()) -> None:
    off = " ".join(f"{offload} off" for offload in _OFFLOADS)
    script = f'for interface; do ethtool -K "$interface" {off} || exit; done'
    _run([*enter, "sh", "-c", script, "sh", *interfaces])


def _write_sysctl(name: str, value: str) -> None:
    path = Path("/proc/sys", name)
    try:
        path.write_text(value, encoding="ascii")
    except FileNotFoundError:
        return  # A kernel without IPv6 sends nothing of it, either.
    except OSError as error:
        raise EnvironmentLacksError(f"{path} cannot be set to {value}: {error.strerror}") from None


def _ip_batch(command: list[str], lines: list[str]) -> None:
    _run(command, text="".join(f"{line}\n" for line in lines))


def _run(command: list[str], text: str | None = None) -> None:
    result = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if result.returncode:
        raise EnvironmentLacksError(f"'{' '.join(command)}' failed: {result.stderr.strip() or result.stdout.strip()}")
