// Routes by longest prefix alone: Weft's table ipv4_lpm, and no groups of next hops.
#include <core.p4>
#include <v1model.p4>

#include <weft/headers.p4>
#include <weft/parser.p4>

control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action set_next_hop(port_t port, mac_t source_mac, mac_t destination_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.source = source_mac;
        hdr.ethernet.destination = destination_mac;
    }

    action no_route() {
        mark_to_drop(standard_metadata);
    }

    table ipv4_lpm {
        key = { hdr.ipv4.destination: lpm @name("destination"); }
        actions = { set_next_hop; no_route; }
        default_action = no_route();
        size = 1024;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            ipv4_lpm.apply();
        } else {
            no_route();
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

V1Switch(FabricParser(), FabricVerifyChecksum(), Route(), NoEgress(), FabricComputeChecksum(), FabricDeparser()) main;
