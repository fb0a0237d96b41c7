// A string doubled forty times.
#include <core.p4>
#include <v1model.p4>
const string S0 = "abcdefgh";
const string S1 = S0 ++ S0;
const string S2 = S1 ++ S1;
const string S3 = S2 ++ S2;
const string S4 = S3 ++ S3;
const string S5 = S4 ++ S4;
const string S6 = S5 ++ S5;
const string S7 = S6 ++ S6;
const string S8 = S7 ++ S7;
const string S9 = S8 ++ S8;
const string S10 = S9 ++ S9;
const string S11 = S10 ++ S10;
const string S12 = S11 ++ S11;
const string S13 = S12 ++ S12;
const string S14 = S13 ++ S13;
const string S15 = S14 ++ S14;
const string S16 = S15 ++ S15;
const string S17 = S16 ++ S16;
const string S18 = S17 ++ S17;
const string S19 = S18 ++ S18;
const string S20 = S19 ++ S19;
const string S21 = S20 ++ S20;
const string S22 = S21 ++ S21;
const string S23 = S22 ++ S22;
const string S24 = S23 ++ S23;
const string S25 = S24 ++ S24;
const string S26 = S25 ++ S25;
const string S27 = S26 ++ S26;
const string S28 = S27 ++ S27;
const string S29 = S28 ++ S28;
const string S30 = S29 ++ S29;
const string S31 = S30 ++ S30;
const string S32 = S31 ++ S31;
const string S33 = S32 ++ S32;
const string S34 = S33 ++ S33;
const string S35 = S34 ++ S34;
const string S36 = S35 ++ S35;
const string S37 = S36 ++ S36;
const string S38 = S37 ++ S37;
const string S39 = S38 ++ S38;
const string S40 = S39 ++ S39;
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
