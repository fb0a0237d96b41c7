// Structs within the headers of a stack, read and written by `last` and by an index known at run time.
#include <core.p4>
#include <v1model.p4>

struct pair_t { bit<8> first; bit<8> second; }
header item_t { bit<8> tag; pair_t pair; }
struct headers_t { item_t[2] items; item_t result; }
struct metadata_t { pair_t seen; bit<8> first; bit<8> missing; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        meta.seen = hdr.items.last.pair;
        meta.first = hdr.items.last.pair.first;
        transition accept;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        bit<8> other = hdr.items[0].tag;
        hdr.result = {meta.first, hdr.items[other].pair};
        hdr.items[other].pair = meta.seen;
        hdr.items[other].pair.second = hdr.items[other].pair.second + 1;
        if (hdr.items[other].pair.first == meta.seen.first) {
            hdr.items[0].tag = 0xaa;
        }
        // Undefined by the language; zero here, as everything is that starts without a value.
        meta.missing = ((item_t) {#}).pair.first;
        hdr.items[1].tag = hdr.items[1].tag + meta.missing;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control U(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
