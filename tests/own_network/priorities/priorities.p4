// Everything goes to port 3; what comes by port 2 has the highest priority, the rest the lowest.
#include <core.p4>
#include <v1model.p4>

struct headers_t {}
struct metadata_t {}

parser Read(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
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
    apply {}
}

control Compute(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Write(packet_out packet, in headers_t headers) {
    apply {}
}

V1Switch(Read(), Verify(), Forward(), Leave(), Compute(), Write()) main;
