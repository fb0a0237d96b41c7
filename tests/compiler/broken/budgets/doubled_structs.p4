// Each struct has two of the one before.
#include <core.p4>
#include <v1model.p4>
struct s0 { bit<8> a; bit<8> b; }
struct s1 { s0 a; s0 b; }
struct s2 { s1 a; s1 b; }
struct s3 { s2 a; s2 b; }
struct s4 { s3 a; s3 b; }
struct s5 { s4 a; s4 b; }
struct s6 { s5 a; s5 b; }
struct s7 { s6 a; s6 b; }
struct s8 { s7 a; s7 b; }
struct s9 { s8 a; s8 b; }
struct s10 { s9 a; s9 b; }
struct s11 { s10 a; s10 b; }
struct s12 { s11 a; s11 b; }
struct s13 { s12 a; s12 b; }
struct s14 { s13 a; s13 b; }
struct s15 { s14 a; s14 b; }
struct s16 { s15 a; s15 b; }
struct s17 { s16 a; s16 b; }
struct s18 { s17 a; s17 b; }
struct s19 { s18 a; s18 b; }
struct s20 { s19 a; s19 b; }
struct s21 { s20 a; s20 b; }
struct s22 { s21 a; s21 b; }
struct s23 { s22 a; s22 b; }
struct s24 { s23 a; s23 b; }
struct s25 { s24 a; s24 b; }
struct s26 { s25 a; s25 b; }
struct s27 { s26 a; s26 b; }
struct s28 { s27 a; s27 b; }
struct s29 { s28 a; s28 b; }
struct s30 { s29 a; s29 b; }
struct s31 { s30 a; s30 b; }
struct s32 { s31 a; s31 b; }
struct s33 { s32 a; s32 b; }
struct s34 { s33 a; s33 b; }
struct s35 { s34 a; s34 b; }
struct s36 { s35 a; s35 b; }
struct s37 { s36 a; s36 b; }
struct s38 { s37 a; s37 b; }
struct s39 { s38 a; s38 b; }
struct s40 { s39 a; s39 b; }
header data_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header small_t { bit<8> v; }
struct headers_t { data_t data; small_t[3] items; small_t extra;  }
struct metadata_t { bit<8> x; bit<16> y; bool flag; s40 many; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.data); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {  } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    apply {
        standard_metadata.egress_spec = 2;

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
