// Instances whose control-plane names are the same.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header small_t { bit<8> v; }
struct headers_t { data_t data; small_t[3] items; small_t extra;  }
struct metadata_t { bit<8> x; bit<16> y; bool flag;  }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.data); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {  } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<8>>(4) c;
    @name("c") register<bit<8>>(8) d;
    @name("n") counter(10, CounterType.packets) first;
    @name("n") counter(20, CounterType.packets) second;
    meter(10, MeterType.bytes) m;
    @name("other") meter(10, MeterType.bytes) another;
    apply {
        standard_metadata.egress_spec = 2;
        c.write(0, 1);
        d.write(1, 2);
        first.count(1);
        second.count(2);
        m.execute_meter(1, hdr.data.d);
        another.execute_meter(1, hdr.data.d);
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
