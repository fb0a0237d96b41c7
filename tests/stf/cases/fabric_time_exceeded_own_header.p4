// The fabric's own program with a header of somebody's own between Ethernet and IP.
#define OWN_HEADERS tag_t tag;
#define OWN_ETHERTYPES 0x88B7: parse_tag;
#define OWN_PARSER_STATES \
    state parse_tag { \
        packet.extract(hdr.tag); \
        transition parse_ipv4; \
    }
#define OWN_EMITS packet.emit(hdr.tag);

header tag_t {
    bit<32> number;
}

#include "../../../p4/fabric.p4"
