// A chain of functions, each of which calls the one before.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; int<8> s; }
header v_t { bit<8> a; varbit<32> v; }
header_union u_t { h_t one; v_t two; }
struct inner_t { bit<8> x; bit<8> y; }
struct headers_t { h_t h; v_t v; h_t[2] stack; u_t u; u_t[2] unions; }
struct metadata_t { bit<8> x; inner_t inner; }
bit<8> f0(in bit<8> x) { return x; }
bit<8> f1(in bit<8> x) { return f0(x) + 1; }
bit<8> f2(in bit<8> x) { return f1(x) + 1; }
bit<8> f3(in bit<8> x) { return f2(x) + 1; }
bit<8> f4(in bit<8> x) { return f3(x) + 1; }
bit<8> f5(in bit<8> x) { return f4(x) + 1; }
bit<8> f6(in bit<8> x) { return f5(x) + 1; }
bit<8> f7(in bit<8> x) { return f6(x) + 1; }
bit<8> f8(in bit<8> x) { return f7(x) + 1; }
bit<8> f9(in bit<8> x) { return f8(x) + 1; }
bit<8> f10(in bit<8> x) { return f9(x) + 1; }
bit<8> f11(in bit<8> x) { return f10(x) + 1; }
bit<8> f12(in bit<8> x) { return f11(x) + 1; }
bit<8> f13(in bit<8> x) { return f12(x) + 1; }
bit<8> f14(in bit<8> x) { return f13(x) + 1; }
bit<8> f15(in bit<8> x) { return f14(x) + 1; }
bit<8> f16(in bit<8> x) { return f15(x) + 1; }
bit<8> f17(in bit<8> x) { return f16(x) + 1; }
bit<8> f18(in bit<8> x) { return f17(x) + 1; }
bit<8> f19(in bit<8> x) { return f18(x) + 1; }
bit<8> f20(in bit<8> x) { return f19(x) + 1; }
bit<8> f21(in bit<8> x) { return f20(x) + 1; }
bit<8> f22(in bit<8> x) { return f21(x) + 1; }
bit<8> f23(in bit<8> x) { return f22(x) + 1; }
bit<8> f24(in bit<8> x) { return f23(x) + 1; }
bit<8> f25(in bit<8> x) { return f24(x) + 1; }
bit<8> f26(in bit<8> x) { return f25(x) + 1; }
bit<8> f27(in bit<8> x) { return f26(x) + 1; }
bit<8> f28(in bit<8> x) { return f27(x) + 1; }
bit<8> f29(in bit<8> x) { return f28(x) + 1; }
bit<8> f30(in bit<8> x) { return f29(x) + 1; }
bit<8> f31(in bit<8> x) { return f30(x) + 1; }
bit<8> f32(in bit<8> x) { return f31(x) + 1; }
bit<8> f33(in bit<8> x) { return f32(x) + 1; }
bit<8> f34(in bit<8> x) { return f33(x) + 1; }
bit<8> f35(in bit<8> x) { return f34(x) + 1; }
bit<8> f36(in bit<8> x) { return f35(x) + 1; }
bit<8> f37(in bit<8> x) { return f36(x) + 1; }
bit<8> f38(in bit<8> x) { return f37(x) + 1; }
bit<8> f39(in bit<8> x) { return f38(x) + 1; }
bit<8> f40(in bit<8> x) { return f39(x) + 1; }
bit<8> f41(in bit<8> x) { return f40(x) + 1; }
bit<8> f42(in bit<8> x) { return f41(x) + 1; }
bit<8> f43(in bit<8> x) { return f42(x) + 1; }
bit<8> f44(in bit<8> x) { return f43(x) + 1; }
bit<8> f45(in bit<8> x) { return f44(x) + 1; }
bit<8> f46(in bit<8> x) { return f45(x) + 1; }
bit<8> f47(in bit<8> x) { return f46(x) + 1; }
bit<8> f48(in bit<8> x) { return f47(x) + 1; }
bit<8> f49(in bit<8> x) { return f48(x) + 1; }
bit<8> f50(in bit<8> x) { return f49(x) + 1; }
bit<8> f51(in bit<8> x) { return f50(x) + 1; }
bit<8> f52(in bit<8> x) { return f51(x) + 1; }
bit<8> f53(in bit<8> x) { return f52(x) + 1; }
bit<8> f54(in bit<8> x) { return f53(x) + 1; }
bit<8> f55(in bit<8> x) { return f54(x) + 1; }
bit<8> f56(in bit<8> x) { return f55(x) + 1; }
bit<8> f57(in bit<8> x) { return f56(x) + 1; }
bit<8> f58(in bit<8> x) { return f57(x) + 1; }
bit<8> f59(in bit<8> x) { return f58(x) + 1; }
bit<8> f60(in bit<8> x) { return f59(x) + 1; }
bit<8> f61(in bit<8> x) { return f60(x) + 1; }
bit<8> f62(in bit<8> x) { return f61(x) + 1; }
bit<8> f63(in bit<8> x) { return f62(x) + 1; }
bit<8> f64(in bit<8> x) { return f63(x) + 1; }
bit<8> f65(in bit<8> x) { return f64(x) + 1; }
bit<8> f66(in bit<8> x) { return f65(x) + 1; }
bit<8> f67(in bit<8> x) { return f66(x) + 1; }
bit<8> f68(in bit<8> x) { return f67(x) + 1; }
bit<8> f69(in bit<8> x) { return f68(x) + 1; }
bit<8> f70(in bit<8> x) { return f69(x) + 1; }
bit<8> f71(in bit<8> x) { return f70(x) + 1; }
bit<8> f72(in bit<8> x) { return f71(x) + 1; }
bit<8> f73(in bit<8> x) { return f72(x) + 1; }
bit<8> f74(in bit<8> x) { return f73(x) + 1; }
bit<8> f75(in bit<8> x) { return f74(x) + 1; }
bit<8> f76(in bit<8> x) { return f75(x) + 1; }
bit<8> f77(in bit<8> x) { return f76(x) + 1; }
bit<8> f78(in bit<8> x) { return f77(x) + 1; }
bit<8> f79(in bit<8> x) { return f78(x) + 1; }
bit<8> f80(in bit<8> x) { return f79(x) + 1; }
bit<8> f81(in bit<8> x) { return f80(x) + 1; }
bit<8> f82(in bit<8> x) { return f81(x) + 1; }
bit<8> f83(in bit<8> x) { return f82(x) + 1; }
bit<8> f84(in bit<8> x) { return f83(x) + 1; }
bit<8> f85(in bit<8> x) { return f84(x) + 1; }
bit<8> f86(in bit<8> x) { return f85(x) + 1; }
bit<8> f87(in bit<8> x) { return f86(x) + 1; }
bit<8> f88(in bit<8> x) { return f87(x) + 1; }
bit<8> f89(in bit<8> x) { return f88(x) + 1; }
bit<8> f90(in bit<8> x) { return f89(x) + 1; }
bit<8> f91(in bit<8> x) { return f90(x) + 1; }
bit<8> f92(in bit<8> x) { return f91(x) + 1; }
bit<8> f93(in bit<8> x) { return f92(x) + 1; }
bit<8> f94(in bit<8> x) { return f93(x) + 1; }
bit<8> f95(in bit<8> x) { return f94(x) + 1; }
bit<8> f96(in bit<8> x) { return f95(x) + 1; }
bit<8> f97(in bit<8> x) { return f96(x) + 1; }
bit<8> f98(in bit<8> x) { return f97(x) + 1; }
bit<8> f99(in bit<8> x) { return f98(x) + 1; }
bit<8> f100(in bit<8> x) { return f99(x) + 1; }
bit<8> f101(in bit<8> x) { return f100(x) + 1; }
bit<8> f102(in bit<8> x) { return f101(x) + 1; }
bit<8> f103(in bit<8> x) { return f102(x) + 1; }
bit<8> f104(in bit<8> x) { return f103(x) + 1; }
bit<8> f105(in bit<8> x) { return f104(x) + 1; }
bit<8> f106(in bit<8> x) { return f105(x) + 1; }
bit<8> f107(in bit<8> x) { return f106(x) + 1; }
bit<8> f108(in bit<8> x) { return f107(x) + 1; }
bit<8> f109(in bit<8> x) { return f108(x) + 1; }
bit<8> f110(in bit<8> x) { return f109(x) + 1; }
bit<8> f111(in bit<8> x) { return f110(x) + 1; }
bit<8> f112(in bit<8> x) { return f111(x) + 1; }
bit<8> f113(in bit<8> x) { return f112(x) + 1; }
bit<8> f114(in bit<8> x) { return f113(x) + 1; }
bit<8> f115(in bit<8> x) { return f114(x) + 1; }
bit<8> f116(in bit<8> x) { return f115(x) + 1; }
bit<8> f117(in bit<8> x) { return f116(x) + 1; }
bit<8> f118(in bit<8> x) { return f117(x) + 1; }
bit<8> f119(in bit<8> x) { return f118(x) + 1; }
bit<8> f120(in bit<8> x) { return f119(x) + 1; }
bit<8> f121(in bit<8> x) { return f120(x) + 1; }
bit<8> f122(in bit<8> x) { return f121(x) + 1; }
bit<8> f123(in bit<8> x) { return f122(x) + 1; }
bit<8> f124(in bit<8> x) { return f123(x) + 1; }
bit<8> f125(in bit<8> x) { return f124(x) + 1; }
bit<8> f126(in bit<8> x) { return f125(x) + 1; }
bit<8> f127(in bit<8> x) { return f126(x) + 1; }
bit<8> f128(in bit<8> x) { return f127(x) + 1; }
bit<8> f129(in bit<8> x) { return f128(x) + 1; }
bit<8> f130(in bit<8> x) { return f129(x) + 1; }
bit<8> f131(in bit<8> x) { return f130(x) + 1; }
bit<8> f132(in bit<8> x) { return f131(x) + 1; }
bit<8> f133(in bit<8> x) { return f132(x) + 1; }
bit<8> f134(in bit<8> x) { return f133(x) + 1; }
bit<8> f135(in bit<8> x) { return f134(x) + 1; }
bit<8> f136(in bit<8> x) { return f135(x) + 1; }
bit<8> f137(in bit<8> x) { return f136(x) + 1; }
bit<8> f138(in bit<8> x) { return f137(x) + 1; }
bit<8> f139(in bit<8> x) { return f138(x) + 1; }
bit<8> f140(in bit<8> x) { return f139(x) + 1; }
bit<8> f141(in bit<8> x) { return f140(x) + 1; }
bit<8> f142(in bit<8> x) { return f141(x) + 1; }
bit<8> f143(in bit<8> x) { return f142(x) + 1; }
bit<8> f144(in bit<8> x) { return f143(x) + 1; }
bit<8> f145(in bit<8> x) { return f144(x) + 1; }
bit<8> f146(in bit<8> x) { return f145(x) + 1; }
bit<8> f147(in bit<8> x) { return f146(x) + 1; }
bit<8> f148(in bit<8> x) { return f147(x) + 1; }
bit<8> f149(in bit<8> x) { return f148(x) + 1; }
bit<8> f150(in bit<8> x) { return f149(x) + 1; }
bit<8> f151(in bit<8> x) { return f150(x) + 1; }
bit<8> f152(in bit<8> x) { return f151(x) + 1; }
bit<8> f153(in bit<8> x) { return f152(x) + 1; }
bit<8> f154(in bit<8> x) { return f153(x) + 1; }
bit<8> f155(in bit<8> x) { return f154(x) + 1; }
bit<8> f156(in bit<8> x) { return f155(x) + 1; }
bit<8> f157(in bit<8> x) { return f156(x) + 1; }
bit<8> f158(in bit<8> x) { return f157(x) + 1; }
bit<8> f159(in bit<8> x) { return f158(x) + 1; }
bit<8> f160(in bit<8> x) { return f159(x) + 1; }
bit<8> f161(in bit<8> x) { return f160(x) + 1; }
bit<8> f162(in bit<8> x) { return f161(x) + 1; }
bit<8> f163(in bit<8> x) { return f162(x) + 1; }
bit<8> f164(in bit<8> x) { return f163(x) + 1; }
bit<8> f165(in bit<8> x) { return f164(x) + 1; }
bit<8> f166(in bit<8> x) { return f165(x) + 1; }
bit<8> f167(in bit<8> x) { return f166(x) + 1; }
bit<8> f168(in bit<8> x) { return f167(x) + 1; }
bit<8> f169(in bit<8> x) { return f168(x) + 1; }
bit<8> f170(in bit<8> x) { return f169(x) + 1; }
bit<8> f171(in bit<8> x) { return f170(x) + 1; }
bit<8> f172(in bit<8> x) { return f171(x) + 1; }
bit<8> f173(in bit<8> x) { return f172(x) + 1; }
bit<8> f174(in bit<8> x) { return f173(x) + 1; }
bit<8> f175(in bit<8> x) { return f174(x) + 1; }
bit<8> f176(in bit<8> x) { return f175(x) + 1; }
bit<8> f177(in bit<8> x) { return f176(x) + 1; }
bit<8> f178(in bit<8> x) { return f177(x) + 1; }
bit<8> f179(in bit<8> x) { return f178(x) + 1; }
bit<8> f180(in bit<8> x) { return f179(x) + 1; }
bit<8> f181(in bit<8> x) { return f180(x) + 1; }
bit<8> f182(in bit<8> x) { return f181(x) + 1; }
bit<8> f183(in bit<8> x) { return f182(x) + 1; }
bit<8> f184(in bit<8> x) { return f183(x) + 1; }
bit<8> f185(in bit<8> x) { return f184(x) + 1; }
bit<8> f186(in bit<8> x) { return f185(x) + 1; }
bit<8> f187(in bit<8> x) { return f186(x) + 1; }
bit<8> f188(in bit<8> x) { return f187(x) + 1; }
bit<8> f189(in bit<8> x) { return f188(x) + 1; }
bit<8> f190(in bit<8> x) { return f189(x) + 1; }
bit<8> f191(in bit<8> x) { return f190(x) + 1; }
bit<8> f192(in bit<8> x) { return f191(x) + 1; }
bit<8> f193(in bit<8> x) { return f192(x) + 1; }
bit<8> f194(in bit<8> x) { return f193(x) + 1; }
bit<8> f195(in bit<8> x) { return f194(x) + 1; }
bit<8> f196(in bit<8> x) { return f195(x) + 1; }
bit<8> f197(in bit<8> x) { return f196(x) + 1; }
bit<8> f198(in bit<8> x) { return f197(x) + 1; }
bit<8> f199(in bit<8> x) { return f198(x) + 1; }
bit<8> f200(in bit<8> x) { return f199(x) + 1; }
bit<8> f201(in bit<8> x) { return f200(x) + 1; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        meta.x = f201(hdr.h.a);
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}
control C(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
