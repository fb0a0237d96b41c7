// #warning, annotations and properties without effect, lists without fields
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }
#warning this is old

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    direct_meter<bit<8>>(MeterType.packets) colours;
    table t {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        meters = colours;
        sizes = 10;
    }
    apply { t.apply(); clone_preserving_field_list(CloneType.I2E, 1, 7); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
