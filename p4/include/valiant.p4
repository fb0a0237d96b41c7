// Routes by a random intermediate (L. Valiant 1982), and UGAL-L (A. Singh 2005), which takes one where the minimal route
// is the more crowded.
//
// An intermediate is a switch or a group of switches; the controller numbers them. The first switch, where a packet comes
// from a host, draws one that is neither its own nor the destination's, and writes it into a shim, by which the switches
// on the way to it route. The first switch that is (in) the intermediate takes the shim off, and routes by destination
// from there on. The shim lies between Ethernet and all else, so the iCRC does not cover it.
//
// UGAL-L (J. Kim et al., ISCA 2008, section 4.2) multiplies the depth of the minimal route's port by that route's hops,
// and does the same for the other one. Both ports are those of this switch alone.
#ifndef WEFT_VALIANT_P4
#define WEFT_VALIANT_P4

#include "drops.p4"
#include "headers.p4"
#include "queue_depths.p4"

enum bit<2> SourceRouting {
    NONE    = 0, // not from a host
    VALIANT = 1,
    UGAL    = 2
}

// Before it is decided whether a packet is for this switch itself, because here it may leave its intermediate.
control Valiant(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                in bool is_to_this_address, inout DropReason drop_reason) {
    SourceRouting source_routing = SourceRouting.NONE;
    bit<16> own = 0;
    bit<16> last_choice = 0;
    bit<16> of_destination = 0;
    bool has_other_intermediate = false;
    bool is_reached = false;
    bool has_way = false;

    // `last` is the number of intermediates less three: all but this switch's and the destination's, from 0.
    action route_valiant(bit<16> own_intermediate, bit<16> last) {
        source_routing = SourceRouting.VALIANT;
        own = own_intermediate;
        last_choice = last;
    }

    // Threshold and lifetime are in the target's units.
    action route_ugal(bit<16> own_intermediate, bit<16> last, bit<32> threshold, bit<48> lifetime) {
        source_routing = SourceRouting.UGAL;
        own = own_intermediate;
        last_choice = last;
        meta.nonminimal.threshold = threshold;
        meta.nonminimal.lifetime = lifetime;
    }

    // Ports where packets enter the fabric.
    table source_routing_ports {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { route_valiant; route_ugal; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    action set_destination(bit<16> intermediate, bit<8> hops) {
        of_destination = intermediate;
        meta.nonminimal.minimal_hops = hops;
        has_other_intermediate = intermediate != own;
    }

    table intermediate_by_ipv4 {
        key = { hdr.ipv4.destination: lpm @name("destination"); }
        actions = { set_destination; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    table intermediate_by_ipv6 {
        key = { hdr.ipv6.destination: lpm @name("destination"); }
        actions = { set_destination; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    // The hops are those of the whole route: to the intermediate, and on average from there.
    action go_by_next_hop(port_t port, mac_t source_mac, mac_t destination_mac, bit<8> hops) {
        meta.nonminimal.port = port;
        meta.nonminimal.source_mac = source_mac;
        meta.nonminimal.destination_mac = destination_mac;
        meta.nonminimal.hops = hops;
        has_way = true;
    }

    action go_by_ecmp_group(bit<16> group, bit<8> hops) {
        meta.nonminimal.ecmp_group = group;
        meta.nonminimal.hops = hops;
        has_way = true;
    }

    action reach(bit<3> layer) {
        meta.layer = layer;
        is_reached = true;
    }

    table intermediates {
        key = { meta.nonminimal.intermediate: exact @name("intermediate"); }
        actions = { go_by_next_hop; go_by_ecmp_group; reach; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    // Its selector and all that a group's mode does come later, in Forwarding.
    action take() {
        meta.nonminimal.is_taken = 1;
        meta.ecmp_group = meta.nonminimal.ecmp_group;
        standard_metadata.egress_spec = meta.nonminimal.port;
        hdr.ethernet.source = meta.nonminimal.source_mac;
        hdr.ethernet.destination = meta.nonminimal.destination_mac;
    }

    // Every other intermediate is as likely as the next.
    action draw() {
        random(meta.nonminimal.intermediate, 16w0, last_choice);
        bit<16> lower = own < of_destination ? own : of_destination;
        bit<16> higher = own < of_destination ? of_destination : own;
        meta.nonminimal.intermediate = meta.nonminimal.intermediate
            + (meta.nonminimal.intermediate >= lower ? 16w1 : 16w0);
        meta.nonminimal.intermediate = meta.nonminimal.intermediate
            + (meta.nonminimal.intermediate >= higher ? 16w1 : 16w0);
    }

    apply {
        bool is_looked_up = false;
        source_routing_ports.apply();
        if (hdr.valiant_shim.isValid()) {
            if (source_routing != SourceRouting.NONE) {
                drop_reason = DropReason.UNKNOWN_ETHERTYPE; // hosts have no say in it
            } else {
                meta.nonminimal.intermediate = hdr.valiant_shim.intermediate;
                is_looked_up = true;
            }
        } else if (source_routing != SourceRouting.NONE && !is_to_this_address) {
            if (hdr.ipv4.isValid()) {
                intermediate_by_ipv4.apply();
            } else {
                intermediate_by_ipv6.apply();
            }
            if (has_other_intermediate) {
                draw();
                is_looked_up = true;
            }
        }
        if (is_looked_up) {
            intermediates.apply();
            if (hdr.valiant_shim.isValid()) {
                if (is_reached || is_to_this_address) {
                    hdr.ethernet.ether_type = hdr.valiant_shim.next_ethertype;
                    hdr.valiant_shim.setInvalid();
                } else if (has_way) {
                    take();
                } else {
                    drop_reason = DropReason.NO_ROUTE;
                }
            } else if (has_way) {
                meta.nonminimal.is_drawn = 1;
                if (source_routing == SourceRouting.VALIANT) {
                    take();
                }
            }
        }
    }
}

// What goes by an intermediate from here has its shim. UGAL chooses once the minimal route has its port.
control ValiantDeparture(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PortDepth() port_depth;

    bool has_way = true;

    action set_nonminimal_next_hop(port_t port, mac_t source_mac, mac_t destination_mac) {
        meta.nonminimal.port = port;
        meta.nonminimal.source_mac = source_mac;
        meta.nonminimal.destination_mac = destination_mac;
    }

    action no_nonminimal_route() {
        has_way = false;
    }

    // Holds what `ecmp` holds, which the minimal route may have taken.
    action_selector(HashAlgorithm.identity, 32w1024, 32w32) ecmp_nonminimal_selector;
    table ecmp_nonminimal {
        key = {
            meta.nonminimal.ecmp_group: exact @name("group");
            meta.ecmp_selection: selector;
        }
        actions = { set_nonminimal_next_hop; no_nonminimal_route; }
        implementation = ecmp_nonminimal_selector;
        size = 1024;
    }

    apply {
        if (meta.nonminimal.is_taken == 0) {
            if (meta.nonminimal.ecmp_group != 0) {
                random(meta.ecmp_selection, 32w0, 32w0xFFFFFFFF);
                if (!ecmp_nonminimal.apply().hit) {
                    has_way = false;
                }
            }
            bit<32> minimal_depth;
            bit<32> depth;
            bit<48> lifetime = meta.nonminimal.lifetime;
            port_depth.apply(standard_metadata, standard_metadata.egress_spec, lifetime, minimal_depth);
            port_depth.apply(standard_metadata, meta.nonminimal.port, lifetime, depth);
            if (has_way && minimal_depth * (bit<32>)meta.nonminimal.minimal_hops >
                           depth * (bit<32>)meta.nonminimal.hops + meta.nonminimal.threshold) {
                meta.nonminimal.is_taken = 1;
                standard_metadata.egress_spec = meta.nonminimal.port;
                hdr.ethernet.source = meta.nonminimal.source_mac;
                hdr.ethernet.destination = meta.nonminimal.destination_mac;
            }
        }
        if (meta.nonminimal.is_taken == 1) {
            hdr.valiant_shim.setValid();
            hdr.valiant_shim.version = 1;
            hdr.valiant_shim.reserved = 0;
            hdr.valiant_shim.intermediate = meta.nonminimal.intermediate;
            hdr.valiant_shim.next_ethertype = hdr.ethernet.ether_type;
            hdr.ethernet.ether_type = ETHERTYPE_VALIANT;
        }
    }
}

#endif
