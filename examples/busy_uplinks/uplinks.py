"""Chooses uplinks for destinations of uplinks.p4, and chooses again as the bytes are counted."""

import weft

PS_PER_US = 1e6


class BusyUplinks(weft.Controller):
    """Every `interval_us` each leaf's destinations are shared out over its uplinks, the busiest first; 0: never.

    The first look is after `first_us`, when there is something to see.
    """

    def __init__(self, interval_us=200, first_us=50):
        self.interval_ps = interval_us * PS_PER_US
        self.first_ps = first_us * PS_PER_US
        self.uplinks = {}  # of a leaf: ports to spines
        self.seen = {}  # (leaf, address): bytes counted when it was last looked at

    def on_start(self, switch):
        """Send all that is not at home by the first port that leads on."""
        if switch.name in self.uplinks:
            return  # it is back, with its entries
        ports = {port.peer.node: port.number for port in switch.spec.ports}
        self.uplinks[switch.name] = [port.number for port in switch.spec.ports if not port.peer_is_host]
        is_leaf = any(port.peer_is_host for port in switch.spec.ports)
        for host in self.fabric.hosts:
            nic = host.nics[0]
            port = ports.get(host.name if is_leaf else nic.switch, self.uplinks[switch.name][0])
            switch.insert("destinations", {"address": str(nic.ipv4.ip)}, "forward", {"port": port, "mac": nic.mac})
        if is_leaf and self.interval_ps:
            self.after(self.first_ps, lambda: self.begin(switch))

    def begin(self, switch):
        """Look for the first time, and from then on at intervals."""
        self.share_out(switch)
        self.every(self.interval_ps, lambda: self.share_out(switch))

    def share_out(self, switch):
        """Give each destination beyond the leaf to the uplink that has the least of the bytes since the last time."""
        uplinks = self.uplinks[switch.name]
        moving = []
        for entry in switch.entries("destinations"):
            address = entry.match["address"]
            count = entry.count.bytes
            since = count - self.seen.get((switch.name, address), 0)
            self.seen[switch.name, address] = count
            if entry.params["port"] in uplinks and since:
                moving.append((since, address, entry.params))
        load = dict.fromkeys(uplinks, 0)
        for since, address, params in sorted(moving, key=lambda each: (-each[0], each[1])):
            least = min(load.values())
            # One that is among the least loaded stays where it is: a move may put packets out of order.
            port = params["port"] if load[params["port"]] == least else min(uplinks, key=load.__getitem__)
            load[port] += since
            if port != params["port"]:
                switch.modify("destinations", {"address": address}, "forward", {**params, "port": port})
                print(f"{self.now / PS_PER_US:.0f} us {switch.name}: {dotted(address)} by port {port}")


def dotted(number):
    """Return an IPv4 address as text."""
    return ".".join(str(octet) for octet in number.to_bytes(4, "big"))
