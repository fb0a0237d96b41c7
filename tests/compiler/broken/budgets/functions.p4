// Each function calls the one before twice.
#include <core.p4>
#include <v1model.p4>
bit<8> f0(in bit<8> x) { return x + 1; }
bit<8> f1(in bit<8> x) { return f0(x) + f0(x); }
bit<8> f2(in bit<8> x) { return f1(x) + f1(x); }
bit<8> f3(in bit<8> x) { return f2(x) + f2(x); }
bit<8> f4(in bit<8> x) { return f3(x) + f3(x); }
bit<8> f5(in bit<8> x) { return f4(x) + f4(x); }
bit<8> f6(in bit<8> x) { return f5(x) + f5(x); }
bit<8> f7(in bit<8> x) { return f6(x) + f6(x); }
bit<8> f8(in bit<8> x) { return f7(x) + f7(x); }
bit<8> f9(in bit<8> x) { return f8(x) + f8(x); }
bit<8> f10(in bit<8> x) { return f9(x) + f9(x); }
bit<8> f11(in bit<8> x) { return f10(x) + f10(x); }
bit<8> f12(in bit<8> x) { return f11(x) + f11(x); }
bit<8> f13(in bit<8> x) { return f12(x) + f12(x); }
bit<8> f14(in bit<8> x) { return f13(x) + f13(x); }
bit<8> f15(in bit<8> x) { return f14(x) + f14(x); }
bit<8> f16(in bit<8> x) { return f15(x) + f15(x); }
bit<8> f17(in bit<8> x) { return f16(x) + f16(x); }
bit<8> f18(in bit<8> x) { return f17(x) + f17(x); }
bit<8> f19(in bit<8> x) { return f18(x) + f18(x); }
bit<8> f20(in bit<8> x) { return f19(x) + f19(x); }
bit<8> f21(in bit<8> x) { return f20(x) + f20(x); }
bit<8> f22(in bit<8> x) { return f21(x) + f21(x); }
bit<8> f23(in bit<8> x) { return f22(x) + f22(x); }
bit<8> f24(in bit<8> x) { return f23(x) + f23(x); }
bit<8> f25(in bit<8> x) { return f24(x) + f24(x); }
bit<8> f26(in bit<8> x) { return f25(x) + f25(x); }
bit<8> f27(in bit<8> x) { return f26(x) + f26(x); }
bit<8> f28(in bit<8> x) { return f27(x) + f27(x); }
bit<8> f29(in bit<8> x) { return f28(x) + f28(x); }
bit<8> f30(in bit<8> x) { return f29(x) + f29(x); }
bit<8> f31(in bit<8> x) { return f30(x) + f30(x); }
bit<8> f32(in bit<8> x) { return f31(x) + f31(x); }
bit<8> f33(in bit<8> x) { return f32(x) + f32(x); }
bit<8> f34(in bit<8> x) { return f33(x) + f33(x); }
bit<8> f35(in bit<8> x) { return f34(x) + f34(x); }
bit<8> f36(in bit<8> x) { return f35(x) + f35(x); }
bit<8> f37(in bit<8> x) { return f36(x) + f36(x); }
bit<8> f38(in bit<8> x) { return f37(x) + f37(x); }
bit<8> f39(in bit<8> x) { return f38(x) + f38(x); }
bit<8> f40(in bit<8> x) { return f39(x) + f39(x); }
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
        hdr.data.a = f40(hdr.data.a);
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
