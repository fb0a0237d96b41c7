// Each control has two of the one before.
#include <core.p4>
#include <v1model.p4>
control C0(inout bit<8> x) { apply { x = x + 1; } }
control C1(inout bit<8> x) { C0() a; C0() b; apply { a.apply(x); b.apply(x); } }
control C2(inout bit<8> x) { C1() a; C1() b; apply { a.apply(x); b.apply(x); } }
control C3(inout bit<8> x) { C2() a; C2() b; apply { a.apply(x); b.apply(x); } }
control C4(inout bit<8> x) { C3() a; C3() b; apply { a.apply(x); b.apply(x); } }
control C5(inout bit<8> x) { C4() a; C4() b; apply { a.apply(x); b.apply(x); } }
control C6(inout bit<8> x) { C5() a; C5() b; apply { a.apply(x); b.apply(x); } }
control C7(inout bit<8> x) { C6() a; C6() b; apply { a.apply(x); b.apply(x); } }
control C8(inout bit<8> x) { C7() a; C7() b; apply { a.apply(x); b.apply(x); } }
control C9(inout bit<8> x) { C8() a; C8() b; apply { a.apply(x); b.apply(x); } }
control C10(inout bit<8> x) { C9() a; C9() b; apply { a.apply(x); b.apply(x); } }
control C11(inout bit<8> x) { C10() a; C10() b; apply { a.apply(x); b.apply(x); } }
control C12(inout bit<8> x) { C11() a; C11() b; apply { a.apply(x); b.apply(x); } }
control C13(inout bit<8> x) { C12() a; C12() b; apply { a.apply(x); b.apply(x); } }
control C14(inout bit<8> x) { C13() a; C13() b; apply { a.apply(x); b.apply(x); } }
control C15(inout bit<8> x) { C14() a; C14() b; apply { a.apply(x); b.apply(x); } }
control C16(inout bit<8> x) { C15() a; C15() b; apply { a.apply(x); b.apply(x); } }
control C17(inout bit<8> x) { C16() a; C16() b; apply { a.apply(x); b.apply(x); } }
control C18(inout bit<8> x) { C17() a; C17() b; apply { a.apply(x); b.apply(x); } }
control C19(inout bit<8> x) { C18() a; C18() b; apply { a.apply(x); b.apply(x); } }
control C20(inout bit<8> x) { C19() a; C19() b; apply { a.apply(x); b.apply(x); } }
control C21(inout bit<8> x) { C20() a; C20() b; apply { a.apply(x); b.apply(x); } }
control C22(inout bit<8> x) { C21() a; C21() b; apply { a.apply(x); b.apply(x); } }
control C23(inout bit<8> x) { C22() a; C22() b; apply { a.apply(x); b.apply(x); } }
control C24(inout bit<8> x) { C23() a; C23() b; apply { a.apply(x); b.apply(x); } }
control C25(inout bit<8> x) { C24() a; C24() b; apply { a.apply(x); b.apply(x); } }
control C26(inout bit<8> x) { C25() a; C25() b; apply { a.apply(x); b.apply(x); } }
control C27(inout bit<8> x) { C26() a; C26() b; apply { a.apply(x); b.apply(x); } }
control C28(inout bit<8> x) { C27() a; C27() b; apply { a.apply(x); b.apply(x); } }
control C29(inout bit<8> x) { C28() a; C28() b; apply { a.apply(x); b.apply(x); } }
control C30(inout bit<8> x) { C29() a; C29() b; apply { a.apply(x); b.apply(x); } }
control C31(inout bit<8> x) { C30() a; C30() b; apply { a.apply(x); b.apply(x); } }
control C32(inout bit<8> x) { C31() a; C31() b; apply { a.apply(x); b.apply(x); } }
control C33(inout bit<8> x) { C32() a; C32() b; apply { a.apply(x); b.apply(x); } }
control C34(inout bit<8> x) { C33() a; C33() b; apply { a.apply(x); b.apply(x); } }
control C35(inout bit<8> x) { C34() a; C34() b; apply { a.apply(x); b.apply(x); } }
control C36(inout bit<8> x) { C35() a; C35() b; apply { a.apply(x); b.apply(x); } }
control C37(inout bit<8> x) { C36() a; C36() b; apply { a.apply(x); b.apply(x); } }
control C38(inout bit<8> x) { C37() a; C37() b; apply { a.apply(x); b.apply(x); } }
control C39(inout bit<8> x) { C38() a; C38() b; apply { a.apply(x); b.apply(x); } }
control C40(inout bit<8> x) { C39() a; C39() b; apply { a.apply(x); b.apply(x); } }
header data_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header small_t { bit<8> v; }
struct headers_t { data_t data; small_t[3] items; small_t extra;  }
struct metadata_t { bit<8> x; bit<16> y; bool flag;  }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.data); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {  } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    C40() c;
    apply {
        standard_metadata.egress_spec = 2;
        c.apply(hdr.data.a);
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
