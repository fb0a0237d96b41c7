// Sizes that neither BMv2 nor P4Info can hold.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header small_t { bit<8> v; }
struct headers_t { data_t data; small_t[3] items; small_t extra;  }
struct metadata_t { bit<8> x; bit<16> y; bool flag;  }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<32>>(99999999999) set;
    state start { packet.extract(hdr.data); transition select(hdr.data.d) { set: accept; default: accept; } }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {  } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(32w4000000000) huge_register;
    register<bit<32>>(99999999999999999999999) overflowing_register;
    counter(32w4000000000, CounterType.packets) huge_counter;
    meter(32w4000000000, MeterType.packets) huge_meter;
    table huge_table { key = { hdr.data.d: exact; } actions = { NoAction; } size = 99999999999999999999; }
    table late { key = { hdr.data.d: ternary; } actions = { NoAction; }
        entries = { priority = 99999999999999: 1: NoAction(); } }
    apply {
        standard_metadata.egress_spec = 2;
        huge_register.read(hdr.data.d, 5); overflowing_register.read(hdr.data.d, 5); huge_counter.count(5);
        huge_meter.execute_meter(5, hdr.data.d); huge_table.apply(); late.apply();
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
