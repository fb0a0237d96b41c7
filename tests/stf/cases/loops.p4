// Loops whose bounds come from the packet, nested and with break and continue.
#include <core.p4>
#include <v1model.p4>

header sums_t {
    bit<8>  bound;
    bit<8>  forever;         // 0xa5: the first loop has no end
    bit<8>  width;
    bit<32> sum;
    bit<16> area;
}

struct headers_t {
    sums_t sums;
}

struct metadata_t {
}

parser SumsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.sums);
        transition accept;
    }
}

control SumsVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SumsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action add_up() {
        hdr.sums.sum = 0;
        for (bit<32> i = 1; i <= (bit<32>)hdr.sums.bound || hdr.sums.forever == 0xa5; i = i + 1) {
            if (i == 7) {
                continue;
            }
            hdr.sums.sum = hdr.sums.sum + i;
        }
        hdr.sums.area = 0;
        for (bit<8> x = 0; x < hdr.sums.width; x = x + 1) {
            for (bit<8> y = 0; y < hdr.sums.width; y = y + 1) {
                if (y == 100) {
                    break;
                }
                hdr.sums.area = hdr.sums.area + 1;
            }
        }
    }

    apply {
        add_up();
        standard_metadata.egress_spec = 1;
    }
}

control SumsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control SumsCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SumsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.sums);
    }
}

V1Switch(SumsParser(), SumsVerify(), SumsIngress(), SumsEgress(), SumsCompute(), SumsDeparser()) main;
