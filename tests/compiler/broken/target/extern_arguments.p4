// What BMv2's primitives do not take.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers_t { h_t h; h_t[3] stack; }
struct metadata_t { bit<8> x; HashAlgorithm algorithm; }
extern bit<8> theirs(in bit<8> v);
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(4) cells;
    state start { cells.read(meta.x, 0); packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) {
    register<bit<8>>(4) cells;
    apply { cells.write(0, hdr.h.a); }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action first() { hash(hdr.h.a, meta.algorithm, 8w0, { hdr.h.c }, 8w255); }
    action second() { hdr.stack.push_front((int)hdr.h.a); }
    action third() { clone(hdr.h.a == 1 ? CloneType.I2E : CloneType.E2E, 5); }
    action fourth() { hash(hdr.h.a, HashAlgorithm.crc16, 8w0, { hdr.h.c + 1 }, 8w255); }
    table t { key = { hdr.h.a: exact; } actions = { first; second; third; fourth; } }
    apply { t.apply(); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { meta.x = theirs(hdr.h.a); }
}
control C(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
control D(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
