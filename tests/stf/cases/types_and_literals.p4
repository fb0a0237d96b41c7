// typedef and type, literals of every base and width, constants of unlimited precision, casts.
#include "include/case.p4"

typedef bit<8> byte_t;
type bit<16> label_t;

const int LARGE = 1 << 70;
const bit<16> FOLDED = (bit<16>)(LARGE >> 62) + 2 * (7 % 4);
const byte_t MASK = 8w0b1111_0000;

header data_t {
    byte_t a;
    label_t label;
    bit<16> c;
    bit<8> d;
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
        standard.egress_spec = 0x2;
        label_t label = (label_t)(bit<16>)(headers.data.a & MASK);
        headers.data.label = label;
        headers.data.c = FOLDED + 0o17 + 1_000;
        bool low = headers.data.d < 5;
        headers.data.d = (bit<8>)(bit<1>)low;
        if (headers.data.label == (label_t)16w0x30) {
            standard.egress_spec = 9w3;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
