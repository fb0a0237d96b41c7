// Each parser runs the one before twice.
#include <core.p4>
#include <v1model.p4>
parser C0(packet_in p) { state start { transition accept; } }
parser C1(packet_in p) { C0() a; C0() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C2(packet_in p) { C1() a; C1() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C3(packet_in p) { C2() a; C2() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C4(packet_in p) { C3() a; C3() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C5(packet_in p) { C4() a; C4() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C6(packet_in p) { C5() a; C5() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C7(packet_in p) { C6() a; C6() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C8(packet_in p) { C7() a; C7() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C9(packet_in p) { C8() a; C8() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C10(packet_in p) { C9() a; C9() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C11(packet_in p) { C10() a; C10() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C12(packet_in p) { C11() a; C11() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C13(packet_in p) { C12() a; C12() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C14(packet_in p) { C13() a; C13() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C15(packet_in p) { C14() a; C14() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C16(packet_in p) { C15() a; C15() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C17(packet_in p) { C16() a; C16() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C18(packet_in p) { C17() a; C17() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C19(packet_in p) { C18() a; C18() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C20(packet_in p) { C19() a; C19() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C21(packet_in p) { C20() a; C20() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C22(packet_in p) { C21() a; C21() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C23(packet_in p) { C22() a; C22() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C24(packet_in p) { C23() a; C23() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C25(packet_in p) { C24() a; C24() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C26(packet_in p) { C25() a; C25() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C27(packet_in p) { C26() a; C26() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C28(packet_in p) { C27() a; C27() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C29(packet_in p) { C28() a; C28() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C30(packet_in p) { C29() a; C29() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C31(packet_in p) { C30() a; C30() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C32(packet_in p) { C31() a; C31() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C33(packet_in p) { C32() a; C32() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C34(packet_in p) { C33() a; C33() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C35(packet_in p) { C34() a; C34() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C36(packet_in p) { C35() a; C35() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C37(packet_in p) { C36() a; C36() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C38(packet_in p) { C37() a; C37() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C39(packet_in p) { C38() a; C38() b; state start { a.apply(p); b.apply(p); transition accept; } }
parser C40(packet_in p) { C39() a; C39() b; state start { a.apply(p); b.apply(p); transition accept; } }
header data_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header small_t { bit<8> v; }
struct headers_t { data_t data; small_t[3] items; small_t extra;  }
struct metadata_t { bit<8> x; bit<16> y; bool flag;  }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    C40() c;
    state start { c.apply(packet); transition accept; }
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
