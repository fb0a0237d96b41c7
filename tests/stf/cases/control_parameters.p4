// Sub-controls with in, out and inout parameters, constructor parameters, instances of their own, and nesting.
#include "include/case.p4"

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
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

control Add(in bit<8> x, inout bit<8> total, out bit<8> before)(bit<8> amount) {
    apply {
        before = total;
        total = total + x + amount;
    }
}

control Twice(in bit<8> x, inout bit<8> total)(bit<8> amount) {
    Add(amount) first;
    Add(1) second;
    bit<8> ignored = 0;

    apply {
        first.apply(x, total, ignored);
        second.apply(ignored, total, ignored);
    }
}

CONTROL(Decide) {
    Twice(0x10) twice;
    Add(0) plain;

    apply {
        standard.egress_spec = 2;
        twice.apply(headers.data.a, headers.data.b);
        plain.apply(1, headers.data.b, headers.data.c);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
