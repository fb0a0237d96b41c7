#include <core.p4>
#include <v1model.p4>
header h { bit<8> a; bit<8> b; }
struct headers_t { h x; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.x); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> v) { hdr.x.b = v; }
    table one {
        key = { hdr.x.a: exact; hdr.x.b: lpm; }
        actions = { set; }
        const entries = {
            (1 &&& 3, 1): set(1);
            (_, 1): set(2);
            (1, 0x81 &&& 0x81): set(3);
            (2, 1 .. 3): set(4);
            (3, 0x80 &&& 0xc0): set(5);
            (3, 0xbf &&& 0xc0): set(6);
        }
    }
    table two {
        key = { hdr.x.a: range; hdr.x.b: ternary; }
        actions = { set; }
        entries = {
            priority = 3: (1 &&& 3, _): set(1);
            priority = 3: (1, 1 .. 2): set(2);
            priority = 3: (0 .. 255, 1): set(3);
            priority = 4: (0 .. 255, 1): set(4);
            priority = 4: (_, 1 &&& 0xff): set(5);
        }
    }
    apply { one.apply(); two.apply(); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control U(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.x); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
