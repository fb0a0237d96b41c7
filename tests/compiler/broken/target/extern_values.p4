// Arguments of externs that BMv2 has no operands for.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; int<8> s; }
header v_t { bit<8> a; varbit<32> v; }
header_union u_t { h_t one; v_t two; }
struct inner_t { bit<8> x; bit<8> y; }
struct headers_t { h_t h; v_t v; h_t[2] stack; u_t u; u_t[2] unions; }
struct metadata_t { bit<8> x; inner_t inner; }
void nothing() { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        verify_checksum(true, {hdr.h.a}, hdr.h.b, HashAlgorithm.csum16);
        update_checksum(true, {hdr.h.a}, hdr.h.b, HashAlgorithm.csum16);
        hash(hdr.h, HashAlgorithm.crc16, 8w0, {meta.x}, 8w255);
        random(meta.inner, meta.inner, meta.inner);
        resubmit(meta);
        log_msg("{}", {nothing()});
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
