// SRv6 with compressed segments (uSIDs; RFC 9800, flavour NEXT-C-SID): the sender lists the switches on the way.
//
// The outer destination is the block, then up to six uSIDs of 16 bits. A switch takes a packet that names it first,
// shifts the list by one, and looks up the uSID that is first now: a neighbour, or one of its own ports to a host. There
// it takes the outer header off (docs/spec/srv6.md). The tables are the controller's and never change.
#ifndef WEFT_SRV6_P4
#define WEFT_SRV6_P4

#include "../drops.p4"
#include "../headers.p4"

control Srv6(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
             in bool is_to_this_mac, inout DropReason drop_reason) {
    bit<16> own_usid = 0;

    action set_usid(bit<16> usid) {
        own_usid = usid;
    }

    // Keyless: its default action says which uSID the switch has; 0 is none.
    table own_usid_of_switch {
        actions = { set_usid; NoAction; }
        default_action = NoAction();
        size = 1;
    }

    action no_next_usid() {
        drop_reason = DropReason.SRV6_NO_NEXT_USID;
    }

    action to_switch(port_t port, mac_t source_mac, mac_t destination_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.source = source_mac;
        hdr.ethernet.destination = destination_mac;
    }

    // What the way has done to the outer header stays with the packet: hop limit, class, marks.
    action to_host(port_t port, mac_t source_mac, mac_t destination_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.source = source_mac;
        hdr.ethernet.destination = destination_mac;
        hdr.ipv6.hop_limit = hdr.outer_ipv6.hop_limit;
        hdr.outer_ipv6.setInvalid();
    }

    direct_counter(CounterType.packets_and_bytes) usid_counter;
    table next_usid {
        key = { hdr.outer_ipv6.destination[95:80]: exact @name("usid"); }
        actions = { to_switch; to_host; no_next_usid; }
        default_action = no_next_usid();
        counters = usid_counter;
        size = 1024;
    }

    apply {
        own_usid_of_switch.apply();
        if (!is_to_this_mac) {
            drop_reason = DropReason.NOT_FOR_THIS_SWITCH;
        } else if (hdr.aggregation.isValid()) {
            // An outer header does not take a packet past the checks of those without one.
            drop_reason = DropReason.AGGREGATION_NOT_FORWARDED;
#ifdef SERVICE_SYNCHRONISATION
        } else if (hdr.service.isValid()) {
            drop_reason = DropReason.SERVICE_NOT_FORWARDED;
#endif
#ifdef SERVICE_PARAMETER_CACHE
        } else if (hdr.parameter.isValid()) {
            drop_reason = DropReason.PARAMETER_FOREIGN_PORT;
#endif
        } else if (own_usid == 0 || hdr.outer_ipv6.destination[95:80] != own_usid) {
            drop_reason = DropReason.SRV6_FOREIGN_USID;
        } else if (hdr.outer_ipv6.hop_limit <= 1) {
            drop_reason = DropReason.SRV6_HOP_LIMIT;
        } else {
            hdr.outer_ipv6.hop_limit = hdr.outer_ipv6.hop_limit - 1;
            hdr.outer_ipv6.destination[95:0] = hdr.outer_ipv6.destination[95:0] << 16;
            next_usid.apply();
        }
    }
}

#endif
