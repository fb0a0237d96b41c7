// Carries probes between controller and neighbours, forwards IPv4 by exact addresses that grow old, and keeps a count.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;
const bit<16> PROBE = 0x88b6;

@controller_header("packet_in")
header packet_in_t { bit<9> ingress_port; bit<7> reserved; }

@controller_header("packet_out")
header packet_out_t { bit<9> egress_port; bit<7> reserved; }

header ethernet_t { bit<48> destination; bit<48> source; bit<16> ether_type; }
header ipv4_t { bit<96> before_addresses; bit<32> source; bit<32> destination; }

struct headers_t { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t {}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ProbeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(4) limits;
    counter(4, CounterType.packets) probes;

    action forward(bit<9> port, bit<48> mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.destination = mac;
    }
    action drop() { mark_to_drop(standard_metadata); }

    table addresses {
        key = { hdr.ipv4.destination: exact @name("address"); }
        actions = { forward; drop; }
        default_action = drop();
        support_timeout = true;
    }

    table classes {
        key = { hdr.ipv4.source: ternary @name("source"); }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.ethernet.ether_type == PROBE) {
            probes.count(1);
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reserved = 0;
            standard_metadata.egress_spec = CPU_PORT;
        } else if (hdr.ipv4.isValid()) {
            addresses.apply();
            classes.apply();
        } else {
            drop();
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), NoChecksum(), ProbeIngress(), NoEgress(), NoChecksum(), Deparse()) main;
