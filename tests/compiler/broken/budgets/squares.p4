// A constant squared forty times.
#include <core.p4>
#include <v1model.p4>
const int N0 = 3;
const int N1 = N0 * N0;
const int N2 = N1 * N1;
const int N3 = N2 * N2;
const int N4 = N3 * N3;
const int N5 = N4 * N4;
const int N6 = N5 * N5;
const int N7 = N6 * N6;
const int N8 = N7 * N7;
const int N9 = N8 * N8;
const int N10 = N9 * N9;
const int N11 = N10 * N10;
const int N12 = N11 * N11;
const int N13 = N12 * N12;
const int N14 = N13 * N13;
const int N15 = N14 * N14;
const int N16 = N15 * N15;
const int N17 = N16 * N16;
const int N18 = N17 * N17;
const int N19 = N18 * N18;
const int N20 = N19 * N19;
const int N21 = N20 * N20;
const int N22 = N21 * N21;
const int N23 = N22 * N22;
const int N24 = N23 * N23;
const int N25 = N24 * N24;
const int N26 = N25 * N25;
const int N27 = N26 * N26;
const int N28 = N27 * N27;
const int N29 = N28 * N28;
const int N30 = N29 * N29;
const int N31 = N30 * N30;
const int N32 = N31 * N31;
const int N33 = N32 * N32;
const int N34 = N33 * N33;
const int N35 = N34 * N34;
const int N36 = N35 * N35;
const int N37 = N36 * N36;
const int N38 = N37 * N37;
const int N39 = N38 * N38;
const int N40 = N39 * N39;
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
        hdr.data.d = (bit<32>)N40;
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
