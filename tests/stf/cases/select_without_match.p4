// A select whose cases all fail ends the parser with the error NoMatch (specification, section 13.6).
#include "include/case.p4"

header key_t {
    bit<8> a;
}

struct headers_t {
    key_t key;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.key);
        transition select(headers.key.a) {
            1 .. 4: accept;
        }
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        if (standard.parser_error == error.NoMatch) {
            standard.egress_spec = 3;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
