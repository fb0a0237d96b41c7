// The header of requests to a group's services and of their answers. Layout: docs/spec/services.md.
#ifndef WEFT_SERVICES_HEADERS_P4
#define WEFT_SERVICES_HEADERS_P4

const bit<24> QP_SERVICE = 0xA66001;
// UDP 8 + BTH 12 + DETH 8 + service header 32 + iCRC 4; IPv4's total length counts its header.
const bit<16> UDP_LENGTH_SERVICE  = 64;
const bit<16> IPV4_LENGTH_SERVICE = 84;

header service_t {
    bit<4>  version;
    bit<4>  kind;
    bit<8>  operation;
    bit<16> group_id;
    bit<16> epoch;
    bit<16> cell;
    bit<32> sequence;
    bit<16> member;
    bit<16> flags;
    bit<64> operand;
    bit<64> comparand;
}

#endif
