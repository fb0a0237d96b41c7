// ICMP's time exceeded (RFC 792; RFC 4443, section 3.3) about packets whose TTL has expired, as traceroute needs it. The
// packet itself becomes the report: it goes back by the port on which it came, from the switch's own address.
//
// A report quotes the IP header and 8 bytes behind it, which RFC 792 asks for; later ones ask for more (RFC 1812,
// section 4.3.2.3; RFC 4443, section 2.4 c), but a checksum over what was not parsed cannot be made here.
#ifndef WEFT_TIME_EXCEEDED_P4
#define WEFT_TIME_EXCEEDED_P4

#include "headers.p4"

// Of a meter, below its committed rate; the number is v1model's.
const bit<2> COLOUR_GREEN = 0;

// Ethernet 14, IP 20 or 40, ICMP 8, and the quotation.
const bit<32> TIME_EXCEEDED_BYTES_IPV4 = 14 + 20 + 8 + 20 + 8;
const bit<32> TIME_EXCEEDED_BYTES_IPV6 = 14 + 40 + 8 + 40 + 8;
// What IP counts: without Ethernet, with (4) and without (6) its own header.
const bit<16> TIME_EXCEEDED_LENGTH_IPV4 = 56;
const bit<16> TIME_EXCEEDED_LENGTH_IPV6 = 56;

control TimeExceeded(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_meter<bit<2>>(MeterType.packets) report_rate;
    bit<1> is_wanted = 0;
    bit<2> colour = COLOUR_GREEN;

    action report() {
        is_wanted = 1;
        report_rate.read(colour);
    }

    // Has an entry for each IP version of which the switch reports, with the rate of these reports (RFC 1812, section
    // 4.3.2.8; RFC 4443, section 2.4 f).
    table time_exceeded {
        key = { meta.ip_version: exact @name("ip_version"); }
        actions = { report; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = report_rate;
        size = 2;
    }

    // All that a packet may have besides Ethernet and IP.
    action remove_the_rest() {
        hdr.valiant_shim.setInvalid();
        hdr.int_shim.setInvalid();
        hdr.int_hops.pop_front(5);
        hdr.tcp_ports.setInvalid();
        hdr.udp.setInvalid();
        hdr.bth.setInvalid();
        hdr.deth.setInvalid();
        hdr.reth.setInvalid();
        hdr.aeth.setInvalid();
        hdr.immediate.setInvalid();
        hdr.aggregation.setInvalid();
        hdr.lanes.setInvalid();
#ifdef SERVICE_SYNCHRONISATION
        hdr.service.setInvalid();
#endif
#ifdef SERVICE_PARAMETER_CACHE
        hdr.parameter.setInvalid();
        hdr.block.setInvalid();
#endif
        hdr.icrc.setInvalid();
#ifdef INT_MD
        INT_MD_REMOVE
#endif
    }

    action report_ipv4() {
        hdr.quoted_ipv4 = hdr.ipv4;
        hdr.ipv4.dscp = DSCP_CONTROL;
        hdr.ipv4.ecn = ECN_NOT_ECT;
        hdr.ipv4.total_length = TIME_EXCEEDED_LENGTH_IPV4;
        hdr.ipv4.identification = 0;
        hdr.ipv4.flags = 0;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.protocol = PROTOCOL_ICMP;
        hdr.ipv4.destination = hdr.ipv4.source;
        hdr.ipv4.source = meta.identity.ipv4;
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.icmp.type = 11;
        // The quoted header is left out: with its checksum, which was right, it adds nothing to a sum.
        hash(hdr.icmp.checksum, HashAlgorithm.csum16, 16w0,
            { hdr.icmp.type, hdr.icmp.code, hdr.transport_rest.data, hdr.quoted_start.data }, 32w0x10000);
        truncate(TIME_EXCEEDED_BYTES_IPV4);
    }

    action report_ipv6() {
        hdr.quoted_ipv6 = hdr.ipv6;
        hdr.ipv6.dscp = DSCP_CONTROL;
        hdr.ipv6.ecn = ECN_NOT_ECT;
        hdr.ipv6.flow_label = 0;
        hdr.ipv6.payload_length = TIME_EXCEEDED_LENGTH_IPV6;
        hdr.ipv6.next_header = PROTOCOL_ICMPV6;
        hdr.ipv6.hop_limit = 64;
        hdr.ipv6.destination = hdr.ipv6.source;
        hdr.ipv6.source = meta.identity.ipv6;
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        hdr.icmp.type = 3;
        hash(hdr.icmp.checksum, HashAlgorithm.csum16, 16w0,
            { hdr.ipv6.source, hdr.ipv6.destination, 16w0, hdr.ipv6.payload_length, 24w0, hdr.ipv6.next_header,
              hdr.icmp.type, hdr.icmp.code, hdr.transport_rest.data,
              hdr.quoted_ipv6.version, hdr.quoted_ipv6.dscp, hdr.quoted_ipv6.ecn, hdr.quoted_ipv6.flow_label,
              hdr.quoted_ipv6.payload_length, hdr.quoted_ipv6.next_header, hdr.quoted_ipv6.hop_limit,
              hdr.quoted_ipv6.source, hdr.quoted_ipv6.destination, hdr.quoted_start.data }, 32w0x10000);
        truncate(TIME_EXCEEDED_BYTES_IPV6);
    }

    apply {
        // Headers of a program's own would stay between Ethernet and IP: what has any is not reported of.
        bool may_report = (hdr.udp.isValid() || hdr.transport_rest.isValid()) &&
                          (hdr.ethernet.ether_type == ETHERTYPE_IPV4 || hdr.ethernet.ether_type == ETHERTYPE_IPV6 ||
                           hdr.ethernet.ether_type == ETHERTYPE_INT_SHIM || hdr.ethernet.ether_type == ETHERTYPE_VALIANT);
        // Never about an error, nor to or about more than one host (RFC 1812, section 4.3.2.7; RFC 4443, section 2.4 e).
        if (hdr.ipv4.isValid()) {
            bit<8> source = hdr.ipv4.source[31:24];
            if (source == 0 || source == 127 || source >= 224 || hdr.ipv4.destination[31:28] >= 14) {
                may_report = false;
            }
            if (hdr.icmp.isValid() && (hdr.icmp.type == 3 || hdr.icmp.type == 4 || hdr.icmp.type == 5 ||
                                       hdr.icmp.type == 11 || hdr.icmp.type == 12)) {
                may_report = false;
            }
        } else {
            if (hdr.ipv6.source == 0 || hdr.ipv6.source[127:120] == 0xFF || hdr.ipv6.destination[127:120] == 0xFF) {
                may_report = false;
            }
            if (hdr.icmp.isValid() && (hdr.icmp.type < 128 || hdr.icmp.type == 137)) {
                may_report = false;
            }
        }
        if (may_report) {
            time_exceeded.apply();
        }
        if (is_wanted == 1 && colour == COLOUR_GREEN) {
            hdr.quoted_start.setValid();
            if (hdr.udp.isValid()) {
                hdr.quoted_start.data =
                    hdr.udp.source ++ hdr.udp.destination ++ hdr.udp.length ++ hdr.udp.checksum;
            } else if (hdr.tcp_ports.isValid()) {
                hdr.quoted_start.data =
                    hdr.tcp_ports.source ++ hdr.tcp_ports.destination ++ hdr.transport_rest.data;
            } else {
                hdr.quoted_start.data =
                    hdr.icmp.type ++ hdr.icmp.code ++ hdr.icmp.checksum ++ hdr.transport_rest.data;
            }
            remove_the_rest();
            hdr.icmp.setValid();
            hdr.icmp.code = 0;
            hdr.transport_rest.setValid();
            hdr.transport_rest.data = 0;
            if (hdr.ipv4.isValid()) {
                report_ipv4();
            } else {
                report_ipv6();
            }
            return_to_sender(hdr.ethernet, standard_metadata);
            standard_metadata.priority = CLASS_CONTROL;
        }
    }
}

#endif
