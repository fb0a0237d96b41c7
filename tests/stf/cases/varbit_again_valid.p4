// A header that becomes valid again is zero, and its varbit field as long as it was: the specification leaves its
// fields unspecified, BMv2 does so.
#include "include/case.p4"

header data_t {
    bit<8> which;
    bit<8> bytes;
}

header options_t {
    bit<8>      first;
    varbit<256> rest;
    bit<8>      last;
}

struct headers_t {
    data_t    data;
    options_t options;
    options_t never;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        packet.extract(headers.options, (bit<32>) headers.data.bytes << 3);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        if (headers.data.which == 1) {
            headers.options.setInvalid();
            headers.options.setValid();
        } else if (headers.data.which == 2) {
            headers.options.setInvalid();
            headers.options.setValid();
            headers.options.first = 8w0xaa;
            headers.options.last = 8w0xbb;
        } else if (headers.data.which == 3) {
            headers.options = headers.never;
            headers.options.setValid();
        } else if (headers.data.which == 4) {
            headers.never.setValid();
        } else if (headers.data.which == 5) {
            headers.options.setValid();
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
