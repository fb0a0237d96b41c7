// @name gives tables, actions and keys the names that the control plane uses.
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
    @name("put_in_b") action set(@name("what") bit<8> value) {
        headers.data.b = value;
    }
    @hidden action nothing() { }
    @name(".top_level") table t {
        key = { headers.data.a: exact @name("first"); }
        actions = { set; nothing; }
        default_action = nothing();
    }

    apply {
        standard.egress_spec = 2;
        t.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
