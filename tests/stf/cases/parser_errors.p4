// Errors of the parser reach the ingress, which goes on with what was extracted: a packet that is too short, verify with an error of the program.
#include "include/case.p4"

error { TooLarge }

header first_t {
    bit<8> value;
    bit<8> problem;
}

header second_t {
    bit<32> v;
}

struct headers_t {
    first_t  first;
    second_t second;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.first);
        verify(headers.first.value < 0x80, error.TooLarge);
        transition select(headers.first.value) {
            1: second;
            2: reject;
            default: accept;
        }
    }
    state second {
        packet.extract(headers.second);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        headers.first.problem = 0;
        if (standard.parser_error == error.TooLarge) {
            headers.first.problem = 1;
        } else if (standard.parser_error == error.PacketTooShort) {
            headers.first.problem = 2;
        } else if (standard.parser_error != error.NoError) {
            headers.first.problem = 3;
        }
        if (headers.second.isValid()) {
            headers.second.v = 0;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
