// Where packets of SRv6 differ for the parser: an IPv6 header to the block, with an IPv6 header behind it.
#ifndef WEFT_SRV6_PARSER_P4
#define WEFT_SRV6_PARSER_P4

// Locator block of all uSIDs, fcbb:bb00::/32.
const bit<32> SRV6_BLOCK = 0xFCBBBB00;
const bit<8> PROTOCOL_IPV6 = 41;

// Behind Ethernet alone: no shim goes around an outer header.
#define SRV6_PARSER_STATES \
    state parse_first_ipv6 { \
        transition select(packet.lookahead<bit<224>>()[175:168], packet.lookahead<bit<224>>()[31:0]) { \
            (PROTOCOL_IPV6, SRV6_BLOCK): parse_outer_ipv6; \
            default: parse_ipv6; \
        } \
    } \
    state parse_outer_ipv6 { \
        packet.extract(hdr.outer_ipv6); \
        verify(hdr.outer_ipv6.version == 6, error.ParserInvalidArgument); \
        transition parse_ipv6; \
    }

#endif
