// Headers of everything that crosses a Weft fabric. Layouts: docs/spec/frames.md.
#ifndef WEFT_HEADERS_P4
#define WEFT_HEADERS_P4

#include "lanes.p4"
#ifdef SERVICE_SYNCHRONISATION
#include "services/headers.p4"
#endif
#ifdef SERVICE_PARAMETER_CACHE
#include "services/parameter_headers.p4"
#endif

typedef bit<9>   port_t;
typedef bit<48>  mac_t;
typedef bit<32>  ipv4_address_t;
typedef bit<128> ipv6_address_t;

const port_t CPU_PORT = 510;

const bit<16> ETHERTYPE_IPV4     = 0x0800;
const bit<16> ETHERTYPE_ARP      = 0x0806;
const bit<16> ETHERTYPE_IPV6     = 0x86DD;
const bit<16> ETHERTYPE_INT_SHIM = 0x88B5;
const bit<16> ETHERTYPE_VALIANT  = 0x88B6;

const bit<8> PROTOCOL_ICMP   = 1;
const bit<8> PROTOCOL_TCP    = 6;
const bit<8> PROTOCOL_UDP    = 17;
const bit<8> PROTOCOL_ICMPV6 = 58;

const bit<16> UDP_PORT_ROCE = 4791;

// BTH opcodes (InfiniBand Architecture Specification, volume 1, table 38).
const bit<8> OPCODE_UD_SEND_ONLY = 0x64;
const bit<8> OPCODE_CNP          = 0x81;

// Queue pairs of in-network aggregation.
const bit<24> QP_AGGREGATION = 0xA66000;
const bit<24> QP_MULTICAST   = 0xFFFFFF;
// UDP 8 + BTH 12 + DETH 8 + aggregation header 20 + iCRC 4, and with lanes 4 bytes each.
const bit<16> UDP_LENGTH_HEADER_ONLY = 52;
const bit<16> UDP_LENGTH_LANES       = 52 + 4 * AGGREGATION_LANES;

// IPv4's total length counts its own header.
const bit<16> IPV4_BYTES = 20;

// The final mix of MurmurHash3 (A. Appleby): its multiplications are not linear.
#define MIX_HASH(hash) \
    hash = (hash ^ (hash >> 16)) * 0x85EBCA6B; \
    hash = (hash ^ (hash >> 13)) * 0xC2B2AE35; \
    hash = hash ^ (hash >> 16);

const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_ECT0    = 2;
const bit<2> ECN_CE      = 3;

// Of simple_switch's, in `instance_type`.
#ifdef INT_MD
const bit<32> INSTANCE_NORMAL = 0;
#define CLONES_IN_EGRESS
#endif
#ifdef BOLT
#define CLONES_IN_EGRESS
#endif
#ifdef CLONES_IN_EGRESS
const bit<32> INSTANCE_EGRESS_CLONE = 2;
#endif

// The class of what keeps the network going, above all data: acknowledgements, reports, neighbours' addresses.
const bit<3> CLASS_CONTROL = 6;
const bit<6> DSCP_CONTROL  = 48;

// The first bytes of a packet that the controller sends: leave by this port, untouched.
@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> reserved;
}

// The first bytes of a packet that goes to the controller.
@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    bit<7> reserved;
}

header ethernet_t {
    mac_t   destination;
    mac_t   source;
    bit<16> ether_type;
}

// Where a packet goes before its destination, in a shim between Ethernet and all else (valiant.p4).
header valiant_shim_t {
    bit<4>  version;
    bit<12> reserved;
    bit<16> intermediate;
    bit<16> next_ethertype;
}

// HPCC's INT, in a shim between Ethernet and IP, outside what the iCRC covers.
header int_shim_t {
    bit<4>  version;
    bit<1>  echo;
    bit<1>  overflow;
    bit<2>  reserved;
    bit<8>  hop_slots;
    bit<16> next_ethertype;
    bit<4>  hop_count;
    bit<12> path_id;
}

header int_hop_t {
    bit<4>  rate_code;
    bit<24> timestamp_ns;
    bit<20> tx_units;
    bit<16> queue_cells;
}

header arp_t {
    bit<16>        hardware_type;
    bit<16>        protocol_type;
    bit<8>         hardware_length;
    bit<8>         protocol_length;
    bit<16>        operation;
    mac_t          sender_mac;
    ipv4_address_t sender_ipv4;
    mac_t          target_mac;
    ipv4_address_t target_ipv4;
}

header ipv4_t {
    bit<4>         version;
    bit<4>         ihl;
    bit<6>         dscp;
    bit<2>         ecn;
    bit<16>        total_length;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        fragment_offset;
    bit<8>         ttl;
    bit<8>         protocol;
    bit<16>        checksum;
    ipv4_address_t source;
    ipv4_address_t destination;
}

header ipv6_t {
    bit<4>         version;
    bit<6>         dscp;
    bit<2>         ecn;
    bit<20>        flow_label;
    bit<16>        payload_length;
    bit<8>         next_header;
    bit<8>         hop_limit;
    ipv6_address_t source;
    ipv6_address_t destination;
}

header icmp_t {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
}

// What follows the ICMPv6 header of a neighbour solicitation or advertisement with one link-layer option
// (RFC 4861, sections 4.3, 4.4 and 4.6.1).
header neighbour_t {
    bit<1>         router;
    bit<1>         solicited;
    bit<1>         override;
    bit<29>        reserved;
    ipv6_address_t target;
    bit<8>         option_type;
    bit<8>         option_length;
    mac_t          option_mac;
}

header tcp_ports_t {
    bit<16> source;
    bit<16> destination;
}

// The second 4 of the 8 bytes behind an IP header, of ICMP without a neighbour's message, and of TCP.
header transport_rest_t {
    bit<32> data;
}

// The 8 bytes behind an IP header, in an ICMP error's quotation.
header quoted_start_t {
    bit<64> data;
}

header udp_t {
    bit<16> source;
    bit<16> destination;
    bit<16> length;
    bit<16> checksum;
}

header bth_t {
    bit<8>  opcode;
    bit<1>  solicited_event;
    bit<1>  migration;
    bit<2>  pad_count;
    bit<4>  version;
    bit<16> partition_key;
    bit<1>  fecn;
    bit<1>  becn;
    bit<6>  reserved1;
    bit<24> destination_qp;
    bit<1>  ack_request;
    bit<7>  reserved2;
    bit<24> psn;
}

header reth_t {
    bit<64> virtual_address;
    bit<32> remote_key;
    bit<32> dma_length;
}

header aeth_t {
    bit<8>  syndrome;
    bit<24> msn;
}

header deth_t {
    bit<32> queue_key;
    bit<8>  reserved;
    bit<24> source_qp;
}

header immediate_t {
    bit<32> data;
}

header aggregation_t {
    bit<4>  version;
    bit<4>  kind;
    bit<8>  operation;
    bit<16> job_id;
    bit<16> epoch;
    bit<16> slot;
    bit<32> round;
    bit<16> rank;
    bit<16> lane_count;  // 0: no lanes follow
    bit<8>  data_type;
    bit<8>  flags;
    bit<16> destination; // worker that gets the lanes of the result
}

#define LANE_FIELD(n) bit<32> lane##n;
header lanes_t {
    FOR_EACH_LANE(LANE_FIELD)
}

// The iCRC as it stands on the wire: the CRC's bytes in little-endian order.
header icrc_t {
    bit<32> value;
}

#ifdef INT_MD
#include "int_md/headers.p4"
#endif
#ifdef BOLT
#include "bolt/headers.p4"
#endif

// What a program of your own adds (docs/own-program.md); defined before this file is included.
#ifndef OWN_HEADERS
#define OWN_HEADERS          // fields of headers_t
#endif
#ifndef OWN_METADATA
#define OWN_METADATA         // fields of metadata_t
#endif
#ifndef OWN_ETHERTYPES
#define OWN_ETHERTYPES       // cases of the choice by EtherType: 0x1234: parse_mine;
#endif
#ifndef OWN_UDP_PORTS
#define OWN_UDP_PORTS        // cases of the choice by UDP destination port: 4789: parse_mine;
#endif
#ifndef OWN_PARSER_STATES
#define OWN_PARSER_STATES
#endif
#ifndef OWN_EMITS
#define OWN_EMITS            // statements of the deparser, between Ethernet and IP
#endif
#ifndef OWN_UDP_EMITS
#define OWN_UDP_EMITS        // statements of the deparser, behind UDP
#endif

struct headers_t {
    packet_out_t  packet_out;
    packet_in_t   packet_in;
    ethernet_t    ethernet;
    valiant_shim_t valiant_shim;
    int_shim_t    int_shim;
    int_hop_t[5]  int_hops;
    arp_t         arp;
    ipv4_t        ipv4;
#ifdef SRV6
    ipv6_t        outer_ipv6;
#endif
    ipv6_t        ipv6;
    icmp_t        icmp;
    neighbour_t   neighbour;
    tcp_ports_t   tcp_ports;
    transport_rest_t transport_rest;
    ipv4_t        quoted_ipv4;
    ipv6_t        quoted_ipv6;
    quoted_start_t quoted_start;
    udp_t         udp;
    bth_t         bth;
    reth_t        reth;
    aeth_t        aeth;
    deth_t        deth;
    immediate_t   immediate;
    aggregation_t aggregation;
    lanes_t       lanes;
#ifdef SERVICE_SYNCHRONISATION
    service_t     service;
#endif
#ifdef SERVICE_PARAMETER_CACHE
    parameter_t   parameter;
    block_t       block;
#endif
    icrc_t        icrc;
#ifdef BOLT
    notification_t notification;
#endif
#ifdef INT_MD
    INT_MD_HEADERS
#endif
    OWN_HEADERS
}

// Who this switch is; the controller sets it once.
struct identity_t {
    bit<12>        switch_id;
    bit<32>        hash_seed;
    mac_t          mac;
    ipv4_address_t ipv4;
    ipv6_address_t ipv6;
    bit<1>         balances_load;         // ECMP groups have modes (load_balancing.p4)
    bit<1>         reports_queue_depths;  // egress leaves the depths of its queues to ingress (queue_depths.p4)
    bit<1>         reports_port_depths;   // and their sums by port
    bit<1>         has_intermediates;     // packets may go to an intermediate first (valiant.p4)
}

// What distinguishes flows: the five-tuple, IPv4 addresses widened, and IPv6's flow label (0 with IPv4).
struct flow_t {
    ipv6_address_t source;
    ipv6_address_t destination;
    bit<32>        label;
    bit<8>         protocol;
    bit<16>        source_port;
    bit<16>        destination_port;
}

// An adaptive choice that is to be made (load_balancing.p4).
struct adaptive_t {
    bit<1>  chooses;
    bit<1>  takes_turns; // for this packet alone: the flow's next one has its turn
    bit<32> drawn;      // from which two candidates follow
    bit<32> flowlet;    // where the choice is kept
    bit<19> hysteresis;
    bit<48> lifetime;   // of a depth
}

// The way by an intermediate, of a packet that takes it or may take it (valiant.p4).
struct nonminimal_t {
    bit<16> intermediate;
    port_t  port;
    mac_t   source_mac;
    mac_t   destination_mac;
    bit<16> ecmp_group;   // 0: the next hop above
    bit<1>  is_taken;     // the packet goes there now, not to its destination
    bit<1>  is_drawn;     // here, by the packet's first switch
    bit<8>  hops;         // of the way, and of the minimal one
    bit<8>  minimal_hops;
    bit<32> threshold;
    bit<48> lifetime;     // of a depth
}

// Sends a packet back by the port on which it came, to whom it came from.
action return_to_sender(inout ethernet_t ethernet, inout standard_metadata_t standard_metadata) {
    mac_t sender = ethernet.source;
    ethernet.source = ethernet.destination;
    ethernet.destination = sender;
    standard_metadata.egress_spec = standard_metadata.ingress_port;
}

struct metadata_t {
    identity_t     identity;
    flow_t         flow;
    bit<4>         ip_version;        // 4, 6, or 0: no IP header was parsed
    ipv6_address_t own_address;       // this switch's address of the packet's IP version, IPv4 widened
    bit<16>        ecmp_group;
    bit<32>        ecmp_hash;
    bit<32>        ecmp_selection;    // modulo the members of the group that are up, the one that is taken
    nonminimal_t   nonminimal;
    bit<3>         layer;             // of lanes, in which a packet goes on from here (virtual_lanes.p4)
    bit<2>         colour;            // of the meter of a job's member (aggregation.p4)
    bit<1>         rewrite_icrc;      // egress computes the iCRC anew
    bit<1>         rewrite_neighbour; // the ICMPv6 checksum of a neighbour advertisement is to be computed
#ifdef BOLT
    BOLT_METADATA
#endif
#ifdef INT_MD
    INT_MD_METADATA
#endif
    OWN_METADATA
}

#endif
