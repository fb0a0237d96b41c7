// The null pipeline: what the switch costs when the program does next to nothing. Sends everything to port 2.
#include <core.p4>
#include <v1model.p4>

struct headers_t {}
struct metadata_t {}

parser NullParser(packet_in packet, out headers_t headers, inout metadata_t metadata,
                  inout standard_metadata_t standard) {
    state start { transition accept; }
}
control NullChecksum(inout headers_t headers, inout metadata_t metadata) { apply {} }
control NullIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 2; }
}
control NullEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
}
control NullDeparser(packet_out packet, in headers_t headers) { apply {} }

V1Switch(NullParser(), NullChecksum(), NullIngress(), NullEgress(), NullChecksum(), NullDeparser()) main;
