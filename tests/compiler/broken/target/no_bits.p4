// Values of no bits where BMv2 needs a field.
#include <core.p4>
#include <v1model.p4>
struct headers_t { }
struct metadata_t { bit<0> nothing; bit<8> value; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<0>>(4) cells;
    apply { cells.write(0, 0); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { random(meta.nothing, 0, 0); }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
