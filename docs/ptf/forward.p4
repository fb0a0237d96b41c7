// A small IPv4 forwarder: what docs/ptf.md tests with PTF.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<8>  version_ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> identification;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {}

parser MyParser(packet_in packet, out headers_t headers, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t headers, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets) routed;

    action drop() { mark_to_drop(standard_metadata); }

    action forward(bit<9> port, bit<48> next_hop) {
        standard_metadata.egress_spec = port;
        headers.ethernet.src = headers.ethernet.dst;
        headers.ethernet.dst = next_hop;
        headers.ipv4.ttl = headers.ipv4.ttl - 1;
    }

    table routes {
        key = { headers.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        counters = routed;
        size = 1024;
    }

    apply {
        if (headers.ipv4.isValid() && headers.ipv4.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}

control MyEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control MyComputeChecksum(inout headers_t headers, inout metadata_t meta) {
    apply {
        update_checksum(headers.ipv4.isValid(),
                        { headers.ipv4.version_ihl, headers.ipv4.tos, headers.ipv4.length,
                          headers.ipv4.identification, headers.ipv4.fragment, headers.ipv4.ttl,
                          headers.ipv4.protocol, headers.ipv4.src, headers.ipv4.dst },
                        headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
