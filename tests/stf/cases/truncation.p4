// truncate cuts a packet to so many bytes, payload first; a shorter packet stays as it is.
#include "include/case.p4"

header data_t {
    bit<8> length;
    bit<8> b;
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

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        headers.data.b = 0xbb;
        if (headers.data.length != 0) {
            truncate((bit<32>)headers.data.length);
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
