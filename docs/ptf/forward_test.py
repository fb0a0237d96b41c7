"""PTF tests of forward.p4: entries through p4runtime-shell, packets through PTF's own sockets.

Test parameters: grpcaddr, p4info, config (see docs/ptf.md).
"""

import p4runtime_sh.shell as sh
import ptf
from ptf import testutils
from ptf.base_tests import BaseTest

NEXT_HOP = "02:00:00:00:00:99"
ROUTER = "02:00:00:00:00:01"


class ForwardTest(BaseTest):
    """Sets the pipeline before each test, and opens PTF's ports."""

    def setUp(self) -> None:
        """Connect, and load the program."""
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        parameter = testutils.test_param_get
        config = sh.FwdPipeConfig(parameter("p4info"), parameter("config"))
        sh.setup(device_id=1, grpc_addr=parameter("grpcaddr"), election_id=(0, 1), config=config, verbose=False)

    def tearDown(self) -> None:
        """Leave the stream."""
        sh.teardown()

    def add_route(self, prefix: str, port: int) -> None:
        """A route to `port`."""
        entry = sh.TableEntry("MyIngress.routes")(action="MyIngress.forward")
        entry.match["headers.ipv4.dst"] = prefix
        entry.action["port"] = str(port)
        entry.action["next_hop"] = NEXT_HOP
        entry.insert()


class RoutedPacket(ForwardTest):
    """The longest prefix decides; TTL and addresses change; the route counts."""

    def runTest(self) -> None:
        """Send one packet by each of two routes."""
        self.add_route("10.0.0.0/8", 2)
        self.add_route("10.1.0.0/16", 1)
        for destination, port in (("10.2.0.9", 2), ("10.1.0.9", 1)):
            sent = testutils.simple_tcp_packet(eth_dst=ROUTER, ip_dst=destination, ip_ttl=64)
            expected = testutils.simple_tcp_packet(eth_dst=NEXT_HOP, eth_src=ROUTER, ip_dst=destination, ip_ttl=63)
            testutils.send_packet(self, 1, sent)
            testutils.verify_packets(self, expected, [port])
        counts = [entry.packet_count for entry in sh.DirectCounterEntry("MyIngress.routed").read()]
        assert counts == [1, 1]


class DroppedPacket(ForwardTest):
    """Without a route, or with a TTL of 1, nothing leaves."""

    def runTest(self) -> None:
        """Send both."""
        self.add_route("10.0.0.0/8", 2)
        for destination, ttl in (("192.0.2.1", 64), ("10.0.0.1", 1)):
            testutils.send_packet(self, 1, testutils.simple_tcp_packet(ip_dst=destination, ip_ttl=ttl))
        testutils.verify_no_other_packets(self)
