// declarations that nothing mentions
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }
typedef bit<8> octet_t;
const bit<8> TOP = 1;
bit<8> unused_function(in bit<8> v) { return 1; }
control Nobody(inout headers_t hdr) { apply { } }
parser Neither(packet_in p) { state start { transition accept; } }
@noWarn("unused") action silent() { }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    bit<8> variable;
    const bit<8> CONSTANT = 1;
    counter(4, CounterType.packets) packets;
    register<bit<8>>(4) cells;
    action one(bit<8> given, bit<8> ignored) { m.x = given; }
    action two() { }
    table applied { key = { hdr.h.a : exact; } actions = { one; NoAction; } }
    table forgotten { key = { hdr.h.a : exact; } actions = { NoAction; } }
    apply { applied.apply(); packets.count(0); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
