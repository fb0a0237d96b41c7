// Strings within strings, whose backslashes double.
#include <core.p4>
#include <v1model.p4>
#define TEXT(x) #x
#define M0 "a"
#define Q(x) TEXT(x)
#define M1 Q(M0)
#define M2 Q(M1)
#define M3 Q(M2)
#define M4 Q(M3)
#define M5 Q(M4)
#define M6 Q(M5)
#define M7 Q(M6)
#define M8 Q(M7)
#define M9 Q(M8)
#define M10 Q(M9)
#define M11 Q(M10)
#define M12 Q(M11)
#define M13 Q(M12)
#define M14 Q(M13)
#define M15 Q(M14)
#define M16 Q(M15)
#define M17 Q(M16)
#define M18 Q(M17)
#define M19 Q(M18)
#define M20 Q(M19)
#define M21 Q(M20)
#define M22 Q(M21)
#define M23 Q(M22)
#define M24 Q(M23)
#define M25 Q(M24)
#define M26 Q(M25)
#define M27 Q(M26)
#define M28 Q(M27)
#define M29 Q(M28)
#define M30 Q(M29)
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
        log_msg(M30);
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
