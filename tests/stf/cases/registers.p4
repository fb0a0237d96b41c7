// Registers keep what packets write, cell by cell, and what the control plane writes.
#include "include/case.p4"

header data_t {
    bit<8> index;
    bit<16> add;
    bit<16> value;
    bit<16> before;
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
    register<bit<16>>(4) memory;

    apply {
        standard.egress_spec = 2;
        bit<16> stored;
        memory.read(stored, (bit<32>)headers.data.index);
        headers.data.before = stored;
        headers.data.value = stored + headers.data.add;
        memory.write((bit<32>)headers.data.index, headers.data.value);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
