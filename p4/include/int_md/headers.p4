// INT-MD of P4.org's INT Dataplane Specification 2.1, over UDP, and the Telemetry Report Format 2.0. Layouts and what
// Weft chooses where the specifications leave a choice: docs/spec/int-md.md.
#ifndef WEFT_INT_MD_HEADERS_P4
#define WEFT_INT_MD_HEADERS_P4

// IANA has assigned none (INT_TBD in the specification).
const bit<16> UDP_PORT_INT_MD = 0x4568;

const bit<4> INT_TYPE_MD     = 1;
const bit<4> INT_MD_VERSION  = 2;
// What follows the stack: the UDP payload of the packet's own UDP header, or its whole layer 4 behind a new UDP header.
const bit<2> NPT_UDP_PAYLOAD = 1;
const bit<2> NPT_LAYER_4     = 2;
// Words of the INT-MD header, of which the shim counts the length.
const bit<8> INT_MD_WORDS    = 3;
// Shim 4 and INT-MD header 12; a new UDP header is 8 more.
const bit<16> INT_MD_FIXED_BYTES = 16;
const bit<16> UDP_BYTES          = 8;

// The session's only replica goes to CPU_PORT, which it never reaches: it recirculates, to be routed like any packet.
const bit<32> INT_MD_REPORT_SESSION = 1;
const bit<8>  FIELDS_OF_CLONE       = 1;
const bit<8>  FIELDS_OF_REPORT      = 2;

const bit<4> REPORT_VERSION    = 2;
const bit<4> REPORT_INNER_ONLY = 0;
const bit<4> REPORT_INNER_IPV4 = 4;
const bit<4> REPORT_INNER_IPV6 = 5;

header int_md_shim_t {
    bit<4>  type;
    bit<2>  npt;
    bit<2>  reserved;
    bit<8>  length_words; // without the shim
    bit<16> original;     // NPT 1: UDP destination port, NPT 2: a byte of zeros and the IP protocol
}

header int_md_t {
    bit<4>  version;
    bit<1>  discard;
    bit<1>  hops_exceeded;
    bit<1>  mtu_exceeded;
    bit<12> reserved;
    bit<5>  hop_words;
    bit<8>  remaining_hops;
    bit<16> instructions;
    bit<16> domain_id;
    bit<16> domain_instructions;
    bit<16> domain_flags;
}

// What the hops before have put on the stack, the last one first.
header int_md_stack_t {
    varbit<8064> words; // 252 words: the shim counts up to 255
}

// What this hop puts on top, in order of the instructions' bits.
header int_md_node_t {
    bit<32> node_id;
}

header int_md_interfaces_t {
    bit<16> ingress;
    bit<16> egress;
}

header int_md_latency_t {
    bit<32> latency_ns;
}

header int_md_queue_t {
    bit<8>  queue_id;
    bit<24> occupancy_bytes;
}

header int_md_time_t {
    bit<64> time_ns;
}

header report_group_t {
    bit<4>  version;
    bit<6>  hardware_id;
    bit<22> sequence;
    bit<32> node_id;
}

header report_t {
    bit<4> type;
    bit<4> inner_type;
    bit<8> length_words; // without this header; 0xFF: to the end of the UDP payload
    bit<8> metadata_words;
    bit<1> dropped;
    bit<1> congested;
    bit<1> tracked;
    bit<1> intermediate;
    bit<4> reserved;
}

// Fields of headers_t. The sink's packet keeps what it has removed in headers that are never sent: its clone, from which
// the report is made, begins egress with all the headers that the packet ends it with.
#define INT_MD_HEADERS \
    ipv4_t         report_ipv4; \
    ipv6_t         report_ipv6; \
    udp_t          report_udp; \
    report_group_t report_group; \
    report_t       report; \
    udp_t          inner_udp; \
    int_md_shim_t  int_md_shim; \
    int_md_t       int_md; \
    int_md_node_t  int_md_node; \
    int_md_interfaces_t int_md_interfaces; \
    int_md_latency_t int_md_latency; \
    int_md_queue_t int_md_queue; \
    int_md_time_t  int_md_ingress_time; \
    int_md_time_t  int_md_egress_time; \
    int_md_stack_t int_md_stack; \
    int_md_shim_t  removed_shim; \
    int_md_t       removed_int_md; \
    int_md_stack_t removed_stack;

// Fields of metadata_t. The clone has the values of the sink's packet, which are those that count.
#define INT_MD_METADATA \
    bit<1>  int_md_from_host; \
    @field_list(2) bit<1> int_md_is_report; \
    bit<16> int_md_growth_bytes; /* of the packet in this egress, modulo 2^16 */ \
    @field_list(1) bit<16> int_md_ingress; \
    @field_list(1) bit<16> int_md_egress; \
    @field_list(1) bit<32> int_md_latency_ns; \
    @field_list(1) bit<8>  int_md_queue_id; \
    @field_list(1) bit<24> int_md_queue_bytes; \
    @field_list(1) bit<64> int_md_ingress_ns; \
    @field_list(1) bit<64> int_md_egress_ns;

// Cases of the choice by UDP destination port, and the states that follow. The flow stays that of the packet without
// INT, so it is hashed to the same path.
#define INT_MD_UDP_PORTS UDP_PORT_INT_MD: parse_int_md_shim;

#define INT_MD_PARSER_STATES \
    state parse_int_md_shim { \
        packet.extract(hdr.int_md_shim); \
        transition select(hdr.int_md_shim.type, hdr.int_md_shim.npt) { \
            (INT_TYPE_MD, NPT_UDP_PAYLOAD): parse_int_md; \
            (INT_TYPE_MD, NPT_LAYER_4): parse_int_md; \
            default: accept; \
        } \
    } \
    state parse_int_md { \
        verify(hdr.int_md_shim.length_words >= INT_MD_WORDS, error.ParserInvalidArgument); \
        packet.extract(hdr.int_md); \
        verify(hdr.int_md.version == INT_MD_VERSION, error.ParserInvalidArgument); \
        packet.extract(hdr.int_md_stack, ((bit<32>)(hdr.int_md_shim.length_words - INT_MD_WORDS)) << 5); \
        transition select(hdr.int_md_shim.npt, hdr.int_md_shim.original) { \
            (NPT_UDP_PAYLOAD, UDP_PORT_ROCE): parse_int_md_bth; \
            (NPT_UDP_PAYLOAD, _): parse_int_md_port; \
            (_, (bit<16>)PROTOCOL_TCP): parse_int_md_tcp; \
            (_, (bit<16>)PROTOCOL_UDP): parse_int_md_udp; \
            default: accept; \
        } \
    } \
    state parse_int_md_port { \
        meta.flow.destination_port = hdr.int_md_shim.original; \
        transition accept; \
    } \
    state parse_int_md_bth { \
        meta.flow.destination_port = hdr.int_md_shim.original; \
        packet.extract(hdr.bth); \
        transition accept; \
    } \
    state parse_int_md_tcp { \
        meta.flow.protocol = PROTOCOL_TCP; \
        transition parse_tcp_ports; \
    } \
    state parse_int_md_udp { \
        packet.extract(hdr.inner_udp); \
        meta.flow.source_port = hdr.inner_udp.source; \
        meta.flow.destination_port = hdr.inner_udp.destination; \
        transition accept; \
    }

// Statements of the deparser: the report's headers before the packet's IP header, and, behind UDP, INT.
#define INT_MD_REPORT_EMITS \
    packet.emit(hdr.report_ipv4); \
    packet.emit(hdr.report_ipv6); \
    packet.emit(hdr.report_udp); \
    packet.emit(hdr.report_group); \
    packet.emit(hdr.report);

#define INT_MD_EMITS \
    packet.emit(hdr.udp); \
    packet.emit(hdr.int_md_shim); \
    packet.emit(hdr.int_md); \
    packet.emit(hdr.int_md_node); \
    packet.emit(hdr.int_md_interfaces); \
    packet.emit(hdr.int_md_latency); \
    packet.emit(hdr.int_md_queue); \
    packet.emit(hdr.int_md_ingress_time); \
    packet.emit(hdr.int_md_egress_time); \
    packet.emit(hdr.int_md_stack); \
    packet.emit(hdr.inner_udp);

// All that a packet has of INT, for a report that is made from it (time_exceeded.p4).
#define INT_MD_REMOVE \
    hdr.int_md_shim.setInvalid(); \
    hdr.int_md.setInvalid(); \
    hdr.int_md_stack.setInvalid(); \
    hdr.inner_udp.setInvalid();

#endif
