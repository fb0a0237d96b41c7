"""The network as a graph, with p4-utils' questions.

Interfaces are mappings: `port`, `intfName`, `addr` and `ip` of the node, the same names with `_neigh` of its neighbour,
and the link's `bw` and `weight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_interface
from itertools import pairwise
from typing import Any

import networkx as nx

from weft.errors import BadInputError

_HOST, _SWITCH, _P4, _P4RUNTIME, _ROUTER = "isHost", "isSwitch", "isP4Switch", "isP4RuntimeSwitch", "isRouter"
_KINDS = {"host": _HOST, "switch": _SWITCH, "p4switch": _P4, "p4rtswitch": _P4RUNTIME, "router": _ROUTER}
_NO_LIMIT = -1
_ENDS = {"1": "2", "2": "1"}

Interface = dict[str, Any]


class NodeDoesNotExist(Exception):
    """A node is not in the network."""

    def __init__(self, node: object) -> None:
        super().__init__(f"node <{node}> does not exist.")


class IntfDoesNotExist(Exception):
    """A node has no such interface, or none to a node."""


class InvalidHostIP(Exception):
    """No host has an address."""


class NetworkGraph(nx.Graph):  # type: ignore[misc]
    """A network of hosts and switches, as `load_topo` returns it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.edge_to_intf: dict[str, dict[str, Interface]] = {node: {} for node in self.nodes}
        self.node_to_intf: dict[str, dict[str, Interface]] = {node: {} for node in self.nodes}
        for link in (data for _, _, data in self.edges(data=True)):
            for side, other in _ENDS.items():
                node, neighbour = link[f"node{side}"], link[f"node{other}"]
                found = _seen_from(link, side)
                self.edge_to_intf[node][neighbour] = found
                self.node_to_intf[node][found["intfName"]] = found
        self.ip_to_host = {
            _address(data["ip"]): {"name": name, **data} for name, data in self.nodes(data=True) if _is_host(data)
        }

    # Nodes

    def get_nodes(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return all nodes with their data, or with the values of some fields."""
        return self._of_kind(None, fields)

    def get_hosts(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the hosts, as `get_nodes`."""
        return self._of_kind(_HOST, fields)

    def get_switches(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the switches, as `get_nodes`."""
        return self._of_kind(_SWITCH, fields)

    def get_p4switches(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the P4 switches, as `get_nodes`."""
        return self._of_kind(_P4, fields)

    def get_p4rtswitches(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the switches that serve P4Runtime, as `get_nodes`."""
        return self._of_kind(_P4RUNTIME, fields)

    def get_routers(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the routers, of which there are none."""
        return self._of_kind(_ROUTER, fields)

    def _of_kind(self, kind: str | None, fields: Sequence[str]) -> dict[str, Any]:
        found = {name: data for name, data in self.nodes(data=True) if kind is None or data.get(kind, False)}
        return {name: _some(data, fields) for name, data in found.items()}

    def isNode(self, name: str) -> bool:
        """Return whether there is a node."""
        return name in self.nodes

    def checkNode(self, name: str) -> None:
        """Raise NodeDoesNotExist unless there is a node."""
        self._data(name)

    def _data(self, name: str) -> dict[str, Any]:
        if name not in self.nodes:
            raise NodeDoesNotExist(name)
        data: dict[str, Any] = self.nodes[name]
        return data

    def isHost(self, name: str) -> bool:
        """Return whether a node is a host."""
        return bool(self._data(name).get(_HOST, False))

    def isSwitch(self, name: str) -> bool:
        """Return whether a node is a switch."""
        return bool(self._data(name).get(_SWITCH, False))

    def isP4Switch(self, name: str) -> bool:
        """Return whether a node is a P4 switch."""
        return bool(self._data(name).get(_P4, False))

    def isP4RuntimeSwitch(self, name: str) -> bool:
        """Return whether a node serves P4Runtime."""
        return bool(self._data(name).get(_P4RUNTIME, False))

    def isRouter(self, name: str) -> bool:
        """Return whether a node is a router."""
        return bool(self._data(name).get(_ROUTER, False))

    def isType(self, name: str, node_type: str) -> bool:
        """Return whether a node is a host, switch, p4switch, p4rtswitch or router. Raises BadInputError."""
        if node_type not in _KINDS:
            raise BadInputError(f"unknown type of node {node_type!r}", valid=_KINDS)
        return bool(self._data(name).get(_KINDS[node_type], False))

    # Switches

    def _of_switch(self, name: str, field: str) -> Any:
        if not self.isP4Switch(name):
            raise TypeError(f"{name} is not a P4 switch.")
        return self._data(name)[field]

    def get_p4switch_id(self, name: str) -> int:
        """Return a switch's device id."""
        return int(self._of_switch(name, "device_id"))

    def get_thrift_port(self, name: str) -> int:
        """Return a switch's Thrift port."""
        return int(self._of_switch(name, "thrift_port"))

    def get_thrift_ip(self, name: str) -> str:
        """Return the address of all switches."""
        self._of_switch(name, "thrift_port")
        return "127.0.0.1"

    def get_grpc_port(self, name: str) -> int:
        """Return the port of a switch's P4Runtime server."""
        return int(self._of_switch(name, "grpc_port"))

    def get_grpc_ip(self, name: str) -> str:
        """Return the address of all switches."""
        self._of_switch(name, "grpc_port")
        return "127.0.0.1"

    def get_cpu_port_intf(self, name: str, quiet: bool = False) -> str | None:
        """Return the interface of a switch's port for a controller; None if it has none."""
        found: str | None = self._of_cpu_port(name, "cpu_intf", quiet)
        return found

    def get_cpu_port_index(self, name: str, quiet: bool = False) -> int | None:
        """Return the number of a switch's port for a controller; None if it has none."""
        found: int | None = self._of_cpu_port(name, "cpu_port_num", quiet)
        return found

    def _of_cpu_port(self, name: str, field: str, quiet: bool) -> Any:
        if self.isP4Switch(name) and self._data(name).get("cpu_port", False):
            return self._data(name)[field]
        if not quiet:
            print(f"Switch {name} has no cpu port.")
        return None

    def get_ctl_cpu_intf(self, name: str) -> str:
        """Return the controller's interface at a switch's port for it. Raises TypeError if it has none."""
        found = self._of_cpu_port(name, "cpu_ctl_intf", quiet=True)
        if found is None:
            raise TypeError(f"Switch {name} has no cpu port.")
        return str(found)

    # Hosts

    def get_host_ip(self, name: str) -> str:
        """Return a host's address."""
        self._require_host(name)
        return _address(self._data(name)["ip"])

    def get_host_mac(self, name: str) -> str:
        """Return a host's MAC address."""
        return str(self._first_interface(name)["addr"])

    def get_host_name(self, ip: str) -> str:
        """Return the host with an address. Raises InvalidHostIP."""
        if ip not in self.ip_to_host:
            raise InvalidHostIP(f"IP {ip} is not valid.")
        return str(self.ip_to_host[ip]["name"])

    def get_host_first_interface(self, name: str) -> str:
        """Return the name of a host's interface."""
        return str(self._first_interface(name)["intfName"])

    def get_host_gateway_name(self, name: str) -> str:
        """Return the switch at a host."""
        return str(self._first_interface(name)["node_neigh"])

    def _require_host(self, name: str) -> None:
        if not self.isHost(name):
            raise TypeError(f"{name} is not a host.")

    def _first_interface(self, name: str) -> Interface:
        self._require_host(name)
        for found in self.node_to_intf[name].values():
            return found
        raise IntfDoesNotExist(f"{name} has no interface.")

    # Neighbours

    def get_neighbors(self, name: str) -> list[str]:
        """Return the nodes to which links of a node lead."""
        self._data(name)
        return list(self.neighbors(name))

    def are_neighbors(self, node1: str, node2: str) -> bool:
        """Return whether a link joins two nodes."""
        return node1 in self.get_neighbors(node2)

    def _neighbours_of_kind(self, name: str, kind: str) -> list[str]:
        return [each for each in self.get_neighbors(name) if self._data(each).get(kind, False)]

    def get_hosts_connected_to(self, name: str) -> list[str]:
        """Return the hosts at a node."""
        return self._neighbours_of_kind(name, _HOST)

    def get_switches_connected_to(self, name: str) -> list[str]:
        """Return the switches next to a node."""
        return self._neighbours_of_kind(name, _SWITCH)

    def get_p4switches_connected_to(self, name: str) -> list[str]:
        """Return the P4 switches next to a node."""
        return self._neighbours_of_kind(name, _P4)

    def get_routers_connected_to(self, name: str) -> list[str]:
        """Return the routers next to a node."""
        return self._neighbours_of_kind(name, _ROUTER)

    def get_direct_host_networks_from_switch(self, name: str) -> list[str]:
        """Return the networks of the hosts at a switch."""
        return sorted({str(self.subnet(host, name)) for host in self.get_hosts_connected_to(name)})

    # Interfaces

    def get_intfs(self, fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Return all interfaces by node and neighbour, or the values of some fields."""
        return _tables(self.edge_to_intf, fields)

    def get_node_intfs(self, fields: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Return all interfaces by node and name, or the values of some fields."""
        return _tables(self.node_to_intf, fields)

    def get_interfaces(self, name: str) -> list[str]:
        """Return the names of a node's interfaces."""
        self._data(name)
        return list(self.node_to_intf[name])

    def isIntf(self, node1: str, node2: str) -> bool:
        """Return whether `node1` has an interface to `node2`."""
        return node2 in self.edge_to_intf.get(node1, ())

    def checkIntf(self, node1: str, node2: str) -> None:
        """Raise IntfDoesNotExist unless `node1` has an interface to `node2`."""
        self._between(node1, node2)

    def _between(self, node1: str, node2: str) -> Interface:
        if not self.isIntf(node1, node2):
            raise IntfDoesNotExist(f"no interface facing node <{node2}> exists on node <{node1}>.")
        return self.edge_to_intf[node1][node2]

    def _named(self, node: str, intf: str) -> Interface:
        self._data(node)
        if intf not in self.node_to_intf[node]:
            raise IntfDoesNotExist(f"interface <{intf}> does not exist on node <{node}>.")
        return self.node_to_intf[node][intf]

    def node_to_node_port_num(self, node1: str, node2: str) -> int:
        """Return the number of `node1`'s port to `node2`."""
        return int(self._between(node1, node2)["port"])

    def node_to_node_mac(self, node1: str, node2: str) -> str:
        """Return the MAC address of `node1`'s interface to `node2`."""
        return str(self._between(node1, node2)["addr"])

    def node_to_node_interface_ip(self, node1: str, node2: str) -> str | None:
        """Return the address of `node1`'s interface to `node2` with its prefix length; None if it has none."""
        return self._between(node1, node2).get("ip")

    def node_to_node_interface_bw(self, node1: str, node2: str) -> float:
        """Return the bandwidth between two nodes in Mbit/s; -1 if the network gives none."""
        return _bandwidth(self._between(node1, node2))

    def node_interface_ip(self, node: str, intf: str) -> str | None:
        """Return the address of an interface; None if it has none."""
        found = self._named(node, intf).get("ip")
        return None if found is None else _address(found)

    def node_interface_bw(self, node: str, intf: str) -> float:
        """Return the bandwidth at an interface in Mbit/s; -1 if the network gives none."""
        return _bandwidth(self._named(node, intf))

    def subnet(self, node1: str, node2: str) -> str | None:
        """Return the network of `node1`'s interface to `node2`; None if it has no address."""
        found = self.node_to_node_interface_ip(node1, node2)
        return None if found is None else ip_interface(found).network.with_prefixlen

    def get_interfaces_to_node(self, node: str) -> dict[str, str]:
        """Return the neighbour at each interface of a node."""
        self._data(node)
        return {name: str(found["node_neigh"]) for name, found in self.node_to_intf[node].items()}

    def interface_to_node(self, node: str, intf: str) -> str:
        """Return the neighbour at an interface."""
        return str(self._named(node, intf)["node_neigh"])

    def interface_to_port(self, node: str, intf: str) -> int:
        """Return the port of an interface."""
        return int(self._named(node, intf)["port"])

    def port_to_node(self, node: str, port: int) -> str:
        """Return the neighbour at a port. Raises IntfDoesNotExist."""
        self._data(node)
        for found in self.node_to_intf[node].values():
            if found["port"] == port:
                return str(found["node_neigh"])
        raise IntfDoesNotExist(f"port <{port}> does not exist on node <{node}>.")

    # Paths

    def get_shortest_paths_between_nodes(self, node1: str, node2: str) -> list[tuple[str, ...]]:
        """Return the shortest paths by weight, as tuples of nodes; empty if no path leads there."""
        self._data(node1), self._data(node2)
        try:
            return [tuple(path) for path in nx.all_shortest_paths(self, node1, node2, weight="weight")]
        except nx.NetworkXNoPath:
            return []

    def get_all_paths_between_nodes(self, node1: str, node2: str) -> list[tuple[str, ...]]:
        """Return all simple paths as tuples of nodes, the shortest by weight first."""
        self._data(node1), self._data(node2)
        paths = [tuple(path) for path in nx.all_simple_paths(self, node1, node2)]
        return sorted(paths, key=self._weight)

    def _weight(self, path: Iterable[str]) -> float:
        return float(sum(self.edges[pair].get("weight", 1) for pair in pairwise(path)))

    def total_number_of_paths(self) -> int:
        """Return the number of shortest paths between all hosts."""
        hosts = list(self.get_hosts())
        return sum(
            len(self.get_shortest_paths_between_nodes(first, second))
            for first in hosts
            for second in hosts
            if first != second
        )

    def keep_only_switches(self) -> nx.Graph:
        """Return the network's switches and the links between them."""
        return nx.subgraph_view(self, filter_node=self.isSwitch)

    def keep_only_p4switches(self) -> nx.Graph:
        """Return the network's P4 switches and the links between them."""
        return nx.subgraph_view(self, filter_node=self.isP4Switch)

    def keep_only_p4switches_and_hosts(self) -> nx.Graph:
        """Return the network without routers."""
        return nx.subgraph_view(self, filter_node=lambda node: self.isP4Switch(node) or self.isHost(node))


Topology = NetworkGraph


def _is_host(data: Mapping[str, Any]) -> bool:
    return bool(data.get(_HOST, False)) and data.get("ip") is not None


def _bandwidth(interface: Mapping[str, Any]) -> float:
    found: float | None = interface.get("bw")
    return _NO_LIMIT if found is None else found


def _address(interface: object) -> str:
    return str(interface).partition("/")[0]


def _seen_from(link: Mapping[str, Any], side: str) -> Interface:
    """Return a link's data from one end: names without the end's number, the other end's with `_neigh`."""
    found: Interface = {}
    for name, value in link.items():
        if name.endswith(side):
            found[name[:-1]] = value
        elif name.endswith(_ENDS[side]):
            found[f"{name[:-1]}_neigh"] = value
        else:
            found[name] = value
    return found


def _some(data: Mapping[str, Any], fields: Sequence[str]) -> Any:
    """Return the data, or the values of some fields: a tuple, or the value itself if there is one field."""
    if not fields:
        return data
    values = tuple(data.get(field) for field in fields)
    return values[0] if len(values) == 1 else values


def _tables(found: Mapping[str, Mapping[str, Interface]], fields: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {node: {other: _some(intf, fields) for other, intf in of_node.items()} for node, of_node in found.items()}
