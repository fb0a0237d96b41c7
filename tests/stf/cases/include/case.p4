// What the cases have in common. A case defines headers_t and metadata_t, its parser and its controls.
#ifndef CASE_P4
#define CASE_P4

#include <core.p4>
#include <v1model.p4>

#define PARSER(name) parser name(packet_in packet, out headers_t headers, inout metadata_t metadata, \
                                 inout standard_metadata_t standard)
#define CONTROL(name) control name(inout headers_t headers, inout metadata_t metadata, \
                                   inout standard_metadata_t standard)
#define CHECKSUM(name) control name(inout headers_t headers, inout metadata_t metadata)

#endif
