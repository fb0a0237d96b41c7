// A switch's notification of a queue to the sender of a packet that met it (docs/spec/host-transports.md).
#ifndef WEFT_BOLT_HEADERS_P4
#define WEFT_BOLT_HEADERS_P4

const bit<16> UDP_PORT_NOTIFICATION = 0x4570;
const bit<8>  NOTIFICATION_VERSION  = 1;
// UDP 8 and the header 16; with Ethernet 14, and IPv4 20 or IPv6 40.
const bit<16> NOTIFICATION_UDP_LENGTH = 24;
const bit<32> NOTIFICATION_BYTES_IPV4 = 58;
const bit<32> NOTIFICATION_BYTES_IPV6 = 78;

// Of the bits that the BTH reserves after FECN and BECN, which the iCRC does not cover: a packet of the last or the
// first window of its flow.
const bit<6>  LAST_WINDOW  = 0x20;
const bit<6>  FIRST_WINDOW = 0x10;

// The session's only replica goes to CPU_PORT, which it never reaches: it recirculates, to be routed like any packet.
const bit<32> NOTIFICATION_SESSION   = 2;
const bit<8>  FIELDS_OF_NOTIFICATION = 3;

header notification_t {
    bit<8>  version;
    bit<24> queue_pair;
    bit<8>  reserved;
    bit<24> psn;
    bit<32> queue_bytes;
    bit<32> rate_mbps;
}

#define BOLT_METADATA \
    bit<1> is_bolt;    /* of a packet: marked by this, not by ECN's thresholds */ \
    bit<1> bolt_marks; \
    @field_list(3) bit<1>  notifies; \
    @field_list(3) bit<32> notified_queue_bytes; \
    @field_list(3) bit<32> notified_rate_mbps;

#endif
