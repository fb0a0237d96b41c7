// Checksums verified at the ingress and updated at the end, with and without payload and conditions.
#include "include/case.p4"

header data_t {
    bit<8> kind;
    bit<8> error_seen;
    bit<16> a;
    bit<16> sum;
    bit<16> whole;
}

struct headers_t {
    data_t data;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition accept;
    }
}

CHECKSUM(Check) {
    apply {
        verify_checksum(headers.data.kind == 1, { headers.data.a }, headers.data.sum, HashAlgorithm.csum16);
        verify_checksum_with_payload(headers.data.kind == 2, { headers.data.a }, headers.data.whole, HashAlgorithm.csum16);
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        headers.data.error_seen = (bit<8>)standard.checksum_error;
        headers.data.a = headers.data.a + 1;
    }
}

CHECKSUM(Update) {
    apply {
        update_checksum(headers.data.kind == 1, { headers.data.a }, headers.data.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(headers.data.kind == 2, { headers.data.a }, headers.data.whole, HashAlgorithm.csum16);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), Check(), Decide(), LeaveUnchanged(), Update(), EmitAll()) main;
