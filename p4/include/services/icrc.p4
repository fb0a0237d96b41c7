// The invariant CRC of a service packet, as that of an aggregation packet (icrc.p4) over its own header.
#ifndef WEFT_SERVICES_ICRC_P4
#define WEFT_SERVICES_ICRC_P4

#include "../headers.p4"
#include "../icrc.p4"

#define ICRC_SERVICE \
    ICRC_DATAGRAM, \
    hdr.service.version, hdr.service.kind, hdr.service.operation, hdr.service.group_id, hdr.service.epoch, \
    hdr.service.cell, hdr.service.sequence, hdr.service.member, hdr.service.flags, hdr.service.operand, \
    hdr.service.comparand

control ServiceIcrc(in headers_t hdr, out bit<32> icrc) {
    apply {
        bit<32> crc;
        if (hdr.ipv4.isValid()) {
            hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV4, ICRC_SERVICE }, ICRC_RANGE);
        } else {
            hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV6, ICRC_SERVICE }, ICRC_RANGE);
        }
        icrc = crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24];
    }
}

#endif
