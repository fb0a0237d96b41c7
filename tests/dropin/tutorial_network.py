"""A Mininet script in the style of p4lang's tutorials: one switch, two hosts, a controller over P4Runtime.

`python tutorial_network.py BINARY PROGRAM.json PROGRAM.txtpb LOGS`: prints what ping says. Only BINARY names the
switch, so `simple_switch_grpc` works as well as `weft-switch`.
"""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Switch
from mininet.topo import Topo

ADDRESSES = {"h1": "10.0.1.1", "h2": "10.0.1.2"}
GRPC_PORT = 50_061


class P4Host(Host):
    """A host with known neighbours and without checksum offload."""

    def config(self, **params: object) -> dict[str, object]:
        """Set the interface up."""
        result: dict[str, object] = super().config(**params)
        interface = self.defaultIntf().name
        self.cmd(f"ethtool -K {interface} rx off tx off sg off")
        self.cmd("sysctl -w net.ipv6.conf.all.disable_ipv6=1")
        return result


class P4RuntimeSwitch(Switch):
    """A software switch that a controller programs."""

    next_device_id = 0

    def __init__(self, name: str, sw_path: str, json_path: str, log_dir: str, **params: object) -> None:
        super().__init__(name, **params)
        self.device_id = P4RuntimeSwitch.next_device_id
        P4RuntimeSwitch.next_device_id += 1
        self.sw_path, self.json_path, self.log_dir = sw_path, json_path, log_dir
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, controllers: list[object]) -> None:
        """Start the binary with every interface."""
        line = [*shlex.split(self.sw_path)]
        for port, interface in self.intfs.items():
            if not interface.IP():
                line += ["-i", f"{port}@{interface.name}"]
        line += [
            f"--pcap={self.log_dir}",
            "--device-id",
            str(self.device_id),
            self.json_path,
            "--log-console",
        ]
        line += [
            "--thrift-port",
            "9095",
            "--",
            "--grpc-server-addr",
            f"127.0.0.1:{GRPC_PORT}",
            "--cpu-port",
            "255",
        ]
        with Path(self.log_dir, f"{self.name}.log").open("wb") as log:
            self.process = self.popen(line, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", GRPC_PORT)) == 0:
                    return
            time.sleep(0.1)
        raise SystemExit("the switch did not start")

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the process."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        super().stop(deleteIntfs)


class OneSwitch(Topo):  # type: ignore[misc]
    """h1 – s1 – h2."""

    def build(self, sw_path: str, json_path: str, log_dir: str) -> None:
        """See Topo."""
        switch = self.addSwitch(
            "s1",
            cls=P4RuntimeSwitch,
            sw_path=sw_path,
            json_path=json_path,
            log_dir=log_dir,
            inNamespace=False,
        )
        for number, (name, address) in enumerate(ADDRESSES.items(), start=1):
            host = self.addHost(name, cls=P4Host, ip=f"{address}/24", mac=f"02:00:00:00:00:{number:02x}")
            self.addLink(host, switch, port2=number)


def main(sw_path: str, json_path: str, p4info: str, log_dir: str) -> None:
    """Run the exercise."""
    from controller_script import write_routes

    setLogLevel("warning")
    net = Mininet(topo=OneSwitch(sw_path, json_path, log_dir), controller=None, autoSetMacs=False)
    net.start()
    try:
        net.staticArp()
        routes = {"10.0.1.1": 1, "10.0.1.2": 2}
        write_routes(f"127.0.0.1:{GRPC_PORT}", Path(p4info), Path(json_path), routes, wrapped=True)
        print(net.get("h1").cmd(f"ping -c 3 -i 0.2 -W 5 {ADDRESSES['h2']}"))
    finally:
        net.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
