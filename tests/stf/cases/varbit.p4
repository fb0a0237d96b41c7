// A field of variable length: extracted with a length in bits, kept, and emitted.
#include "include/case.p4"

header options_t {
    bit<8>      length;
    varbit<32>  options;
}

header tail_t {
    bit<8> v;
}

struct headers_t {
    options_t options;
    tail_t    tail;
}

struct metadata_t { }

PARSER(Parse) {
    bit<8> length;

    state start {
        length = packet.lookahead<bit<8>>();
        packet.extract(headers.options, (bit<32>)length << 3);
        packet.extract(headers.tail);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        if (standard.parser_error == error.HeaderTooShort) {
            standard.egress_spec = 3;
        } else if (standard.parser_error == error.PacketTooShort) {
            standard.egress_spec = 4;
        }
        headers.tail.v = 0xee;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
