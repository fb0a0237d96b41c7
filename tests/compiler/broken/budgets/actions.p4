// Each action calls the one before twice.
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
    action a0() { hdr.data.a = hdr.data.a + 1; }
    action a1() { a0(); a0(); }
    action a2() { a1(); a1(); }
    action a3() { a2(); a2(); }
    action a4() { a3(); a3(); }
    action a5() { a4(); a4(); }
    action a6() { a5(); a5(); }
    action a7() { a6(); a6(); }
    action a8() { a7(); a7(); }
    action a9() { a8(); a8(); }
    action a10() { a9(); a9(); }
    action a11() { a10(); a10(); }
    action a12() { a11(); a11(); }
    action a13() { a12(); a12(); }
    action a14() { a13(); a13(); }
    action a15() { a14(); a14(); }
    action a16() { a15(); a15(); }
    action a17() { a16(); a16(); }
    action a18() { a17(); a17(); }
    action a19() { a18(); a18(); }
    action a20() { a19(); a19(); }
    action a21() { a20(); a20(); }
    action a22() { a21(); a21(); }
    action a23() { a22(); a22(); }
    action a24() { a23(); a23(); }
    action a25() { a24(); a24(); }
    action a26() { a25(); a25(); }
    action a27() { a26(); a26(); }
    action a28() { a27(); a27(); }
    action a29() { a28(); a28(); }
    action a30() { a29(); a29(); }
    action a31() { a30(); a30(); }
    action a32() { a31(); a31(); }
    action a33() { a32(); a32(); }
    action a34() { a33(); a33(); }
    action a35() { a34(); a34(); }
    action a36() { a35(); a35(); }
    action a37() { a36(); a36(); }
    action a38() { a37(); a37(); }
    action a39() { a38(); a38(); }
    action a40() { a39(); a39(); }
    apply {
        standard_metadata.egress_spec = 2;
        a40();
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
