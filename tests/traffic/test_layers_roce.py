"""RoCEv2 headers and the iCRC against bytes written down from the specification or captured from hardware."""

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw

from weft.traffic.layers import (
    AETH,
    BTH,
    DETH,
    IETH,
    OPCODE,
    RETH,
    AtomicAckETH,
    AtomicAETH,
    AtomicETH,
    CNPPadding,
    ImmDt,
    icrc,
    icrc_is_valid,
    ip_packet_of,
    rdma_write_frame,
)

# A CNP captured from a ConnectX-4 Lx adapter.
HARDWARE_CNP = bytes.fromhex(
    "e41d2dab2bc27cfe90643b320800"  # Ethernet
    "45c2003c718c4000401191610a0011010a001201"  # IPv4
    "000012b700280000"  # UDP
    "8100ffff4000011800000000"  # BTH, BECN set
    "0000000000000000000000000000000082fd002a"  # reserved, iCRC
)

EXTENDED_HEADERS = {
    "RC_SEND_FIRST": [],
    "RC_SEND_MIDDLE": [],
    "RC_SEND_LAST": [],
    "RC_SEND_LAST_WITH_IMMEDIATE": [ImmDt],
    "RC_SEND_ONLY": [],
    "RC_SEND_ONLY_WITH_IMMEDIATE": [ImmDt],
    "RC_RDMA_WRITE_FIRST": [RETH],
    "RC_RDMA_WRITE_MIDDLE": [],
    "RC_RDMA_WRITE_LAST": [],
    "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE": [ImmDt],
    "RC_RDMA_WRITE_ONLY": [RETH],
    "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE": [RETH, ImmDt],
    "RC_RDMA_READ_REQUEST": [RETH],
    "RC_RDMA_READ_RESPONSE_FIRST": [AETH],
    "RC_RDMA_READ_RESPONSE_MIDDLE": [],
    "RC_RDMA_READ_RESPONSE_LAST": [AETH],
    "RC_RDMA_READ_RESPONSE_ONLY": [AETH],
    "RC_ACKNOWLEDGE": [AETH],
    "RC_ATOMIC_ACKNOWLEDGE": [AtomicAETH, AtomicAckETH],
    "RC_COMPARE_SWAP": [AtomicETH],
    "RC_FETCH_ADD": [AtomicETH],
    "RC_SEND_LAST_WITH_INVALIDATE": [IETH],
    "RC_SEND_ONLY_WITH_INVALIDATE": [IETH],
    "UC_SEND_FIRST": [],
    "UC_SEND_MIDDLE": [],
    "UC_SEND_LAST": [],
    "UC_SEND_LAST_WITH_IMMEDIATE": [ImmDt],
    "UC_SEND_ONLY": [],
    "UC_SEND_ONLY_WITH_IMMEDIATE": [ImmDt],
    "UC_RDMA_WRITE_FIRST": [RETH],
    "UC_RDMA_WRITE_MIDDLE": [],
    "UC_RDMA_WRITE_LAST": [],
    "UC_RDMA_WRITE_LAST_WITH_IMMEDIATE": [ImmDt],
    "UC_RDMA_WRITE_ONLY": [RETH],
    "UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE": [RETH, ImmDt],
    "UD_SEND_ONLY": [DETH],
    "UD_SEND_ONLY_WITH_IMMEDIATE": [DETH, ImmDt],
    "CNP": [CNPPadding],
    "READ_ACKNOWLEDGE": [AETH],
}


def crc32_bit_by_bit(data: bytes) -> int:
    """CRC-32 of IEEE 802.3, straight from its polynomial: independent of zlib."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def test_opcodes_have_the_values_of_the_specification():
    expected = {
        "RC_RDMA_WRITE_FIRST": 0x06,
        "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE": 0x0B,
        "RC_ACKNOWLEDGE": 0x11,
    }
    expected |= {"RC_RDMA_READ_REQUEST": 0x0C, "RC_FETCH_ADD": 0x14, "RC_SEND_ONLY_WITH_INVALIDATE": 0x17}
    expected |= {"UC_SEND_FIRST": 0x20, "UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE": 0x2B}
    expected |= {"UD_SEND_ONLY": 0x64, "UD_SEND_ONLY_WITH_IMMEDIATE": 0x65, "CNP": 0x81}
    assert {name: OPCODE[name] for name in expected} == expected
    assert set(EXTENDED_HEADERS) == set(OPCODE)


@pytest.mark.parametrize("name", sorted(OPCODE))
def test_each_opcode_is_dissected_into_its_extended_headers(name):
    headers = EXTENDED_HEADERS[name]
    extended = bytes(range(1, 1 + sum(len(header()) for header in headers)))
    data = b"" if name in ("RC_ACKNOWLEDGE", "RC_ATOMIC_ACKNOWLEDGE", "CNP", "READ_ACKNOWLEDGE") else b"\xab" * 8
    frame = raw(
        Ether(type=0x0800)
        / IP(src="10.0.0.1", dst="10.0.0.2", proto=17)
        / UDP(sport=0xC000, dport=4791, chksum=0)
        / BTH(opcode=OPCODE[name])
        / Raw(extended + data)
    )
    parsed = Ether(frame)
    layers = parsed.layers()
    assert layers[: 4 + len(headers)] == [Ether, IP, UDP, BTH, *headers]
    assert raw(parsed) == frame
    assert bytes(parsed.lastlayer().original if data else b"") == data


def test_reth_aeth_deth_immediate_and_atomics_stand_where_the_specification_puts_them():
    assert raw(RETH(va=0x0102030405060708, rkey=0x090A0B0C, dma_length=0x0D0E0F10)) == bytes(range(1, 17))
    assert raw(AETH(syndrome=0x60, msn=0x010203)) == bytes.fromhex("60010203")
    assert raw(DETH(qkey=0x01020304, source_qp=0x060708)) == bytes.fromhex("0102030400060708")
    assert raw(ImmDt(immediate=0x01020304)) == bytes.fromhex("01020304")
    assert raw(IETH(rkey=0x01020304)) == bytes.fromhex("01020304")
    atomic = AtomicETH(va=1, rkey=2, swap_add=3, compare=4)
    assert raw(atomic).hex() == "00000000000000010000000200000000000000030000000000000004"
    assert raw(AtomicAckETH(original_remote_data=5)).hex() == "0000000000000005"


def test_icrc_equals_the_one_a_hardware_adapter_sent():
    packet = ip_packet_of(HARDWARE_CNP)
    assert icrc(packet[:-4]).hex() == "82fd002a"
    assert icrc_is_valid(HARDWARE_CNP)
    parsed = Ether(HARDWARE_CNP)
    assert parsed.layers() == [Ether, IP, UDP, BTH, CNPPadding]
    del parsed[BTH].icrc
    assert raw(parsed) == HARDWARE_CNP


@pytest.mark.parametrize(
    ("source", "destination"),
    [("10.1.2.3", "10.3.2.1"), ("fd00:1:2::1", "fd00:1:3::2")],
    ids=["IPv4", "IPv6"],
)
@pytest.mark.parametrize("int_telemetry", [False, True])
def test_icrc_masks_exactly_the_variant_fields(source, destination, int_telemetry):
    frame = rdma_write_frame(
        source_mac="02:00:00:00:00:01",
        destination_mac="02:01:00:00:00:00",
        source_ip=source,
        destination_ip=destination,
        destination_qp=0x112233,
        psn=0x445566,
        payload=b"weft!",
        virtual_address=0x1000,
        rkey=7,
        immediate=9,
        int_telemetry=int_telemetry,
    )
    packet = ip_packet_of(raw(frame))
    masked = bytearray(packet[:-4])
    udp = 20 if "." in source else 40
    variant = [1, 8, 10, 11] if "." in source else [1, 2, 3, 7]
    for position in [*variant, udp + 6, udp + 7, udp + 8 + 4]:
        masked[position] = 0xFF
    if ":" in source:
        masked[0] = 0x6F
    expected = crc32_bit_by_bit(b"\xff" * 8 + masked).to_bytes(4, "little")
    assert packet[-4:] == expected == icrc(packet[:-4])
    assert icrc_is_valid(raw(frame))


@pytest.mark.parametrize("ip", [IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")])
def test_icrc_survives_what_switches_change_and_nothing_else(ip):
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ip
    frame = frame / UDP(sport=0xC001, dport=4791, chksum=0) / BTH(opcode=4, dqpn=5) / Raw(b"payload.")
    parsed = Ether(raw(frame))
    if IP in parsed:
        parsed[IP].ttl, parsed[IP].tos = 3, 0x6B
        del parsed[IP].chksum
    else:
        parsed[IPv6].hlim, parsed[IPv6].tc, parsed[IPv6].fl = 3, 0x6B, 0x12345
    parsed[BTH].fecn = 1
    assert icrc_is_valid(raw(parsed))
    parsed[BTH].dqpn = 6
    assert not icrc_is_valid(raw(parsed))


def test_ethernet_padding_does_not_enter_the_icrc():
    frame = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(dport=4791, chksum=0) / BTH(opcode=4)
    assert icrc_is_valid(raw(frame) + bytes(18))


@pytest.mark.parametrize("length", range(len(HARDWARE_CNP)))
def test_a_packet_cut_short_has_no_valid_icrc(length):
    assert not icrc_is_valid(HARDWARE_CNP[:length])


def test_icrc_says_what_is_wrong_with_a_packet():
    with pytest.raises(ValueError, match="not an IP packet: version 0"):
        icrc(b"")
    with pytest.raises(ValueError, match="protocol 6 is not UDP"):
        icrc(raw(IP(proto=6)) + bytes(40))
    with pytest.raises(ValueError, match="ends before its BTH"):
        icrc(raw(IP(proto=17)) + bytes(10))


def test_write_frames_are_padded_to_four_bytes():
    frame = rdma_write_frame(
        source_mac="02:00:00:00:00:01",
        destination_mac="02:00:00:00:00:02",
        source_ip="10.0.0.1",
        destination_ip="10.0.0.2",
        destination_qp=1,
        psn=2,
        payload=b"abcde",
    )
    parsed = Ether(raw(frame))
    assert (parsed[BTH].padcount, parsed[RETH].dma_length, parsed[Raw].load) == (3, 5, b"abcde\0\0\0")
