// Two meters, one of bytes and one of packets; their colours go into the packet.
#include <core.p4>
#include <v1model.p4>

header colours_t {
    bit<8> by_bytes;
    bit<8> by_packets;
}

struct headers_t {
    colours_t colours;
}

struct metadata_t {
}

parser MetersParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.colours);
        transition accept;
    }
}

control MetersVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MetersIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    meter(4, MeterType.bytes) bytes_meter;
    meter(4, MeterType.packets) packets_meter;

    apply {
        bytes_meter.execute_meter(32w1, hdr.colours.by_bytes);
        packets_meter.execute_meter(32w3, hdr.colours.by_packets);
        standard_metadata.egress_spec = 1;
    }
}

control MetersEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control MetersCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MetersDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.colours);
    }
}

V1Switch(MetersParser(), MetersVerify(), MetersIngress(), MetersEgress(), MetersCompute(), MetersDeparser()) main;
