"""Fills the tables of learning.p4: where an address was seen, there it is."""

import weft

FLOOD = 1  # as in learning.p4


class LearningSwitch(weft.Controller):
    """Learns from digests; forgets an address when its source has been silent for `age_ms` milliseconds."""

    def __init__(self, age_ms=0):
        self.age_ns = age_ms * 1_000_000
        self.ports = {}  # (switch, address): port

    def on_start(self, switch):
        """Make the group that packets to unknown addresses are flooded by."""
        switch.set_multicast_group(FLOOD, [port.number for port in switch.spec.ports])

    def on_digest(self, switch, name, entries):
        """Note who is where: an entry stops the digests of an address, another one forwards to it."""
        for learned in entries:
            address, port, mac = learned["address"], learned["port"], learned["mac"]
            known = self.ports.get((switch.name, address))
            if known == port:
                continue  # the packet was on its way before the entry was there
            if known is not None:
                self.forget(switch, address, known)
            self.ports[switch.name, address] = port
            source = {"address": address, "port": port}
            switch.insert("sources", source, "NoAction", idle_timeout_ns=self.age_ns)
            switch.insert("destinations", {"address": address}, "forward", {"port": port, "mac": mac})

    def on_idle_timeout(self, switch, entry):
        """Forget a source that has been silent."""
        self.forget(switch, entry.match["address"], entry.match["port"])

    def forget(self, switch, address, port):
        """Remove both entries of an address."""
        if self.ports.pop((switch.name, address), None) is not None:
            switch.delete("sources", {"address": address, "port": port})
            switch.delete("destinations", {"address": address})
