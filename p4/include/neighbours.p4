// ARP, neighbour discovery and ping to the switch's own addresses, answered in the data plane.
#ifndef WEFT_NEIGHBOURS_P4
#define WEFT_NEIGHBOURS_P4

#include "drops.p4"
#include "headers.p4"

control Neighbours(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                   inout DropReason drop_reason) {
    direct_counter(CounterType.packets) arp_counter;
    direct_counter(CounterType.packets) nd_counter;

    action arp_reply(mac_t mac) {
        hdr.arp.operation = 2;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        ipv4_address_t asked = hdr.arp.target_ipv4;
        hdr.arp.target_ipv4 = hdr.arp.sender_ipv4;
        hdr.arp.sender_ipv4 = asked;
        hdr.arp.sender_mac = mac;
        hdr.ethernet.destination = hdr.ethernet.source;
        hdr.ethernet.source = mac;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        arp_counter.count();
    }

    action nd_reply(mac_t mac) {
        hdr.icmp.type = 136;
        hdr.neighbour.router = 1;
        hdr.neighbour.solicited = 1;
        hdr.neighbour.override = 1;
        hdr.neighbour.option_type = 2;
        hdr.neighbour.option_mac = mac;
        hdr.ipv6.destination = hdr.ipv6.source;
        hdr.ipv6.source = hdr.neighbour.target;
        hdr.ipv6.hop_limit = 255;
        hdr.ethernet.destination = hdr.ethernet.source;
        hdr.ethernet.source = mac;
        meta.rewrite_neighbour = 1;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        nd_counter.count();
    }

    action unknown_neighbour() {
        drop_reason = DropReason.UNKNOWN_NEIGHBOUR;
    }

    table arp_responder {
        key = { hdr.arp.target_ipv4: exact @name("target_ipv4"); }
        actions = { arp_reply; @defaultonly unknown_neighbour; }
        const default_action = unknown_neighbour();
        counters = arp_counter;
        size = 1024;
    }

    table nd_responder {
        key = { hdr.neighbour.target: exact @name("target_ipv6"); }
        actions = { nd_reply; @defaultonly unknown_neighbour; }
        const default_action = unknown_neighbour();
        counters = nd_counter;
        size = 1024;
    }

    // Echo reply = echo request with another type, so the checksum changes by the types' difference
    // (RFC 1624, one's complement arithmetic); swapping the addresses leaves it as it is.
    action icmpv4_echo_reply() {
        ipv4_address_t asked = hdr.ipv4.destination;
        hdr.ipv4.destination = hdr.ipv4.source;
        hdr.ipv4.source = asked;
        hdr.ipv4.ttl = 64;
        hdr.icmp.type = 0;
        bit<17> sum = (bit<17>)hdr.icmp.checksum + 17w0x0800;
        hdr.icmp.checksum = sum[15:0] + (bit<16>)sum[16:16];
    }

    action icmpv6_echo_reply() {
        ipv6_address_t asked = hdr.ipv6.destination;
        hdr.ipv6.destination = hdr.ipv6.source;
        hdr.ipv6.source = asked;
        hdr.ipv6.hop_limit = 64;
        hdr.icmp.type = 129;
        bit<17> sum = (bit<17>)hdr.icmp.checksum + 17w0xFEFF;
        hdr.icmp.checksum = sum[15:0] + (bit<16>)sum[16:16];
    }

    apply {
        if (hdr.arp.isValid() || hdr.neighbour.isValid()) {
            // Who does not know a neighbour's MAC sends nothing: data must not keep the answer waiting.
            standard_metadata.priority = CLASS_CONTROL;
        }
        if (hdr.arp.isValid()) {
            if (hdr.arp.operation == 1) {
                arp_responder.apply();
            } else {
                unknown_neighbour();
            }
        } else if (hdr.neighbour.isValid() && hdr.icmp.type == 135) {
            nd_responder.apply();
        } else if (hdr.icmp.isValid() && hdr.ipv4.isValid() && hdr.icmp.type == 8) {
            icmpv4_echo_reply();
            return_to_sender(hdr.ethernet, standard_metadata);
        } else if (hdr.icmp.isValid() && hdr.ipv6.isValid() && hdr.icmp.type == 128) {
            icmpv6_echo_reply();
            return_to_sender(hdr.ethernet, standard_metadata);
        } else {
            drop_reason = DropReason.UNHANDLED_LOCAL;
        }
    }
}

#endif
