// Nested structs, initialisers by name and by position, tuples and their comparison.
#include "include/case.p4"

struct inner_t {
    bit<8> a;
    bit<8> b;
}

struct outer_t {
    inner_t inner;
    bit<8>  c;
}

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
    bit<8> same;
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
        outer_t named = { c = headers.data.c, inner = { b = headers.data.b, a = headers.data.a } };
        outer_t listed = { { 1, 2 }, 3 };
        tuple<bit<8>, bit<8>> pair = { headers.data.a, headers.data.b };
        headers.data.same = 0;
        if (named == listed) {
            headers.data.same = headers.data.same + 1;
        }
        if (named.inner == { 1, 2 }) {
            headers.data.same = headers.data.same + 2;
        }
        if (pair == { 1, 2 }) {
            headers.data.same = headers.data.same + 4;
        }
        headers.data.a = pair[1];
        headers.data.b = pair[0];
        inner_t copy = named.inner;
        copy.a = 0xff;
        headers.data.c = named.inner.a + copy.b;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
