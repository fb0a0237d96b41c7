// The fabric's own program with headers of somebody's own behind UDP: one that every packet to a port has, and one in
// front of RoCEv2's.
#define OWN_HEADERS \
    report_t report; \
    tunnel_t tunnel;
#define OWN_UDP_PORTS \
    7000: parse_report; \
    7001: parse_tunnel;
#define OWN_PARSER_STATES \
    state parse_report { \
        packet.extract(hdr.report); \
        transition accept; \
    } \
    state parse_tunnel { \
        packet.extract(hdr.tunnel); \
        transition select(hdr.tunnel.next_port) { \
            UDP_PORT_ROCE: parse_bth; \
            default: accept; \
        } \
    }
#define OWN_UDP_EMITS \
    packet.emit(hdr.report); \
    packet.emit(hdr.tunnel);

header report_t {
    bit<32> number;
}

header tunnel_t {
    bit<16> next_port;
    bit<16> tenant;
}

#include "../../../p4/fabric.p4"
