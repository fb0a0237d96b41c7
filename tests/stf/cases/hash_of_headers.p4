// A header that a hash names as a whole is left out while it is invalid, by itself and in a list.
#include "include/case.p4"

header data_t {
    bit<8>  which;
    bit<8>  a;
    bit<16> crc16;
}

header more_t {
    bit<8>  b;
    bit<16> c;
}

struct headers_t {
    data_t data;
    more_t more;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition select(headers.data.which) {
            0x10 &&& 0x10: more;
            default: accept;
        }
    }
    state more {
        packet.extract(headers.more);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        bit<8> which = headers.data.which & 0xf;
        if (which == 0) {
            hash(headers.data.crc16, HashAlgorithm.crc16, 16w0, headers.more, 32w0x10000);
        } else if (which == 1) {
            hash(headers.data.crc16, HashAlgorithm.crc16, 16w0, { headers.data.a, headers.more }, 32w0x10000);
        } else {
            headers.more.setInvalid();
            hash(headers.data.crc16, HashAlgorithm.crc16, 16w0, { headers.data.a, headers.more }, 32w0x10000);
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
