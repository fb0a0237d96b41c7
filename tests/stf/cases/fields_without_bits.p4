// Fields, variables, keys, action data and lookaheads of no bits: they take no place in a packet and are 0.
#include "include/case.p4"

header data_t {
    bit<8> a;
    bit<0> nothing;
    bit<8> b;
}

header empty_t {
    bit<0> nothing;
}

struct inner_t {
    bit<0> nothing;
    bit<8> value;
}

struct headers_t {
    data_t data;
    empty_t empty;
    data_t[2] stack;
}

struct metadata_t {
    bit<0> nothing;
    inner_t inner;
}

bit<0> same(in bit<0> value) {
    return value;
}

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        packet.extract(headers.empty);
        metadata.nothing = packet.lookahead<bit<0>>();
        metadata.inner = packet.lookahead<inner_t>();
        packet.extract(headers.stack.next);
        metadata.nothing = headers.stack.last.nothing;
        transition select(metadata.nothing, headers.data.a) {
            (0, 1): accept;
            default: reject;
        }
    }
}

CONTROL(Decide) {
    action change(inout bit<0> nothing, in bit<8> more) {
        nothing = 1;
        headers.data.b = headers.data.b + more;
    }
    action send(bit<0> nothing, bit<9> port) {
        metadata.nothing = nothing;
        standard.egress_spec = port;
    }
    table ports {
        key = {
            metadata.nothing: exact;
            headers.stack[0].b: ternary;
        }
        actions = { send; }
        const default_action = send(0, 3);
        const entries = {
            (0, 5): send(0, 2);
            (0, 7): send(0, 4);
        }
    }
    table added {
        key = {
            metadata.nothing: exact;
            headers.data.b: exact;
        }
        actions = { send; NoAction; }
        const default_action = NoAction;
    }
    apply {
        bit<0> local = headers.data.nothing;
        bit<8> index = headers.data.a & 1;
        metadata.nothing = same(local) + 1;
        change(headers.data.nothing, 1);
        headers.data.a = headers.data.a ++ headers.data.nothing;
        headers.stack[index - 1].nothing = local;
        headers.stack[1] = headers.data;
        headers.stack[1].nothing = headers.stack[index - 1].nothing;
        inner_t copy = metadata.inner;
        copy.nothing = copy.value == 5 ? metadata.nothing : local;
        if (copy.nothing == 0 && headers.empty.isValid()) {
            headers.stack[0].b = copy.value + (bit<8>)copy.nothing;
        }
        ports.apply();
        added.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
