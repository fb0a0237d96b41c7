"""The invariant CRC once more, written out bit by bit from the specification (7.8.1, A17.3.3)."""

ETHERNET_BYTES = 14
INT_SHIM_BYTES = 46


def crc32_bitwise(data: bytes) -> int:
    remainder = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):  # least significant bit first
            feedback = (remainder ^ (byte >> bit)) & 1
            remainder = (remainder >> 1) ^ (0xEDB88320 if feedback else 0)
    return remainder ^ 0xFFFFFFFF


def ip_offset(frame: bytes) -> int:
    has_shim = frame[12:14] == b"\x88\xb5"
    return ETHERNET_BYTES + (INT_SHIM_BYTES if has_shim else 0)


def icrc_of_frame(frame: bytes) -> bytes:
    """The four bytes that should end this frame."""
    ip = bytearray(frame[ip_offset(frame) : -4])
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF  # type of service, time to live, checksum
        udp = 20
    else:
        ip[0] |= 0x0F  # traffic class, flow label, hop limit
        ip[1] = ip[2] = ip[3] = ip[7] = 0xFF
        udp = 40
    ip[udp + 6] = ip[udp + 7] = 0xFF  # UDP checksum
    ip[udp + 8 + 4] = 0xFF  # FECN, BECN and the reserved bits beside them
    return crc32_bitwise(b"\xff" * 8 + bytes(ip)).to_bytes(4, "little")


def reseal(frame: bytes) -> bytes:
    """The frame with its iCRC (and IPv4 checksum) corrected."""
    sealed = bytearray(frame)
    ip = ip_offset(frame)
    if sealed[ip] >> 4 == 4:
        sealed[ip + 10 : ip + 12] = b"\0\0"
        total = sum(int.from_bytes(sealed[at : at + 2], "big") for at in range(ip, ip + 20, 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        sealed[ip + 10 : ip + 12] = (total ^ 0xFFFF).to_bytes(2, "big")
    sealed[-4:] = icrc_of_frame(bytes(sealed))
    return bytes(sealed)
