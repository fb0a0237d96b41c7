// select on several values with masks, ranges and don't-cares.
#include "include/case.p4"

header key_t {
    bit<8>  a;
    bit<16> b;
}

struct headers_t {
    key_t key;
}

struct metadata_t {
    bit<9> port;
}

PARSER(Parse) {
    state start {
        packet.extract(headers.key);
        metadata.port = 9;
        transition select(headers.key.a, headers.key.b) {
            (1, 0x1200 &&& 0xff00): one;
            (1, 5 .. 9): two;
            (2 .. 4, _): three;
            (0x80 &&& 0xf0, 7): four;
            (5, 5): accept;
        }
    }
    state one {
        metadata.port = 1;
        transition accept;
    }
    state two {
        metadata.port = 2;
        transition accept;
    }
    state three {
        metadata.port = 3;
        transition accept;
    }
    state four {
        metadata.port = 4;
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = metadata.port;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
