// One field of the user's metadata may say whether the packet was trimmed.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct inner_t { @weft_trimmed bit<1> second; }
struct metadata_t { @weft_trimmed bit<1> first; inner_t inner; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
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
