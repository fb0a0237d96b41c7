// Multicast and mirroring; the first byte is the group, the second the session. Copies carry their replication id.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> group;
    bit<8> session;
    bit<16> instance;
}

struct headers_t {
    request_t request;
}

struct metadata_t { }

parser ParseAll(packet_in packet, out headers_t headers, inout metadata_t metadata,
                inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.request);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t metadata) {
    apply { }
}

control Decide(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        mark_to_drop(standard);
        standard.mcast_grp = (bit<16>)headers.request.group;
        if (headers.request.session != 0) {
            clone(CloneType.I2E, (bit<32>)headers.request.session);
        }
    }
}

control Leave(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        headers.request.instance = standard.egress_rid;
    }
}

control Update(inout headers_t headers, inout metadata_t metadata) {
    apply { }
}

control Deparse(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(ParseAll(), Verify(), Decide(), Leave(), Update(), Deparse()) main;
