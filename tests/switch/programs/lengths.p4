// Looks at payloads as the last byte of the destination MAC asks, and sends everything to port 2.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<40> destination_head;
    bit<8> order;
    bit<48> source;
    bit<16> type;
}
header blob_t { bit<1600> bits; }
struct headers_t { ethernet_t ethernet; blob_t blob; blob_t second_blob; }
struct metadata_t {}

const bit<8> PARSE = 1;         // into the payload
const bit<8> PARSE_TOO_FAR = 2; // beyond the packet
const bit<8> CHECKSUM = 3;      // over the payload

parser LengthsParser(packet_in packet, out headers_t headers, inout metadata_t metadata,
                     inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.order) {
            PARSE: parse_blob;
            PARSE_TOO_FAR: parse_blobs;
            default: accept;
        }
    }
    state parse_blob {
        packet.extract(headers.blob);
        transition accept;
    }
    state parse_blobs {
        packet.extract(headers.blob);
        packet.extract(headers.second_blob);
        transition accept;
    }
}
control LengthsVerify(inout headers_t headers, inout metadata_t metadata) { apply {} }
control LengthsIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 2; }
}
control LengthsEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        headers.ethernet.source = (bit<48>) standard.packet_length;
        if (standard.parser_error != error.NoError) {
            headers.ethernet.type = 0xEEEE;
        }
        if (headers.blob.isValid()) {
            headers.blob.bits = headers.blob.bits + 1;
        }
    }
}
control LengthsCompute(inout headers_t headers, inout metadata_t metadata) {
    apply {
        update_checksum_with_payload(headers.ethernet.order == CHECKSUM, { headers.ethernet.source },
                                     headers.ethernet.type, HashAlgorithm.csum16);
    }
}
control LengthsDeparser(packet_out packet, in headers_t headers) { apply { packet.emit(headers); } }

V1Switch(LengthsParser(), LengthsVerify(), LengthsIngress(), LengthsEgress(), LengthsCompute(),
         LengthsDeparser()) main;
