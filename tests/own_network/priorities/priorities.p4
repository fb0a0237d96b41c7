// Everything goes to port 3; what comes by port 2 has the highest priority, the rest the lowest.
// A frame carries the number of the queue in which it waited.
#include <core.p4>
#include <v1model.p4>

header marked_t {
    bit<112> ethernet;
    bit<8> kind;
    bit<8> queue;
}

struct headers_t {
    marked_t marked;
}

struct metadata_t {}

parser Read(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.marked);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Forward(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 3;
        standard.priority = standard.ingress_port == 2 ? (bit<3>)7 : 0;
    }
}

control Leave(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        headers.marked.queue = (bit<8>)standard.qid;
    }
}

control Compute(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Write(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(Read(), Verify(), Forward(), Leave(), Compute(), Write()) main;
