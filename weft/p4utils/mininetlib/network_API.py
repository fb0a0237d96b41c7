"""p4-utils' `NetworkAPI`: a network is described call by call, and started as the lab of a network file.

`startNetwork` writes the network to weft-network.json in the current folder, in the form of p4-utils' p4app.json. The
file runs in virtual time, too: `weft run weft-network.json`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.cache.files import UnreadableFileError, read_bytes
from weft.cli import run_guarded
from weft.clocks.real.access import hand_over
from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.p4utils.errors import UnsupportedCallError
from weft.p4utils.mininetlib.tasks import Task, Tasks, read_tasks
from weft.p4utils.utils.compiler import P4C
from weft.system.writing import written_whole

NETWORK_FILE = "weft-network.json"
WRITTEN_BY = "weft.p4utils"
_MOST_BYTES = 8 * 1024 * 1024
_OF_LINK = ("bw", "delay", "loss", "max_queue_size", "weight")
_HOST, _SWITCH = "host", "switch"
_UNSUPPORTED = {
    "addRouter": "FRRouting's routers do not run here; hosts and P4 switches do",
    "addTofino": "there is no model of Tofino; addP4Switch runs v1model programs",
    "addSwitch": "all switches run P4: addP4Switch",
    "setSwitchDpid": "all switches run P4, and have ids: setP4SwitchId",
    "enableDhcp": "hosts have the addresses of the network",
    "enableDhcpAll": "hosts have the addresses of the network",
    "enableDebugger": "there is no nanomsg debugger; `weft trace SWITCH` follows packets",
    "enableDebuggerAll": "there is no nanomsg debugger; `weft trace SWITCH` follows packets",
    "setNet": "the lab makes the network",
    "setSwitchClient": "the lab runs the files of setP4CliInput",
    "module": "the lab makes the network",
}


class NetworkAPI:
    """A network of hosts and P4 switches, with p4-utils' calls.

    Attributes:
        net: Mininet's network, once `startNetwork` has started it; None before.
        cli_enabled: whether `startNetwork` opens Mininet's prompt.
        auto_arp_tables: whether hosts know the MAC addresses of the others in their network.
        auto_gw_arp: whether hosts know the MAC address of their gateway.

    Raises `UnsupportedCallError` for calls of p4-utils that Weft lacks, and BadInputError for wrong arguments.
    """

    def __init__(self, *_args: Any, auto_arp_tables: bool = True, auto_gw_arp: bool = True, **_params: Any) -> None:
        self.net: Any = None
        self.cli_enabled = True
        self.auto_arp_tables = auto_arp_tables
        self.auto_gw_arp = auto_gw_arp
        self.topoFile = "./topology.json"
        self._nodes: dict[str, dict[str, Any]] = {}
        self._kinds: dict[str, str] = {}
        self._links: list[dict[str, Any]] = []
        self._strategy = "manual"
        self._log_dir: str | None = None
        self._scripts: list[dict[str, Any]] = []
        self._tasks: list[Task] = []
        self._lab = contextlib.ExitStack()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        calls = [each for each in dir(type(self)) if not each.startswith("_")]
        if name in _UNSUPPORTED:
            raise UnsupportedCallError(f"NetworkAPI.{name} is not supported: {_UNSUPPORTED[name]}")
        raise AttributeError(f"NetworkAPI has no {name}; {did_you_mean(name, calls)}")

    # Nodes

    def addHost(self, name: str, **options: Any) -> str:
        """Add a host; `ip`, `mac` and `defaultRoute` are those of its first link."""
        return self._add(name, _HOST, options)

    def addP4Switch(self, name: str, **options: Any) -> str:
        """Add a switch; all serve P4Runtime and have a Thrift port."""
        return self._add(name, _SWITCH, options)

    def addP4RuntimeSwitch(self, name: str, **options: Any) -> str:
        """Add a switch."""
        return self.addP4Switch(name, **options)

    def addNode(self, name: str, **options: Any) -> str:
        """Add a node by p4-utils' `isHost` or `isP4Switch`."""
        if options.get("isHost"):
            return self.addHost(name, **options)
        if options.get("isP4Switch"):
            return self.addP4Switch(name, **options)
        raise UnsupportedCallError(f"NetworkAPI.addNode: {name} is neither a host nor a P4 switch")

    def _add(self, name: str, kind: str, options: Mapping[str, Any]) -> str:
        if not isinstance(name, str):
            raise BadInputError(f"{name!r} is not the name of a node", valid="a text, such as 's1'")
        self._nodes[name] = dict(options)
        self._kinds[name] = kind
        return name

    def isNode(self, name: str) -> bool:
        """Return whether there is a node."""
        return name in self._nodes

    def isHost(self, name: str) -> bool:
        """Return whether a node is a host."""
        return self._kinds[self._known(name)] == _HOST

    def isSwitch(self, name: str) -> bool:
        """Return whether a node is a switch."""
        return self._kinds[self._known(name)] == _SWITCH

    isP4Switch = isP4RuntimeSwitch = isSwitch

    def isRouter(self, name: str) -> bool:
        """Return False: there are no routers."""
        self._known(name)
        return False

    isTofino = isRouter

    def nodes(self, sort: bool = True, withInfo: bool = False) -> list[Any]:
        """Return the nodes' names, or pairs of name and options; with `sort` in natural order."""
        return self._listed(self._nodes, sort, withInfo)

    def hosts(self, sort: bool = True, withInfo: bool = False) -> list[Any]:
        """Return the hosts, as `nodes`."""
        return self._listed(self._of_kind(_HOST), sort, withInfo)

    def switches(self, sort: bool = True, withInfo: bool = False) -> list[Any]:
        """Return the switches, as `nodes`."""
        return self._listed(self._of_kind(_SWITCH), sort, withInfo)

    p4switches = p4rtswitches = switches

    def routers(self, sort: bool = True, withInfo: bool = False) -> list[Any]:
        """Return no routers."""
        return []

    def _of_kind(self, kind: str) -> list[str]:
        return [name for name, found in self._kinds.items() if found == kind]

    def _listed(self, names: Any, sort: bool, with_info: bool) -> list[Any]:
        from weft.topologies.networks.model import natural_order

        ordered = sorted(names, key=natural_order) if sort else list(names)
        return [(name, self._nodes[name]) for name in ordered] if with_info else ordered

    def getNode(self, name: str) -> dict[str, Any]:
        """Return a node's options."""
        return self._nodes[self._known(name)]

    def updateNode(self, name: str, **options: Any) -> None:
        """Change a node's options."""
        self.getNode(name).update(options)

    def deleteNode(self, name: str, remove_links: bool = True) -> None:
        """Remove a node and, with `remove_links`, its links."""
        self._known(name)
        if remove_links:
            self._links = [link for link in self._links if name not in (link["node1"], link["node2"])]
        del self._nodes[name], self._kinds[name]

    def popNode(self, name: str, remove_links: bool = True) -> dict[str, Any]:
        """Remove a node and return its options."""
        found = self.getNode(name)
        self.deleteNode(name, remove_links)
        return found

    def _known(self, name: str) -> str:
        if name not in self._nodes:
            raise BadInputError(f"there is no node {name!r}; {did_you_mean(str(name), self._nodes)}")
        return name

    def _switch(self, name: str) -> dict[str, Any]:
        if not self.isSwitch(name):
            raise BadInputError(f"{name} is not a P4 switch", valid=self.switches())
        return self._nodes[name]

    # Switches

    def setP4Source(self, name: str, p4_src: str) -> None:
        """Set a switch's program."""
        self._switch(name)["p4_src"] = p4_src

    def setP4SourceAll(self, p4_src: str) -> None:
        """Set the program of all switches that there are."""
        for name in self.switches():
            self.setP4Source(name, p4_src)

    def setP4CliInput(self, name: str, cli_input: str) -> None:
        """Set a switch's file of simple_switch_CLI's commands."""
        self._switch(name)["cli_input"] = cli_input

    def setP4CliInputAll(self, path: str) -> None:
        """Set the folder with a file SWITCH-commands.txt for each switch."""
        for name in self.switches():
            self.setP4CliInput(name, str(Path(path) / f"{name}-commands.txt"))

    def setP4SwitchId(self, name: str, id: int) -> None:
        """Set a switch's device id."""
        self._switch(name)["device_id"] = id

    def setThriftPort(self, name: str, port: int) -> None:
        """Set a switch's Thrift port, by which `SimpleSwitchThriftAPI` names it."""
        self._switch(name)["thrift_port"] = port

    def setGrpcPort(self, name: str, port: int) -> None:
        """Set the port of a switch's P4Runtime server."""
        self._switch(name)["grpc_port"] = port

    def setPriorityQueueNum(self, name: str, queue_num: int) -> None:
        """Have the eight queues of a switch's ports keep priorities apart, if `queue_num` is above 1."""
        self._switch(name)["priority_queues_num"] = queue_num

    def enableCpuPort(self, name: str) -> None:
        """Give a switch a port for a controller that sniffs."""
        self._switch(name)["cpu_port"] = True

    def enableCpuPortAll(self) -> None:
        """Give all switches that there are a port for a controller."""
        for name in self.switches():
            self.enableCpuPort(name)

    def disableCpuPort(self, name: str) -> None:
        """Take the port for a controller away."""
        self._switch(name)["cpu_port"] = False

    def disableCpuPortAll(self) -> None:
        """Take all ports for controllers away."""
        for name in self.switches():
            self.disableCpuPort(name)

    def hasCpuPort(self, name: str) -> bool:
        """Return whether a switch has a port for a controller."""
        return bool(self._switch(name).get("cpu_port", False))

    def setCompiler(self, compilerClass: type | None = None, **options: Any) -> None:
        """Accept p4-utils' compiler, in place of which the lab's compiles. Its options are described at `P4C`."""
        if compilerClass is not None and not (isinstance(compilerClass, type) and issubclass(compilerClass, P4C)):
            raise UnsupportedCallError(f"NetworkAPI.setCompiler: {compilerClass} does not run here", valid="P4C")
        (compilerClass or P4C).require_supported(options)

    # Logs and captures

    def enableLog(self, name: str, log_dir: str = "./log") -> None:
        """Log every packet of every switch to `log_dir`/SWITCH.log. (Switches are logged all or none.)"""
        self._known(name)
        self._log_dir = log_dir

    def enableLogAll(self, log_dir: str = "./log") -> None:
        """Log every packet of every switch to `log_dir`/SWITCH.log."""
        self._log_dir = log_dir

    def disableLog(self, name: str) -> None:
        """Do nothing: switches are logged all or none."""
        self._known(name)

    def disableLogAll(self) -> None:
        """Log no packets."""
        self._log_dir = None

    def enablePcapDump(self, name: str, pcap_dir: str = "./pcap") -> None:
        """Do nothing: the lab always captures, to pcap/."""
        self._known(name)

    def enablePcapDumpAll(self, pcap_dir: str = "./pcap") -> None:
        """Do nothing: the lab always captures, to pcap/."""

    def disablePcapDump(self, name: str) -> None:
        """Do nothing: the lab always captures, to pcap/."""
        self._known(name)

    def disablePcapDumpAll(self) -> None:
        """Do nothing: the lab always captures, to pcap/."""

    def disableDebugger(self, name: str) -> None:
        """Do nothing: there is no debugger."""
        self._known(name)

    def disableDebuggerAll(self) -> None:
        """Do nothing: there is no debugger."""

    def disableDhcp(self, name: str) -> None:
        """Do nothing: hosts use no DHCP."""
        self._known(name)

    def disableDhcpAll(self) -> None:
        """Do nothing: hosts use no DHCP."""

    def setLogLevel(self, logLevel: str) -> None:
        """Set Mininet's level, where it is installed."""
        with contextlib.suppress(ImportError):
            from mininet.log import LEVELS, setLogLevel

            setLogLevel(logLevel if logLevel in LEVELS else "output")

    # Links

    def addLink(
        self,
        node1: str,
        node2: str,
        port1: int | None = None,
        port2: int | None = None,
        key: int | None = None,
        **options: Any,
    ) -> int:
        """Add a link and return its key, which numbers the links between two nodes from 0."""
        for node in (node1, node2):
            self._known(node)
        between = [link["key"] for link in self._between(node1, node2)]
        chosen = key if key is not None else next(number for number in range(len(between) + 1) if number not in between)
        if chosen in between:
            raise BadInputError(f"{node1} and {node2} have a link with the key {chosen} already", valid="another key")
        self._links.append(
            {"node1": node1, "node2": node2, "port1": port1, "port2": port2, "key": chosen, "options": dict(options)}
        )
        return chosen

    def _between(self, node1: str, node2: str) -> list[dict[str, Any]]:
        return [link for link in self._links if {link["node1"], link["node2"]} == {node1, node2}]

    def _link(self, node1: str, node2: str, key: int | None) -> dict[str, Any]:
        """Return a link, by default the one with the lowest key. Raises BadInputError."""
        found = sorted(self._between(self._known(node1), self._known(node2)), key=lambda link: link["key"])
        for link in found:
            if key is None or link["key"] == key:
                return link
        keys = ", ".join(str(link["key"]) for link in found) or "none; addLink adds one"
        raise BadInputError(f"{node1} and {node2} have no link{'' if key is None else f' {key}'}", valid=keys)

    def areNeighbors(self, node1: str, node2: str) -> bool:
        """Return whether a link joins two nodes."""
        return bool(self._between(node1, node2))

    def links(self, sort: bool = False, withKeys: bool = False, withInfo: bool = False) -> list[Any]:
        """Return the links as tuples: both nodes, with `withKeys` the key, with `withInfo` the options."""
        from weft.topologies.networks.model import natural_order

        ordered = self._links
        if sort:
            ordered = sorted(ordered, key=lambda each: (natural_order(each["node1"]), natural_order(each["node2"])))
        return [
            (each["node1"], each["node2"], *([each["key"]] * withKeys), *([_info(each)] * withInfo)) for each in ordered
        ]

    def getLink(self, node1: str, node2: str, key: int | None = None) -> tuple[dict[str, Any], int]:
        """Return a link's options and its key."""
        found = self._link(node1, node2, key)
        return _info(found), found["key"]

    def updateLink(self, node1: str, node2: str, key: int | None = None, **options: Any) -> int:
        """Change a link's options; those that end with 1 or 2 are those of `node1` and `node2`."""
        found = self._link(node1, node2, key)
        if found["node1"] != node1:
            options = {_turned(name): value for name, value in options.items()}
        for name in ("port1", "port2"):
            if name in options:
                found[name] = options.pop(name)
        found["options"].update(options)
        return int(found["key"])

    def deleteLink(self, node1: str, node2: str, key: int | None = None) -> int:
        """Remove a link and return its key."""
        found = self._link(node1, node2, key)
        self._links.remove(found)
        return int(found["key"])

    def popLink(self, node1: str, node2: str, key: int | None = None) -> tuple[dict[str, Any], int]:
        """Remove a link and return its options and its key."""
        found = self.getLink(node1, node2, key)
        self.deleteLink(node1, node2, found[1])
        return found

    def setBw(self, node1: str, node2: str, bw: float, key: int | None = None) -> int:
        """Set a link's bandwidth in Mbit/s."""
        return self.updateLink(node1, node2, key=key, bw=_number("setBw", bw))

    def setDelay(self, node1: str, node2: str, delay: float, key: int | None = None) -> int:
        """Set a link's delay in ms."""
        return self.updateLink(node1, node2, key=key, delay=f"{_number('setDelay', delay):g}ms")

    def setLoss(self, node1: str, node2: str, loss: float, key: int | None = None) -> int:
        """Set a link's loss, of 0 to 1."""
        if not 0 <= _number("setLoss", loss) <= 1:
            raise BadInputError(f"setLoss: {loss} is not a loss", valid="0 to 1")
        return self.updateLink(node1, node2, key=key, loss=100 * loss)

    def setMaxQueueSize(self, node1: str, node2: str, max_queue_size: int, key: int | None = None) -> int:
        """Set the number of packets in a link's queues."""
        return self.updateLink(node1, node2, key=key, max_queue_size=max_queue_size)

    def setIntfName(self, node1: str, node2: str, intfName: str, key: int | None = None) -> int:
        """Set the name of an interface, which the lab names itself."""
        return self.updateLink(node1, node2, key=key, intfName1=intfName)

    def setIntfPort(self, node1: str, node2: str, port: int, key: int | None = None) -> int:
        """Set the number of `node1`'s port to `node2`."""
        return self.updateLink(node1, node2, key=key, port1=port)

    def setIntfIp(self, node1: str, node2: str, ip: str, key: int | None = None) -> int:
        """Set the address of `node1`'s interface to `node2`; controllers alone see a switch's."""
        if self.isSwitch(node1):
            return self.updateLink(node1, node2, key=key, sw_ip1=ip)
        return self.updateLink(node1, node2, key=key, params1={"ip": ip})

    def setIntfMac(self, node1: str, node2: str, mac: str, key: int | None = None) -> int:
        """Set the MAC address of `node1`'s interface to `node2`."""
        return self.updateLink(node1, node2, key=key, addr1=mac)

    def setBwAll(self, bw: float) -> None:
        """Set the bandwidth of all links that there are, in Mbit/s."""
        for node1, node2, key in self.links(withKeys=True):
            self.setBw(node1, node2, bw, key)

    def setDelayAll(self, delay: float) -> None:
        """Set the delay of all links that there are, in ms."""
        for node1, node2, key in self.links(withKeys=True):
            self.setDelay(node1, node2, delay, key)

    def setLossAll(self, loss: float) -> None:
        """Set the loss of all links that there are, of 0 to 1."""
        for node1, node2, key in self.links(withKeys=True):
            self.setLoss(node1, node2, loss, key)

    def setMaxQueueSizeAll(self, max_queue_size: int) -> None:
        """Set the number of packets in the queues of all links that there are."""
        for node1, node2, key in self.links(withKeys=True):
            self.setMaxQueueSize(node1, node2, max_queue_size, key)

    # Addresses

    def l2(self) -> None:
        """Put all hosts into one network, 10.0.0.0/16."""
        self._assign("l2")

    def mixed(self) -> None:
        """Put the hosts of each switch into a network."""
        self._assign("mixed")

    def l3(self) -> None:
        """Put each host into a network."""
        self._assign("l3")

    def _assign(self, strategy: str) -> None:
        """Have the strategy give the addresses of the links that there are, in place of earlier ones."""
        self._strategy = strategy
        for link in self._links:
            for side in "12":
                for name in (f"addr{side}", f"params{side}", f"sw_ip{side}"):
                    link["options"].pop(name, None)

    def setIpBase(self, ipBase: str) -> None:
        """Accept the network in which hosts without another address are; only p4-utils' own."""
        if ipBase != "10.0.0.0/8":
            raise UnsupportedCallError(
                f"NetworkAPI.setIpBase: {ipBase!r}", valid="10.0.0.0/8; l2, mixed, l3, setIntfIp"
            )

    def setDefaultRoute(self, name: str, default_route: str) -> None:
        """Set a host's gateway."""
        if not self.isHost(name):
            raise BadInputError(f"{name} is not a host", valid=self.hosts())
        self._nodes[name]["defaultRoute"] = default_route

    def enableArpTables(self) -> None:
        """Have hosts know the MAC addresses of the others in their network."""
        self.auto_arp_tables = True

    def disableArpTables(self) -> None:
        """Have hosts ask for MAC addresses."""
        self.auto_arp_tables = False

    def enableGwArp(self) -> None:
        """Have hosts know the MAC address of their gateway."""
        self.auto_gw_arp = True

    def disableGwArp(self) -> None:
        """Have hosts ask for the MAC address of their gateway."""
        self.auto_gw_arp = False

    # Running

    def enableCli(self) -> None:
        """Have `startNetwork` open Mininet's prompt."""
        self.cli_enabled = True

    def disableCli(self) -> None:
        """Have `startNetwork` return once the network is up."""
        self.cli_enabled = False

    def setTopologyFile(self, topoFile: str) -> None:
        """Set where controllers find the network as a graph."""
        self.topoFile = topoFile

    def execScript(self, cmd: str, out_file: str | None = None, reboot: bool = True) -> None:
        """Run a command on the machine once the network is up; its output is in `out_file` or the lab's logs."""
        text = cmd if out_file is None else f"{{ {cmd}\n}} > {shlex.quote(out_file)} 2>&1"
        self._scripts.append({"cmd": text, "reboot_run": reboot})

    def addTask(
        self,
        name: str,
        exe: Any,
        start: float = 0,
        duration: float = 0,
        enableScheduler: bool = True,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Run a shell command on a host `start` seconds after the network is up, for `duration` seconds (0: no end)."""
        self._known(name)
        if not isinstance(exe, str):
            raise UnsupportedCallError(f"NetworkAPI.addTask: {exe!r} is not a shell command", valid="a text")
        self._tasks.append(
            Task(name, shlex.join([exe, *map(str, args)]) if args else exe, float(start), float(duration))
        )

    def addTaskFile(self, filepath: str, def_mod: str = "") -> None:
        """Add the tasks of a file: NODE START DURATION COMMAND, one a line."""
        for task in read_tasks(Path(filepath)):
            self.addTask(task.node, task.command, task.start_s, task.duration_s)

    def enableScheduler(self, name: str, path: str = "/tmp") -> None:
        """Do nothing: tasks need no scheduler."""
        self._known(name)

    def enableSchedulerAll(self, path: str = "/tmp") -> None:
        """Do nothing: tasks need no scheduler."""

    def disableScheduler(self, name: str) -> None:
        """Do nothing: tasks need no scheduler."""
        self._known(name)

    def disableSchedulerAll(self) -> None:
        """Do nothing: tasks need no scheduler."""

    def hasScheduler(self, name: str) -> bool:
        """Return True: every node runs tasks."""
        self._known(name)
        return True

    def printPortMapping(self) -> None:
        """Print each node's ports and neighbours."""
        from weft.topologies.networks import read_network

        network = read_network(self.write(Path(NETWORK_FILE)))
        ports: dict[str, list[str]] = {}
        for link in network.links:
            ports.setdefault(link.a, []).append(f"{link.a_port}:{link.b}")
            ports.setdefault(link.b, []).append(f"{link.b_port}:{link.a}")
        print("Port mapping:")
        for name in self.nodes():
            print(f"{name}:  " + "\t ".join(ports.get(name, [])))

    def describeP4Nodes(self) -> None:
        """Do nothing: `startNetwork` prints where everything is."""

    def network_tree(self) -> dict[str, Any]:
        """Return the network in the form of p4-utils' p4app.json."""
        switches = {name: _without_class(self._nodes[name]) for name in self._of_kind(_SWITCH)}
        hosts = {name: _without_class(self._nodes[name]) for name in self._of_kind(_HOST)}
        return {
            "written_by": WRITTEN_BY,
            "topology_file": self.topoFile,
            "exec_scripts": self._scripts,
            "topology": {
                "assignment_strategy": self._strategy,
                "default": {"auto_arp_tables": self.auto_arp_tables, "auto_gw_arp": self.auto_gw_arp},
                "links": [self._link_tree(link, hosts) for link in self._links],
                "hosts": {name: _without(node, ("ip", "mac")) for name, node in hosts.items()},
                "switches": switches,
            },
        }

    def _link_tree(self, link: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]]) -> list[Any]:
        ends = (link["node1"], link["node2"])
        options = {name: value for name, value in _without_class(link["options"]).items() if value is not None}
        for side, end in zip("12", ends, strict=True):
            if end in hosts:
                ip, mac = hosts[end].get("ip"), hosts[end].get("mac")
                if ip is not None:
                    options.setdefault(f"params{side}", {"ip": ip if "/" in str(ip) else f"{ip}/8"})
                if mac is not None:
                    options.setdefault(f"addr{side}", mac)
            elif link[f"port{side}"] is not None:
                options[f"port{side}"] = link[f"port{side}"]
        return [*ends, options]

    def write(self, path: Path) -> Path:
        """Write the network to a file in p4app.json's form, which `weft run` and `weft lab` take, and return its path.

        Raises BadInputError: another file is there, or an option is not a value of JSON.
        """
        if path.is_symlink() or (path.exists() and not _is_own(path)):
            raise BadInputError(
                "is there already, and not from a network of p4-utils'", place=path, valid="a free name"
            )
        try:
            text = json.dumps(self.network_tree(), indent=1)
        except (TypeError, ValueError) as error:
            raise BadInputError(f"an option of a node or a link is not plain data: {error}") from None
        with written_whole(path) as partial:
            partial.write_text(text + "\n", encoding="utf-8")
        hand_over([path])
        return path

    def startNetwork(self) -> None:
        """Start the network as a lab and open Mininet's prompt, or return with `disableCli`; ends the process if it
        cannot start.
        """
        code = run_guarded(self._start)
        if code:
            self.stopNetwork()
            sys.exit(code)

    def _start(self) -> None:
        from weft.clocks.environment import require_for, require_root
        from weft.clocks.real.network_lab import NetworkLab
        from weft.run.packet_logs import made
        from weft.run.spec import run_spec
        from weft.scenario.network_file import load_scenario_or_network, what_is_not_done
        from weft.scenario.parsing import Change

        path = self.write(Path(NETWORK_FILE))
        scenario, network = load_scenario_or_network(path, [Change("clock", "real", "clock")])
        assert network is not None
        require_root(f"weft run {path}")
        spec = run_spec(scenario)
        require_for(spec.fabric, spec.options)
        for line in what_is_not_done(network, is_virtual=False):
            print(line, file=sys.stderr)
        atexit.register(self.stopNetwork)
        lab = self._lab.enter_context(NetworkLab(spec.fabric, spec.options, network, progress=print))
        self.net = lab.network.net
        if self._log_dir is not None:
            lab.log_packets(made(Path(self._log_dir)))
        self._lab.enter_context(Tasks(self._tasks, lab, print))
        print("\n".join(lab.where_to_look()))
        if self.cli_enabled:
            from mininet.cli import CLI

            CLI(self.net)
            self.stopNetwork()

    def stopNetwork(self) -> None:
        """Stop the network; it may have been stopped before."""
        self._lab.close()


def _info(link: Mapping[str, Any]) -> dict[str, Any]:
    return {**link["options"], **{name: link[name] for name in ("node1", "node2", "port1", "port2")}}


def _turned(name: str) -> str:
    """Return the name of an option for the other end of a link."""
    return name[:-1] + {"1": "2", "2": "1"}[name[-1]] if name[-1:] in ("1", "2") else name


def _without(options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _without_class(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without Mininet's and p4-utils' classes, which the lab chooses, and their marks."""
    return _without(options, ("cls", "isHost", "isSwitch", "isP4Switch", "isP4RuntimeSwitch", "sw_bin", "use_htb"))


def _number(call: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInputError(f"{call}: {value!r} is not a number", valid="a number")
    return value


def _is_own(path: Path) -> bool:
    try:
        tree = json.loads(read_bytes(path, _MOST_BYTES))
    except (OSError, ValueError, RecursionError, UnreadableFileError):
        return False
    return isinstance(tree, dict) and tree.get("written_by") == WRITTEN_BY
