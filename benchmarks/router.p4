// A small router that brings its routes: what a switch costs when the program is light. For bench_switch.py,
// whose hosts are 10.0.0.1 on port 1 and 10.0.0.2 on port 2.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header ipv4_t {
    bit<8> version_ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t {}

parser RouterParser(packet_in packet, out headers_t headers, inout metadata_t metadata,
                    inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
}
#define IPV4_FIELDS { headers.ipv4.version_ihl, headers.ipv4.tos, headers.ipv4.length, headers.ipv4.id, \
    headers.ipv4.fragment, headers.ipv4.ttl, headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination }
control RouterVerify(inout headers_t headers, inout metadata_t metadata) {
    apply { verify_checksum(headers.ipv4.isValid(), IPV4_FIELDS, headers.ipv4.checksum, HashAlgorithm.csum16); }
}
control RouterIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action route(bit<9> port, bit<48> destination) {
        standard.egress_spec = port;
        headers.ethernet.source = headers.ethernet.destination;
        headers.ethernet.destination = destination;
        headers.ipv4.ttl = headers.ipv4.ttl - 1;
    }
    table routes {
        key = { headers.ipv4.destination : lpm; }
        actions = { route; drop; }
        const default_action = drop();
        const entries = {
            0x0A000001 &&& 0xFFFFFFFF : route(1, 0x020000000001);
            0x0A000002 &&& 0xFFFFFFFF : route(2, 0x020000000002);
        }
    }
    apply {
        if (headers.ipv4.isValid() && headers.ipv4.ttl > 1 && standard.checksum_error == 0) {
            routes.apply();
        } else {
            drop();
        }
    }
}
control RouterEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
}
control RouterUpdate(inout headers_t headers, inout metadata_t metadata) {
    apply { update_checksum(headers.ipv4.isValid(), IPV4_FIELDS, headers.ipv4.checksum, HashAlgorithm.csum16); }
}
control RouterDeparser(packet_out packet, in headers_t headers) { apply { packet.emit(headers); } }

V1Switch(RouterParser(), RouterVerify(), RouterIngress(), RouterEgress(), RouterUpdate(), RouterDeparser()) main;
