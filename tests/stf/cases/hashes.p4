// Every hash algorithm over the same three bytes; a base and a maximum.
#include "include/case.p4"

header data_t {
    bit<8> a;
    bit<16> b;
    bit<16> crc16;
    bit<32> crc32;
    bit<32> identity;
    bit<16> csum16;
    bit<16> xor16;
    bit<16> ranged;
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
        hash(headers.data.crc16, HashAlgorithm.crc16, 16w0, { headers.data.a, headers.data.b }, 32w0x10000);
        hash(headers.data.crc32, HashAlgorithm.crc32, 32w0, { headers.data.a, headers.data.b }, 64w0x100000000);
        hash(headers.data.identity, HashAlgorithm.identity, 32w0, { headers.data.a, headers.data.b }, 64w0x100000000);
        hash(headers.data.csum16, HashAlgorithm.csum16, 16w0, { headers.data.a, headers.data.b }, 32w0x10000);
        hash(headers.data.xor16, HashAlgorithm.xor16, 16w0, { headers.data.a, headers.data.b }, 32w0x10000);
        hash(headers.data.ranged, HashAlgorithm.crc16, 16w0x100, { headers.data.a, headers.data.b }, 32w10);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
