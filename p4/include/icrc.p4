// The RoCEv2 invariant CRC of an aggregation packet (InfiniBand Architecture Specification, volume 1, annex
// A17.3.3): CRC-32 over eight bytes of ones, then IP to payload with the fields that may change on the way set to
// ones. It is sent in little-endian byte order.
#ifndef WEFT_ICRC_P4
#define WEFT_ICRC_P4

#include "headers.p4"

#define AND_LANE(n) , hdr.lanes.lane##n

#define ICRC_IPV4 \
    64w0xFFFFFFFFFFFFFFFF, \
    hdr.ipv4.version, hdr.ipv4.ihl, 8w0xFF, hdr.ipv4.total_length, hdr.ipv4.identification, \
    hdr.ipv4.flags, hdr.ipv4.fragment_offset, 8w0xFF, hdr.ipv4.protocol, 16w0xFFFF, \
    hdr.ipv4.source, hdr.ipv4.destination

#define ICRC_IPV6 \
    64w0xFFFFFFFFFFFFFFFF, \
    hdr.ipv6.version, 28w0xFFFFFFF, hdr.ipv6.payload_length, hdr.ipv6.next_header, 8w0xFF, \
    hdr.ipv6.source, hdr.ipv6.destination

// From UDP to the DETH, the same over IPv4 and IPv6.
#define ICRC_DATAGRAM \
    hdr.udp.source, hdr.udp.destination, hdr.udp.length, 16w0xFFFF, \
    hdr.bth.opcode, hdr.bth.solicited_event, hdr.bth.migration, hdr.bth.pad_count, hdr.bth.version, \
    hdr.bth.partition_key, 8w0xFF, hdr.bth.destination_qp, hdr.bth.ack_request, hdr.bth.reserved2, \
    hdr.bth.psn, \
    hdr.deth.queue_key, hdr.deth.reserved, hdr.deth.source_qp

#define ICRC_TRANSPORT \
    ICRC_DATAGRAM, \
    hdr.aggregation.version, hdr.aggregation.kind, hdr.aggregation.operation, hdr.aggregation.job_id, \
    hdr.aggregation.epoch, hdr.aggregation.slot, hdr.aggregation.round, hdr.aggregation.rank, \
    hdr.aggregation.lane_count, hdr.aggregation.data_type, hdr.aggregation.flags, hdr.aggregation.destination

// All 32 bits of it.
#define ICRC_RANGE 64w0x100000000

control AggregationIcrc(in headers_t hdr, out bit<32> icrc) {
    apply {
        bit<32> crc;
        if (hdr.lanes.isValid()) {
            if (hdr.ipv4.isValid()) {
                hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV4, ICRC_TRANSPORT FOR_EACH_LANE(AND_LANE) }, ICRC_RANGE);
            } else {
                hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV6, ICRC_TRANSPORT FOR_EACH_LANE(AND_LANE) }, ICRC_RANGE);
            }
        } else if (hdr.ipv4.isValid()) {
            hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV4, ICRC_TRANSPORT }, ICRC_RANGE);
        } else {
            hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV6, ICRC_TRANSPORT }, ICRC_RANGE);
        }
        icrc = crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24];
    }
}

#endif
