"""Says which host belongs to which tenant."""

import weft


class Tenants(weft.Controller):
    """Gives hosts to `count` tenants in turn: h0 to tenant 1, h1 to tenant 2, …"""

    def __init__(self, count=2):
        self.count = count

    def on_start(self, switch):
        """Fill a leaf's table of its own hosts."""
        for port in switch.spec.host_ports:
            host = self.fabric.host(port.peer.node)
            tenant = 1 + host.index % self.count
            source = host.nics[port.peer.port].ipv4.ip
            switch.insert("tenants", {"source": source}, "set_tenant", {"number": tenant})

    def on_link(self, link, up):
        """See a link fail or come back; Weft routes around it by itself."""
        print(f"{self.fabric.link_name(link)} is {'up' if up else 'down'}")
