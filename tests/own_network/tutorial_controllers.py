"""Controllers that do what those of the tutorials do, in a run's own process."""

from typing import ClassVar

import weft

TUNNELS = {
    "s1": (100, "10.0.2.2", 200, H1 := "08:00:00:00:01:11"),
    "s2": (200, "10.0.1.1", 100, "08:00:00:00:02:22"),
}
"""By switch: tunnel of what it sends and to which address, tunnel of what it receives and to which host."""
HOSTS = {"10.0.1.1": H1, "10.0.2.2": "08:00:00:00:02:22", "10.0.3.3": "08:00:00:00:03:33"}
PORTS = {
    "s1": {"10.0.1.1": 1, "10.0.2.2": 2, "10.0.3.3": 3},
    "s2": {"10.0.1.1": 2, "10.0.2.2": 1, "10.0.3.3": 3},
    "s3": {"10.0.1.1": 2, "10.0.2.2": 3, "10.0.3.3": 1},
}


class Tunnels(weft.Controller):
    """Tunnels between h1 and h2, as p4runtime/mycontroller.py; without `transit`, as the starter."""

    def __init__(self, transit=True):
        self.transit = transit

    def on_start(self, switch):
        if switch.name not in TUNNELS:
            return
        sends, address, receives, host = TUNNELS[switch.name]
        switch.insert("ipv4_lpm", {"hdr.ipv4.dstAddr": [address, 32]}, "myTunnel_ingress", {"dst_id": sends})
        if self.transit:
            self.tunnel(switch, sends, "myTunnel_forward", {"port": 2})
        self.tunnel(switch, receives, "myTunnel_egress", {"dstAddr": host, "port": 1})

    def tunnel(self, switch, number, action, params):
        switch.insert("myTunnel_exact", {"hdr.myTunnel.dst_id": number}, action, params)


class FlowCache(weft.Controller):
    """Caches a flow when its first packet comes, until it is idle for 3 s, as flowcache/mycontroller.py."""

    log: ClassVar = []

    def on_start(self, switch):
        switch.set_clone_session(57, [510])

    def on_packet_in(self, switch, packet):
        protocol = packet.payload[23]
        source, destination = (".".join(map(str, packet.payload[at : at + 4])) for at in (26, 30))
        self.log.append(("packet-in", switch.name, packet.metadata["input_port"], source, destination))
        port = PORTS[switch.name][destination]
        switch.packet_out(packet.payload, opcode=1, reserved1=0, operand0=port)
        switch.insert(
            "flow_cache",
            {"hdr.ipv4.protocol": protocol, "hdr.ipv4.srcAddr": source, "hdr.ipv4.dstAddr": destination},
            "cached_action",
            {"port": port, "decrement_ttl": 1, "new_dscp": 5, "dst_eth_addr": HOSTS[destination]},
            idle_timeout_ns=3 * 10**9,
        )

    def on_idle_timeout(self, switch, entry):
        self.log.append(("idle", switch.name))
        switch.delete(entry.table, entry.match)
