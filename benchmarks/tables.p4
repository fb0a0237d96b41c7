// One table of each kind of match; the packet says which it is for.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<16> kind;
    bit<64> exact_key;
    bit<32> address;
    bit<32> source;
    bit<32> destination;
    bit<16> port;
}
struct headers_t { request_t request; }
struct metadata_t {}

parser TablesParser(packet_in packet, out headers_t headers, inout metadata_t metadata,
                    inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.request);
        transition accept;
    }
}
control TablesChecksum(inout headers_t headers, inout metadata_t metadata) { apply {} }
control TablesIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    action to_port(bit<9> port, bit<48> address) {
        standard.egress_spec = port;
        headers.request.source = (bit<32>) address;
    }
    action drop() { mark_to_drop(standard); }
    table exact_table {
        key = { headers.request.exact_key : exact; }
        actions = { to_port; drop; }
        default_action = drop();
        size = 200000;
    }
    table lpm_table {
        key = { headers.request.address : lpm; }
        actions = { to_port; drop; }
        default_action = drop();
        size = 200000;
    }
    table ternary_table {
        key = {
            headers.request.source : ternary;
            headers.request.destination : ternary;
            headers.request.port : ternary;
        }
        actions = { to_port; drop; }
        default_action = drop();
        size = 20000;
    }
    apply {
        if (headers.request.kind == 0) {
            exact_table.apply();
        } else if (headers.request.kind == 1) {
            lpm_table.apply();
        } else {
            ternary_table.apply();
        }
    }
}
control TablesEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
}
control TablesDeparser(packet_out packet, in headers_t headers) { apply { packet.emit(headers.request); } }

V1Switch(TablesParser(), TablesChecksum(), TablesIngress(), TablesEgress(), TablesChecksum(), TablesDeparser()) main;
