// log_msg() of values of several widths and signs.
#include <core.p4>
#include <v1model.p4>

header values_t {
    bit<8>   small;
    int<8>   negative;
    bit<64>  word;
    bit<200> wide;
    int<72>  wide_negative;
}

struct headers_t {
    values_t values;
}

struct metadata_t {
}

parser MessagesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.values);
        transition accept;
    }
}

control MessagesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MessagesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        log_msg("no values");
        log_msg("{} {}", { hdr.values.small, hdr.values.negative });
        log_msg("a {}, b {}, c {}.", { hdr.values.word, hdr.values.wide, hdr.values.wide_negative });
        assert(hdr.values.small != 7);
        standard_metadata.egress_spec = 1;
    }
}

control MessagesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control MessagesCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MessagesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.values);
    }
}

V1Switch(MessagesParser(), MessagesVerify(), MessagesIngress(), MessagesEgress(), MessagesCompute(), MessagesDeparser()) main;
