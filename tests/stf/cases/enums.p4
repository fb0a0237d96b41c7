// Plain enums, enums with values, and errors as values.
#include "include/case.p4"

enum Colour { RED, GREEN, BLUE }

enum bit<8> Kind {
    ONE   = 1,
    SEVEN = 0x07,
    LAST  = 255
}

error { Odd }

header data_t {
    Kind   kind;
    bit<8> colour;
    bit<8> number;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    Colour colour;
    error  problem;
}

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        metadata.problem = error.NoError;
        transition select(headers.data.kind) {
            Kind.SEVEN: seven;
            default: accept;
        }
    }
    state seven {
        metadata.problem = error.Odd;
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        metadata.colour = Colour.RED;
        if (headers.data.kind == Kind.ONE) {
            metadata.colour = Colour.GREEN;
        } else if (metadata.problem == error.Odd) {
            metadata.colour = Colour.BLUE;
        }
        if (metadata.colour == Colour.GREEN) {
            headers.data.colour = 0x11;
        } else if (metadata.colour == Colour.BLUE) {
            headers.data.colour = 0x22;
        } else {
            headers.data.colour = 0x33;
        }
        headers.data.number = (bit<8>)headers.data.kind + 1;
        headers.data.kind = Kind.LAST;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
