// 200 rounds to the power of eight.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header small_t { bit<8> v; }
struct headers_t { data_t data; small_t[3] items; small_t extra;  }
struct metadata_t { bit<8> x; bit<16> y; bool flag;  }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.data); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {  } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    apply {
        standard_metadata.egress_spec = 2;

        for (bit<8> i0 = 0; i0 < 200; i0 = i0 + 1) {
        for (bit<8> i1 = 0; i1 < 200; i1 = i1 + 1) {
        for (bit<8> i2 = 0; i2 < 200; i2 = i2 + 1) {
        for (bit<8> i3 = 0; i3 < 200; i3 = i3 + 1) {
        for (bit<8> i4 = 0; i4 < 200; i4 = i4 + 1) {
        for (bit<8> i5 = 0; i5 < 200; i5 = i5 + 1) {
        for (bit<8> i6 = 0; i6 < 200; i6 = i6 + 1) {
        for (bit<8> i7 = 0; i7 < 200; i7 = i7 + 1) {
        hdr.data.a = hdr.data.a + i7;
        }}}}}}}}
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {  }
}
control U(inout headers_t hdr, inout metadata_t meta) { apply {  } }
control D(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.data); packet.emit(hdr.items); packet.emit(hdr.extra);  }
}
V1Switch(P(), V(), I(), E(), U(), D()) main;
