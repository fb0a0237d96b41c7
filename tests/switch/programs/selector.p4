// An action selector for each of two hashes: the members send the packet to their port.
#include <core.p4>
#include <v1model.p4>

header flow_t {
    bit<8>  how;
    bit<8>  a;
    bit<16> b;
    bit<32> c;
}

struct headers_t {
    flow_t flow;
}

struct metadata_t { }

parser SelectorParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.flow);
        transition accept;
    }
}

control SelectorVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SelectorIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action send(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action_selector(HashAlgorithm.crc16, 128, 16) by_crc16;
    action_selector(HashAlgorithm.crc32, 128, 32) by_crc32;

    table short_hash {
        key = {
            hdr.flow.how: exact;
            hdr.flow.a: selector;
            hdr.flow.b: selector;
            hdr.flow.c: selector;
        }
        actions = { send; }
        implementation = by_crc16;
    }

    table long_hash {
        key = {
            hdr.flow.how: exact;
            hdr.flow.c: selector;
            hdr.flow.a: selector;
        }
        actions = { send; }
        implementation = by_crc32;
    }

    apply {
        if (hdr.flow.how < 128) {
            short_hash.apply();
        } else {
            long_hash.apply();
        }
    }
}

control SelectorEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control SelectorCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SelectorDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.flow);
    }
}

V1Switch(SelectorParser(), SelectorVerify(), SelectorIngress(), SelectorEgress(), SelectorCompute(), SelectorDeparser()) main;
