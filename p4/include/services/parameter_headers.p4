// The header of packets between workers and a parameter store, and a block of parameters. Layout: docs/spec/services.md.
#ifndef WEFT_PARAMETER_HEADERS_P4
#define WEFT_PARAMETER_HEADERS_P4

const bit<24> QP_PARAMETER_STORE  = 0xA66002;
const bit<24> QP_PARAMETER_CLIENT = 0xA66003;
// UDP 8 + BTH 12 + DETH 8 + parameter header 24 + iCRC 4; with a block 128 more.
const bit<16> UDP_LENGTH_PARAMETER       = 56;
const bit<16> UDP_LENGTH_PARAMETER_BLOCK = 184;

#define FOR_EACH_WORD(do) \
    do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) \
    do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15)

header parameter_t {
    bit<4>  version;
    bit<4>  kind;
    bit<8>  flags;
    bit<16> group_id;
    bit<16> epoch;
    bit<16> client;
    bit<32> block_number;
    bit<32> sequence;
    bit<32> block_version;
    bit<32> reserved;
}

#define WORD_FIELD(n) bit<64> word##n;
header block_t {
    FOR_EACH_WORD(WORD_FIELD)
}

#endif
