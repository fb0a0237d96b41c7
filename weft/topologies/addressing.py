"""Names of nodes, and addresses and MACs of fabrics that fit the octet plan (docs/spec/addressing.md).

Indices count from 0. The octets of 10.plane.leaf.0/24 set the plan's limits: leaf 255 holds the spines' loopbacks,
leaf 254 the cores' where there are cores, and host octet .254 is the leaf's gateway. Fabrics that do not fit use a
hierarchy (`weft.topologies.address_plan`).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Literal

from weft.errors import InvalidValueError
from weft.topologies.errors import TopologyError

IpVersion = Literal[4, 6]
IpAddress = IPv4Address | IPv6Address

MAX_PLANES = 256
MAX_LEAVES = 255
MAX_SPINES = 254
MAX_CORES = 254
MAX_HOSTS_PER_LEAF = 253
CPU_PORT = 510
MAX_PORTS = CPU_PORT - 1
MAX_INTERFACE_NAME_LENGTH = 15

HOST_IPV4_PREFIX_LENGTH = 24
HOST_IPV6_PREFIX_LENGTH = 64

_SPINE_OCTET = 255
_CORE_OCTET = 254
_GATEWAY_OCTET = 254
_IPV6_BASE = 0xFD00 << 112

_MAX_JOB_ID = 0xFFFF
_GROUP_IPV4 = int(IPv4Address("239.87.0.0"))
_GROUP_IPV6 = int(IPv6Address("ff15::ef57:0"))
_GROUP_MAC_PREFIX: dict[IpVersion, str] = {4: "01:00:5e:57", 6: "33:33:ef:57"}
_SERVICE_GROUP_IPV4 = int(IPv4Address("239.88.0.0"))
_SERVICE_GROUP_IPV6 = int(IPv6Address("ff15::ef58:0"))


def host_name(index: int) -> str:
    """Return the name of the host with this index in the fabric: `h3`."""
    return f"h{index}"


def switch_name(plane: int, letter: str, index: int) -> str:
    """Return the name of a switch, such as `p0l1`; the letter stands for its role."""
    return f"p{plane}{letter}{index}"


def interface_name(node: str, number: int) -> str:
    """Return the name of a node's interface, `p0l1-eth3` or `h3-eth0`; Linux allows 15 characters (IFNAMSIZ)."""
    return _fitting(f"{node}-eth{number}")


def cpu_interface_names(switch: str) -> tuple[str, str]:
    """Return the names that p4-utils gives the veth pair from a switch to a controller, the switch's end first."""
    return _fitting(f"{switch}-cpu-eth0"), _fitting(f"{switch}-cpu-eth1")


def _fitting(name: str) -> str:
    if len(name) > MAX_INTERFACE_NAME_LENGTH:
        raise TopologyError(
            f"interface name {name!r} has {len(name)} characters",
            valid=f"at most {MAX_INTERFACE_NAME_LENGTH}",
        )
    return name


def host_ipv4(plane: int, leaf: int, host: int) -> IPv4Address:
    """10.plane.leaf.(host+1), `host` being the index on its leaf."""
    return _ipv4(plane, leaf, host + 1)


def leaf_ipv4(plane: int, leaf: int) -> IPv4Address:
    """10.plane.leaf.254: gateway of the leaf's hosts and the leaf's aggregation address."""
    return _ipv4(plane, leaf, _GATEWAY_OCTET)


def spine_ipv4(plane: int, spine: int) -> IPv4Address:
    """10.plane.255.(spine+1): loopback and aggregation address of a spine."""
    return _ipv4(plane, _SPINE_OCTET, spine + 1)


def core_ipv4(plane: int, core: int) -> IPv4Address:
    """10.plane.254.(core+1): loopback and aggregation address of a core."""
    return _ipv4(plane, _CORE_OCTET, core + 1)


def host_ipv6(plane: int, leaf: int, host: int) -> IPv6Address:
    """fd00:plane:leaf::(host+1), in hexadecimal."""
    return _ipv6(plane, leaf, host + 1)


def leaf_ipv6(plane: int, leaf: int) -> IPv6Address:
    """fd00:plane:leaf::fe."""
    return _ipv6(plane, leaf, _GATEWAY_OCTET)


def spine_ipv6(plane: int, spine: int) -> IPv6Address:
    """fd00:plane:ff::(spine+1)."""
    return _ipv6(plane, _SPINE_OCTET, spine + 1)


def core_ipv6(plane: int, core: int) -> IPv6Address:
    """fd00:plane:fe::(core+1)."""
    return _ipv6(plane, _CORE_OCTET, core + 1)


def host_mac(plane: int, leaf: int, host: int) -> str:
    """02:00:pp:ll:00:(host+1)."""
    return _mac(0, plane, leaf, host + 1)


def leaf_mac(plane: int, leaf: int) -> str:
    """02:01:pp:ll:00:00."""
    return _mac(1, plane, leaf, 0)


def spine_mac(plane: int, spine: int) -> str:
    """02:02:pp:ss:00:00."""
    return _mac(2, plane, spine, 0)


def core_mac(plane: int, core: int) -> str:
    """02:03:pp:cc:00:00."""
    return _mac(3, plane, core, 0)


def result_group_address(job_id: int, ip_version: IpVersion = 4) -> IpAddress:
    """Return the multicast group of an aggregation job's results.

    It is 239.87.(job_id >> 8).(job_id & 255) or ff15::ef57:job_id. The IPv6 group is transient and site-local; its
    low 32 bits lie in RFC 3307's dynamic range.
    Raises ValueError for a job id outside 0 to 65535.
    """
    _check_job(job_id)
    return IPv6Address(_GROUP_IPV6 | job_id) if ip_version == 6 else IPv4Address(_GROUP_IPV4 | job_id)


def result_group_mac(job_id: int, ip_version: IpVersion = 4) -> str:
    """Return the MAC of a job's result group (RFC 1112, 6.4; RFC 2464, 7). Raises as `result_group_address`."""
    _check_job(job_id)
    return f"{_GROUP_MAC_PREFIX[ip_version]}:{job_id >> 8:02x}:{job_id & 0xFF:02x}"


def service_group_address(group_id: int, ip_version: IpVersion = 4) -> IpAddress:
    """Return the multicast group of services' answers: 239.88.(group_id >> 8).(group_id & 255), ff15::ef58:group_id.

    Raises ValueError for a group id outside 0 to 65535.
    """
    if not 0 <= group_id <= _MAX_JOB_ID:
        raise InvalidValueError(f"group id {group_id}", valid=f"0 to {_MAX_JOB_ID}")
    if ip_version == 6:
        return IPv6Address(_SERVICE_GROUP_IPV6 | group_id)
    return IPv4Address(_SERVICE_GROUP_IPV4 | group_id)


def _check_job(job_id: int) -> None:
    if not 0 <= job_id <= _MAX_JOB_ID:
        raise InvalidValueError(f"job id {job_id}", valid=f"0 to {_MAX_JOB_ID}")


def _ipv4(plane: int, third_octet: int, fourth_octet: int) -> IPv4Address:
    return IPv4Address(bytes((10, plane, third_octet, fourth_octet)))


def _ipv6(plane: int, third_group: int, last_group: int) -> IPv6Address:
    return IPv6Address(_IPV6_BASE | plane << 96 | third_group << 80 | last_group)


def _mac(kind: int, plane: int, index: int, host: int) -> str:
    return f"02:{kind:02x}:{plane:02x}:{index:02x}:00:{host:02x}"
