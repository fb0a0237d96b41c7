#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; }
struct headers_t { ethernet_t ethernet; }
const bit<8> LIMIT = 3;
action forward() { }
control C(inout headers_t headers, inout standard_metadata_t standard_metadata) {
    action drop_it() { mark_to_drop(standard_metdata); }
    table routes {
        key = { headers.ethernet.destination : exakt; }
        actions = { drop_ti; forwrd; }
        default_action = drop_it;
    }
    apply {
        bit<8> x = LIMT;
        route.apply();
    }
}
parser P(packet_in packet, out headers_t headers) {
    state start { packet.extract(headers.ethernet); transition select(LIMIT) { 3: parse_ipv4; default: acept; } }
    state parse_ip4 { transition accept; }
}
