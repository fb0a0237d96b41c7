"""A controller of the kind that users write: finds links by probes, and routes host by host."""

import asyncio
import struct
import sys
from typing import ClassVar

import weft

PROBE = 0x88B6
TIMES_OUT_NS = 200_000


class Probing(weft.Controller):
    """What it sees stands in `log`, of the class, where tests look."""

    log: ClassVar = []

    def __init__(self, timeout_ns=0):
        self.timeout_ns = timeout_ns

    def on_start(self, switch):
        self.log.append(("start", switch.name))
        switch.write_register("limits", 2, 77 + switch.spec.device_id)
        for host in self.fabric.hosts:
            nic = host.nics[0]
            port = next((each.number for each in switch.spec.ports if each.peer.node == host.name), None)
            if port is None:
                wanted = "spine" if switch.spec.role == "leaf" else nic.switch
                port = next(each.number for each in switch.spec.ports if self.leads_to(each, wanted))
            params = {"port": port, "mac": nic.mac}
            match = {"address": str(nic.ipv4.ip)}
            switch.insert("addresses", match, "forward", params, idle_timeout_ns=self.timeout_ns)
        for port in switch.spec.ports:
            ethernet = struct.pack("!6s6sH", b"\xff" * 6, bytes(6), PROBE)
            payload = ethernet + struct.pack("!HH", switch.spec.device_id, port.number) + bytes(42)
            switch.packet_out(payload, egress_port=port.number, reserved=0)

    def leads_to(self, port, wanted):
        peer = self.switches.get(port.peer.node)
        return peer is not None and wanted in (peer.name, peer.spec.role)

    def on_packet_in(self, switch, packet):
        device, port = struct.unpack_from("!HH", packet.payload, 14)
        counted = switch.read_counter("probes", 1).packets
        self.log.append(("probe", device, port, switch.name, packet.metadata["ingress_port"], counted))

    def on_link(self, link, up):
        self.log.append(("link", self.fabric.link_name(link), up))

    def on_idle_timeout(self, switch, entry):
        self.log.append(("idle", switch.name, entry.table, dict(entry.match), entry.action))
        switch.delete(entry.table, entry.match)


class Careless(weft.Controller):
    """Fails where its parameter says."""

    def __init__(self, where="on_start"):
        self.where = where

    def on_start(self, switch):
        if self.where == "on_start":
            self.fail(switch)
        if self.where == "exit":
            sys.exit(0)
        if self.where == "cancelled":
            self.after(1e6, self.cancelled)
        if self.where == "table":
            switch.insert("adresses", {"address": 1}, "drop")
        if self.where == "at once":
            self.again()
        if self.where == "nothing":
            self.after(1, None)

    def again(self):
        self.after(0, self.again)

    def on_link(self, link, up):
        if self.where == "on_link":
            self.fail(link)

    def cancelled(self):
        raise asyncio.CancelledError

    def fail(self, what):
        raise LookupError(f"no idea of {what}")


class Waiting(weft.Controller):
    """Takes its methods for coroutines."""

    async def on_start(self, switch):
        pass


class WaitingForTicks(weft.Controller):
    """Takes what a timer calls for a coroutine."""

    def on_start(self, switch):
        self.every(1e6, self.tick)

    async def tick(self):
        pass


class Ticking(weft.Controller):
    """Calls itself by timers; `log` has what was called and when."""

    log: ClassVar = []

    def __init__(self, fail_at=None):
        self.fail_at = fail_at

    def on_start(self, switch):
        if switch.name != "p0l0":
            return
        self.every(20e6, self.tick)
        self.after(5e6, lambda: self.log.append(("once", self.now)))
        self.after(0, lambda: self.after(7e6, self.later))

    def tick(self):
        self.log.append(("tick", self.now))
        if self.fail_at is not None and self.now >= self.fail_at:
            raise LookupError("no idea of the time")

    def later(self):
        switch = self.switches["p0l0"]
        switch.write_register("limits", 0, self.now)
        self.log.append(("later", self.now, switch.read_register("limits", 0)))
