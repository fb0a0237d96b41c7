// Generic functions and structs; the types of calls are inferred.
#include "include/case.p4"

struct pair_t<A, B> {
    A first;
    B second;
}

header data_t {
    bit<8> a;
    bit<16> b;
    bit<16> sum;
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

T choose<T>(in bool take_left, in T left, in T right) {
    if (take_left) {
        return left;
    }
    return right;
}

bit<16> total(in pair_t<bit<8>, bit<16>> pair) {
    return (bit<16>)pair.first + pair.second;
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        pair_t<bit<8>, bit<16>> pair;
        pair.first = choose(headers.data.a > 7, headers.data.a, 8w7);
        pair.second = choose<bit<16>>(headers.data.b > 300, headers.data.b, 300);
        headers.data.sum = total(pair);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
