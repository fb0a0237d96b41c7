"""What a host's own programs see of the fabric: ping, and a link rate that iperf3 cannot exceed."""

import itertools
import json
import subprocess

import pytest


def run_in(fabric, host, *command, timeout=60):
    process = fabric.lab.network.popen(host, list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = process.communicate(timeout=timeout)
    return process.returncode, output


@pytest.mark.parametrize("version", ["4", "6"])
def test_every_host_pings_every_other(small_fabric, version):
    hosts = small_fabric.topology.hosts
    for source, destination in itertools.permutations(hosts, 2):
        nic = destination.nics[0]
        address = str(nic.ipv4.ip if version == "4" else nic.ipv6.ip)
        status, output = run_in(small_fabric, source.name, "ping", f"-{version}", "-c", "1", "-W", "5", address)
        assert status == 0, output
        hops = 1 if source.nics[0].switch == nic.switch else 3
        assert f"ttl={64 - hops} " in output


@pytest.mark.parametrize("version", ["4", "6"])
def test_the_gateway_answers_ping(small_fabric, version):
    nic = small_fabric.topology.hosts[0].nics[0]
    address = str(nic.gateway_ipv4 if version == "4" else nic.gateway_ipv6)
    status, output = run_in(small_fabric, "h0", "ping", f"-{version}", "-c", "2", "-W", "5", address)
    assert status == 0, output


_PROBES = """
import socket, struct
# Linux's SOL_IP, SOL_IPV6, IP_RECVERR, IPV6_RECVERR: Python has no names for the last two.
level, option, family = (41, 25, socket.AF_INET6) if "{version}" == "6" else (0, 11, socket.AF_INET)
for ttl in (1, 2, 3):
    probe = socket.socket(family, socket.SOCK_DGRAM)
    probe.settimeout(5)
    probe.setsockopt(level, option, 1)
    probe.setsockopt(level, socket.IPV6_UNICAST_HOPS if level else socket.IP_TTL, ttl)
    probe.connect(("{address}", 33434))
    probe.send(bytes(500))
    try:
        probe.recv(1)
    except OSError:
        pass
    _, ancillary, _, _ = probe.recvmsg(2048, 512, socket.MSG_ERRQUEUE)
    error = ancillary[-1][2]
    _, origin, kind, code = struct.unpack_from("=IBBB", error)
    reporter = error[24:40] if level else error[20:24]
    print(origin, kind, code, socket.inet_ntop(family, reporter))
"""


@pytest.mark.parametrize("version", ["4", "6"])
def test_linux_hears_of_every_switch_whose_hop_limit_expires(small_fabric, version):
    """UDP probes as traceroute sends them: the kernel checks the reports and finds the sockets that they are for."""
    topology = small_fabric.topology
    nic = topology.hosts[3].nics[0]
    way = [topology.switch(name) for name in ("p0l0", "p0s0", "p0l1")]
    if version == "4":
        reporters, origin, kind, address = [each.address for each in way], 2, 11, nic.ipv4.ip
    else:
        reporters, origin, kind, address = [each.ipv6 for each in way], 3, 3, nic.ipv6.ip
    status, output = run_in(small_fabric, "h0", "python3", "-c", _PROBES.format(version=version, address=address))
    assert status == 0, output
    assert output.splitlines() == [f"{origin} {kind} 0 {each}" for each in reporters]


def test_the_kernel_answers_no_rocev2_with_port_unreachable(small_fabric):
    """A datagram to a host's UDP port 4791 finds a listener, so no ICMP error comes back."""
    address = str(small_fabric.topology.hosts[3].nics[0].ipv4.ip)
    script = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"s.connect(('{address}', 4791)); s.settimeout(2); s.send(b'x' * 40)\n"
        "try:\n    s.recv(10)\nexcept TimeoutError:\n    print('silence')\n"
        f"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.connect(('{address}', 4792)); s.settimeout(5)\n"
        "s.send(b'x')\ntry:\n    s.recv(10)\nexcept ConnectionRefusedError:\n    print('refused')\n"
    )
    status, output = run_in(small_fabric, "h0", "python3", "-c", script)
    assert (status, output.split()) == (0, ["silence", "refused"])


@pytest.mark.slow
def test_iperf3_is_held_to_the_link_rate(small_fabric):
    server = small_fabric.lab.network.popen(
        "h3", ["iperf3", "-s", "-1", "--forceflush"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        assert any("listening" in line for line in server.stdout)
        address = str(small_fabric.topology.hosts[3].nics[0].ipv4.ip)
        status, output = run_in(small_fabric, "h0", "iperf3", "-c", address, "-t", "4", "-J")
        assert status == 0, output
        received_bps = json.loads(output)["end"]["sum_received"]["bits_per_second"]
        link_bps = small_fabric.topology.hosts[0].nics[0].link.rate_bps / small_fabric.options.dilation
        assert 0 < received_bps <= link_bps
    finally:
        server.terminate()
        server.communicate(timeout=10)
