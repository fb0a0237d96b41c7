// assert and assume that hold, and log_msg with and without values, change nothing.
#include "include/case.p4"

header data_t {
    bit<8> a;
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
        assert(headers.data.isValid());
        assume(headers.data.a <= 255);
        log_msg("a packet came");
        log_msg("a = {}, b = {}", { headers.data.a, headers.data.b });
        headers.data.b = headers.data.a;
        assert(headers.data.b == headers.data.a);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
