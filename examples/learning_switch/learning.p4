// A switch that learns behind which port an IPv4 address is, and floods what it does not know.
//
// A packet from an unknown source is a digest to the controller (learning.py), which fills both tables. Fabrics
// with loops flood for ever: use one whose links make a tree.
#include <core.p4>
#include <v1model.p4>

const bit<16> FLOOD = 1;  // a multicast group of all ports, which the controller makes

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

header ipv4_t {
    bit<96> before_addresses;
    bit<32> source;
    bit<32> destination;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {}

struct learned_t {
    bit<32> address;
    bit<48> mac;
    bit<9>  port;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
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

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control LearningIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action learn() {
        digest<learned_t>(1, { hdr.ipv4.source, hdr.ethernet.source, standard_metadata.ingress_port });
    }

    table sources {
        key = {
            hdr.ipv4.source: exact @name("address");
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { NoAction; @defaultonly learn; }
        const default_action = learn();
        size = 4096;
        support_timeout = true;
    }

    action forward(bit<9> port, bit<48> mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.destination = mac;
    }

    action flood() {
        standard_metadata.mcast_grp = FLOOD;
        hdr.ethernet.destination = 0xffffffffffff;
    }

    table destinations {
        key = { hdr.ipv4.destination: exact @name("address"); }
        actions = { forward; @defaultonly flood; }
        const default_action = flood();
        size = 4096;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            sources.apply();
            destinations.apply();
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control LearningEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Parse(), NoChecksum(), LearningIngress(), LearningEgress(), NoChecksum(), Deparse()) main;
