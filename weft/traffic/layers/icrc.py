"""The invariant CRC of RoCEv2 over raw bytes (InfiniBand Architecture, Annex A17.3.3 "RoCEv2 ICRC").

CRC-32 over eight bytes of ones (in place of the InfiniBand local route header), then everything from the
IP header to the end of the payload, with the fields that routers may change replaced by ones: IPv4 TOS, TTL
and header checksum, or IPv6 traffic class, flow label and hop limit; the UDP checksum; the BTH byte that
holds FECN, BECN and reserved bits. It is sent with its least significant byte first.
"""

from __future__ import annotations

import zlib

from weft.traffic.int_stack import INT_ETHERTYPE, INT_SHIM_BYTES

ICRC_BYTES = 4
_IPV4_ETHERTYPE, _IPV6_ETHERTYPE, _VLAN_ETHERTYPE = 0x0800, 0x86DD, 0x8100
_UDP_PROTOCOL = 17
_UDP_BYTES, _BTH_BYTES, _IPV6_BYTES = 8, 12, 40


def icrc(ip_packet: bytes) -> bytes:
    """Return the four iCRC bytes, in wire order, of an IP packet that ends before its iCRC.

    The lengths in the IP and UDP headers must already count the iCRC. Raises ValueError if the packet is
    neither IPv4 nor IPv6, carries no UDP (IPv6 extension headers are not RoCEv2), or
    ends before the BTH does.
    """
    masked = bytearray(ip_packet)
    udp_offset = _mask_ip_header(masked)
    if len(masked) < udp_offset + _UDP_BYTES + _BTH_BYTES:
        raise ValueError(f"packet of {len(masked)} bytes ends before its BTH does")
    masked[udp_offset + 6 : udp_offset + 8] = b"\xff\xff"
    masked[udp_offset + _UDP_BYTES + 4] = 0xFF
    return zlib.crc32(masked, zlib.crc32(b"\xff" * 8)).to_bytes(ICRC_BYTES, "little")


def _mask_ip_header(packet: bytearray) -> int:
    """Set the variant fields of the IP header to ones; return the offset of the UDP header."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        protocol, udp_offset = packet[9], (packet[0] & 0x0F) * 4
        packet[1] = packet[8] = packet[10] = packet[11] = 0xFF
    elif version == 6 and len(packet) >= _IPV6_BYTES:
        protocol, udp_offset = packet[6], _IPV6_BYTES
        packet[0:4] = b"\x6f\xff\xff\xff"
        packet[7] = 0xFF
    else:
        raise ValueError(f"not an IP packet: version {version}, {len(packet)} bytes (valid versions: 4, 6)")
    if protocol != _UDP_PROTOCOL:
        raise ValueError(f"IP protocol {protocol} is not UDP ({_UDP_PROTOCOL})")
    return udp_offset


def ip_packet_of(frame: bytes) -> bytes:
    """Return the IP packet inside an Ethernet frame, past VLAN tag and INT shim, without Ethernet padding.

    Raises ValueError if there is none or it is cut short.
    """
    offset, ethertype = 14, int.from_bytes(frame[12:14], "big")
    while ethertype in (_VLAN_ETHERTYPE, INT_ETHERTYPE):
        if ethertype == _VLAN_ETHERTYPE:
            ethertype = int.from_bytes(frame[offset + 2 : offset + 4], "big")
            offset += 4
        else:
            ethertype = int.from_bytes(frame[offset + 2 : offset + 4], "big")
            offset += INT_SHIM_BYTES
    packet = frame[offset:]
    if ethertype == _IPV4_ETHERTYPE and len(packet) >= 20:
        length = int.from_bytes(packet[2:4], "big")
    elif ethertype == _IPV6_ETHERTYPE and len(packet) >= _IPV6_BYTES:
        length = _IPV6_BYTES + int.from_bytes(packet[4:6], "big")
    else:
        raise ValueError(f"no IP packet in a frame of {len(frame)} bytes, EtherType 0x{ethertype:04x}")
    if length > len(packet):
        raise ValueError(f"IP length {length} exceeds the {len(packet)} bytes in the frame")
    return packet[:length]


def icrc_is_valid(frame: bytes) -> bool:
    """Return whether an Ethernet frame is a RoCEv2 packet that ends in the correct iCRC (False if malformed)."""
    try:
        packet = ip_packet_of(frame)
        return icrc(packet[:-ICRC_BYTES]) == packet[-ICRC_BYTES:]
    except ValueError:
        return False
