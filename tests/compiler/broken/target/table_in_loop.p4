// Tables in loops that BMv2 would have to run: it has them within actions only.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.h.b : exact; } actions = { NoAction; } }
    apply {
        for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
            if (hdr.h.b == 1) { t.apply(); }
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.h.b : exact; } actions = { NoAction; } }
    apply {
        for (bit<16> i in 1 .. 1000) {
            t.apply();
        }
    }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
