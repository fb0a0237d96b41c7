"""TCP on hosts: real segments on a wire, flows between hosts on a cable, and what arrives that is none."""

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from tests.hosts.ip_hosts import IpHost, cabled_hosts, is_balanced, lone_host
from weft.engine._core import TcpFlowConfig, TcpFlows, TcpProtocol

SECOND_PS = 10**12
PORT = 5001


def flows_of(
    host: IpHost, protocol: TcpProtocol, outgoing: list[TcpFlowConfig], incoming: list[TcpFlowConfig]
) -> TcpFlows:
    return TcpFlows(host.ip, host.executor, protocol, outgoing=outgoing, incoming=incoming, sample_interval_ps=10**6)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("control", ["newreno", "cubic", "dctcp"])
def test_a_flow(version: int, control: str) -> None:
    a, b = cabled_hosts()
    mss = 1460 if version == 4 else 1440
    common = {"port": PORT, "congestion_control": control, "maximum_segment_bytes": mss}
    sent = [TcpFlowConfig(0, peer=b.address(version), source_port=50_000, size_bytes=1_000_000, **common)]
    client = flows_of(a, TcpProtocol(a.ip), sent, [])
    server = flows_of(b, TcpProtocol(b.ip), [], [TcpFlowConfig(0, **common)])
    server.start()
    client.start()
    a.engine.run_until(SECOND_PS // 10)
    assert client.status()["state"] == server.status()["state"] == "finished"
    (sender,), (receiver,) = client.records(), server.records()
    assert (sender["bytes"], receiver["bytes"], receiver["spoilt_segments"]) == (1_000_000, 1_000_000, 0)
    assert sender["sender"]["retransmitted_segments"] == 0
    # 10 Gb/s with headers: no less than the line takes, no more than slow start adds to it.
    line_ps = 8 * 1_000_000 * SECOND_PS // 10**10
    assert line_ps < sender["finished_ps"] - sender["started_ps"] < 2 * line_ps
    samples = client.samples()
    assert samples["window_bytes"].max() > samples["window_bytes"].min()
    client.close()
    server.close()
    a.engine.run_until(2 * SECOND_PS)
    assert is_balanced(a.engine)


def test_a_flow_of_a_duration() -> None:
    a, b = cabled_hosts()
    sent = [TcpFlowConfig(0, peer=b.address(), port=PORT, source_port=50_000, duration_ps=SECOND_PS // 1000)]
    client = flows_of(a, TcpProtocol(a.ip), sent, [])
    server = flows_of(b, TcpProtocol(b.ip), [], [TcpFlowConfig(0, port=PORT)])
    server.start()
    client.start()
    a.engine.run_until(SECOND_PS)
    (sender,), (receiver,) = client.records(), server.records()
    took_ps = sender["finished_ps"] - sender["started_ps"]
    assert SECOND_PS // 1000 <= took_ps < SECOND_PS // 900
    assert sender["bytes"] == receiver["bytes"]
    assert 0.8 * took_ps < receiver["bytes"] * 8 * 100 < took_ps


@pytest.mark.parametrize("version", [4, 6])
def test_segments_on_the_wire(version: int) -> None:
    """Scapy computes the same checksum, and sees the options."""
    lone = lone_host()
    peer = "10.0.0.2" if version == 4 else "fd00::2"
    lone.host.ip.add_neighbour(peer, "02:00:00:00:00:02")
    flow = TcpFlowConfig(0, peer=peer, port=80, source_port=50_000, size_bytes=100, congestion_control="dctcp")
    flows = flows_of(lone.host, TcpProtocol(lone.host.ip), [flow], [])
    flows.start()
    (syn,) = lone.said()
    network = IP if version == 4 else IPv6
    assert (syn[network].src, syn[network].dst) == (lone.host.address(version), peer)
    assert (syn[TCP].sport, syn[TCP].dport, str(syn[TCP].flags)) == (50_000, 80, "SEC")
    lone.hears(answer_to(syn, network, "SAE", 4000, syn[TCP].seq + 1))
    (data,) = lone.said()
    assert str(data[TCP].flags) == "FPA"
    assert len(data[Raw]) == 100
    ecn = data[IP].tos & 3 if version == 4 else data[IPv6].tc & 3
    assert ecn == 2
    for frame in (syn, data):
        right = frame[TCP].chksum
        again = network(bytes(frame[network]))
        del again[TCP].chksum
        assert network(bytes(again))[TCP].chksum == right


def answer_to(frame: Packet, network: type[Packet], flags: str, sequence: int, acknowledgement: int) -> Packet:
    answer = TCP(
        sport=frame[TCP].dport,
        dport=frame[TCP].sport,
        flags=flags,
        seq=sequence,
        ack=acknowledgement,
        window=65535,
    )
    reply = Ether(src=frame[Ether].dst, dst=frame[Ether].src) / network(src=frame[network].dst, dst=frame[network].src)
    return reply / answer


def test_what_no_connection_takes() -> None:
    lone = lone_host()
    lone.host.ip.add_neighbour("10.0.0.2", "02:00:00:00:00:02")
    protocol = TcpProtocol(lone.host.ip)
    to_host = Ether(src="02:00:00:00:00:02", dst=lone.host.mac) / IP(src="10.0.0.2", dst=lone.host.address())
    lone.hears(to_host / TCP(sport=9, dport=80, flags="S", seq=77))
    (reset,) = lone.said()
    assert (str(reset[TCP].flags), reset[TCP].ack) == ("RA", 78)
    lone.hears(to_host / TCP(sport=9, dport=80, flags="S", chksum=1))
    lone.hears(to_host / TCP(sport=9, dport=80, flags="S", dataofs=4))
    lone.hears(to_host / TCP(sport=9, dport=80, flags="R"))
    assert lone.said() == []
    assert protocol.stats() == {
        "malformed_segments": 1,
        "bad_checksum_segments": 1,
        "unexpected_segments": 2,
        "refused_openings": 0,
        "not_sent_segments": 0,
    }


@pytest.mark.parametrize(("address", "port"), [("10.0.0.3", 50_000), ("10.0.0.2", 50_001)])
def test_a_flow_is_taken_from_its_sender_alone(address: str, port: int) -> None:
    """A SYN with another address or port is refused, and leaves the flow to whom it is for."""
    lone = lone_host()
    for number in (2, 3):
        lone.host.ip.add_neighbour(f"10.0.0.{number}", "02:00:00:00:00:02")
    protocol = TcpProtocol(lone.host.ip)
    flows = flows_of(lone.host, protocol, [], [TcpFlowConfig(0, port=PORT, peer="10.0.0.2", source_port=50_000)])
    flows.start()

    def opens(source: str, source_port: int) -> str:
        frame = Ether(src="02:00:00:00:00:02", dst=lone.host.mac) / IP(src=source, dst=lone.host.address())
        lone.hears(frame / TCP(sport=source_port, dport=PORT, flags="S", seq=77))
        (answer,) = lone.said()
        return str(answer[TCP].flags)

    assert opens(address, port) == "RA"
    assert protocol.stats()["refused_openings"] == protocol.stats()["unexpected_segments"] == 1
    assert opens("10.0.0.2", 50_000) == "SA"
    assert protocol.stats()["refused_openings"] == 1


def test_refused() -> None:
    a, b = cabled_hosts()
    TcpProtocol(b.ip)
    client = flows_of(
        a,
        TcpProtocol(a.ip),
        [TcpFlowConfig(7, peer=b.address(), port=PORT, source_port=50_000, size_bytes=1)],
        [],
    )
    client.start()
    a.engine.run_until(SECOND_PS)
    assert client.status()["state"] == "failed"
    assert client.status()["error"] == "TCP flow 7: connection refused"


def test_ports_that_are_taken() -> None:
    a, _ = cabled_hosts()
    protocol = TcpProtocol(a.ip)
    first = flows_of(a, protocol, [], [TcpFlowConfig(0, port=PORT)])
    with pytest.raises(ValueError, match="TCP port 5001 is taken"):
        flows_of(a, protocol, [], [TcpFlowConfig(0, port=PORT)])
    first.close()
    flows_of(a, protocol, [], [TcpFlowConfig(0, port=PORT)])
    with pytest.raises(ValueError, match="protocol 6 is taken"):
        TcpProtocol(a.ip)
    with pytest.raises(ValueError, match="unknown TCP congestion control 'bbr'"):
        flows_of(a, protocol, [], [TcpFlowConfig(0, port=6000, congestion_control="bbr")])
