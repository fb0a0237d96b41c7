// Parser, checksums and deparser.
#ifndef WEFT_PARSER_P4
#define WEFT_PARSER_P4

#include "headers.p4"
#ifdef SRV6
#include "ev_routes/srv6_parser.p4"
#endif

parser FabricParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_INT_SHIM: parse_int_shim;
            ETHERTYPE_IPV4: parse_ipv4;
#ifdef SRV6
            ETHERTYPE_IPV6: parse_first_ipv6;
#else
            ETHERTYPE_IPV6: parse_ipv6;
#endif
            ETHERTYPE_ARP: parse_arp;
            ETHERTYPE_VALIANT: parse_valiant_shim;
            OWN_ETHERTYPES
            default: accept;
        }
    }

    OWN_PARSER_STATES

#ifdef SRV6
    SRV6_PARSER_STATES

#endif
#ifdef INT_MD
    INT_MD_PARSER_STATES

#endif
    state parse_valiant_shim {
        packet.extract(hdr.valiant_shim);
        transition select(hdr.valiant_shim.version, hdr.valiant_shim.next_ethertype) {
            (1, ETHERTYPE_INT_SHIM): parse_int_shim;
            (1, ETHERTYPE_IPV4): parse_ipv4;
            (1, ETHERTYPE_IPV6): parse_ipv6;
            default: accept;
        }
    }

    state parse_int_shim {
        packet.extract(hdr.int_shim);
        transition select(hdr.int_shim.version, hdr.int_shim.hop_slots) {
            (1, 5): parse_int_hops;
            default: accept;
        }
    }

    state parse_int_hops {
        packet.extract(hdr.int_hops[0]);
        packet.extract(hdr.int_hops[1]);
        packet.extract(hdr.int_hops[2]);
        packet.extract(hdr.int_hops[3]);
        packet.extract(hdr.int_hops[4]);
        transition select(hdr.int_shim.next_ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        meta.ip_version = 4;
        meta.flow.source = (bit<128>)hdr.ipv4.source;
        meta.flow.destination = (bit<128>)hdr.ipv4.destination;
        meta.flow.protocol = hdr.ipv4.protocol;
        // Fragments carry no ports here, so they are forwarded by address alone; packets with options are not.
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.flags, hdr.ipv4.protocol) {
            (5, 0, 0 &&& 1, PROTOCOL_UDP): parse_udp;
            (5, 0, 0 &&& 1, PROTOCOL_TCP): parse_tcp_ports;
            (5, 0, 0 &&& 1, PROTOCOL_ICMP): parse_icmp;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        verify(hdr.ipv6.version == 6, error.ParserInvalidArgument);
        meta.ip_version = 6;
        meta.flow.source = hdr.ipv6.source;
        meta.flow.destination = hdr.ipv6.destination;
        meta.flow.label = (bit<32>)hdr.ipv6.flow_label;
        meta.flow.protocol = hdr.ipv6.next_header;
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_UDP: parse_udp;
            PROTOCOL_TCP: parse_tcp_ports;
            PROTOCOL_ICMPV6: parse_icmpv6;
            default: accept;
        }
    }

    state parse_icmp {
        packet.extract(hdr.icmp);
        transition parse_transport_rest;
    }

    state parse_icmpv6 {
        packet.extract(hdr.icmp);
        // 32 bytes: a solicitation or advertisement with exactly one link-layer address option.
        transition select(hdr.icmp.type, hdr.ipv6.payload_length) {
            (135, 32): parse_neighbour;
            default: parse_transport_rest;
        }
    }

    state parse_neighbour {
        packet.extract(hdr.neighbour);
        transition accept;
    }

    state parse_tcp_ports {
        packet.extract(hdr.tcp_ports);
        meta.flow.source_port = hdr.tcp_ports.source;
        meta.flow.destination_port = hdr.tcp_ports.destination;
        transition parse_transport_rest;
    }

    state parse_transport_rest {
        packet.extract(hdr.transport_rest);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.flow.source_port = hdr.udp.source;
        meta.flow.destination_port = hdr.udp.destination;
        transition select(hdr.udp.destination) {
            UDP_PORT_ROCE: parse_bth;
#ifdef INT_MD
            INT_MD_UDP_PORTS
#endif
            OWN_UDP_PORTS
            default: accept;
        }
    }

    state parse_bth {
        packet.extract(hdr.bth);
        // An aggregation packet is parsed whole, because its iCRC is checked and made here; of any other RoCEv2
        // packet only the transport headers are.
        transition select(hdr.bth.opcode, hdr.bth.destination_qp, hdr.udp.length) {
            (OPCODE_UD_SEND_ONLY, QP_AGGREGATION, UDP_LENGTH_LANES): parse_aggregation;
            (OPCODE_UD_SEND_ONLY, QP_AGGREGATION, UDP_LENGTH_HEADER_ONLY): parse_aggregation;
            (OPCODE_UD_SEND_ONLY, QP_MULTICAST, UDP_LENGTH_LANES): parse_aggregation;
            (OPCODE_UD_SEND_ONLY, QP_MULTICAST, UDP_LENGTH_HEADER_ONLY): parse_aggregation;
#ifdef SERVICE_SYNCHRONISATION
            (OPCODE_UD_SEND_ONLY, QP_SERVICE, UDP_LENGTH_SERVICE): parse_service;
            (OPCODE_UD_SEND_ONLY, QP_MULTICAST, UDP_LENGTH_SERVICE): parse_service;
#endif
#ifdef SERVICE_PARAMETER_CACHE
            (OPCODE_UD_SEND_ONLY, QP_PARAMETER_STORE, UDP_LENGTH_PARAMETER): parse_parameter;
            (OPCODE_UD_SEND_ONLY, QP_PARAMETER_CLIENT, UDP_LENGTH_PARAMETER): parse_parameter;
            (OPCODE_UD_SEND_ONLY, QP_PARAMETER_STORE, UDP_LENGTH_PARAMETER_BLOCK): parse_parameter_block;
            (OPCODE_UD_SEND_ONLY, QP_PARAMETER_CLIENT, UDP_LENGTH_PARAMETER_BLOCK): parse_parameter_block;
#endif
            (OPCODE_CNP, _, _): accept;
            (0x64 &&& 0xFE, _, _): parse_deth;      // UD SEND only, with immediate
            (0x06 &&& 0xDF, _, _): parse_reth;      // WRITE first; the mask takes RC and UC alike
            (0x0A &&& 0xDF, _, _): parse_reth;      // WRITE only
            (0x0B &&& 0xDF, _, _): parse_reth_immediate;
            (0x09 &&& 0xDF, _, _): parse_immediate; // WRITE last with immediate
            (0x03 &&& 0xDF, _, _): parse_immediate; // SEND last with immediate
            (0x05 &&& 0xDF, _, _): parse_immediate; // SEND only with immediate
            (0x0C, _, _): parse_reth;               // READ request
            (0x0D, _, _): parse_aeth;               // READ response first
            (0x0F, _, _): parse_aeth;               // READ response last
            (0x10, _, _): parse_aeth;               // READ response only
            (0x11, _, _): parse_aeth;               // ACK, NAK
            default: accept;
        }
    }

    state parse_reth {
        packet.extract(hdr.reth);
        transition accept;
    }

    state parse_reth_immediate {
        packet.extract(hdr.reth);
        transition parse_immediate;
    }

    state parse_immediate {
        packet.extract(hdr.immediate);
        transition accept;
    }

    state parse_aeth {
        packet.extract(hdr.aeth);
        transition accept;
    }

    state parse_deth {
        packet.extract(hdr.deth);
        transition select(hdr.bth.opcode) {
            OPCODE_UD_SEND_ONLY: accept;
            default: parse_immediate;
        }
    }

    state parse_aggregation {
        packet.extract(hdr.deth);
        packet.extract(hdr.aggregation);
        transition select(hdr.udp.length) {
            UDP_LENGTH_HEADER_ONLY: parse_icrc;
            default: parse_lanes;
        }
    }

    state parse_lanes {
        packet.extract(hdr.lanes);
        transition parse_icrc;
    }

    state parse_icrc {
        packet.extract(hdr.icrc);
        transition accept;
    }

#ifdef SERVICE_SYNCHRONISATION
    state parse_service {
        packet.extract(hdr.deth);
        packet.extract(hdr.service);
        packet.extract(hdr.icrc);
        transition accept;
    }
#endif

#ifdef SERVICE_PARAMETER_CACHE
    state parse_parameter {
        packet.extract(hdr.deth);
        packet.extract(hdr.parameter);
        packet.extract(hdr.icrc);
        transition accept;
    }

    state parse_parameter_block {
        packet.extract(hdr.deth);
        packet.extract(hdr.parameter);
        packet.extract(hdr.block);
        packet.extract(hdr.icrc);
        transition accept;
    }
#endif
}

control FabricVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FabricComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
#ifdef INT_MD
        update_checksum(hdr.report_ipv4.isValid(),
            { hdr.report_ipv4.version, hdr.report_ipv4.ihl, hdr.report_ipv4.dscp, hdr.report_ipv4.ecn,
              hdr.report_ipv4.total_length, hdr.report_ipv4.identification, hdr.report_ipv4.flags,
              hdr.report_ipv4.fragment_offset, hdr.report_ipv4.ttl, hdr.report_ipv4.protocol,
              hdr.report_ipv4.source, hdr.report_ipv4.destination },
            hdr.report_ipv4.checksum, HashAlgorithm.csum16);
#endif
        // Pseudo-header of RFC 8200, section 8.1, then the neighbour advertisement.
        update_checksum(meta.rewrite_neighbour == 1,
            { hdr.ipv6.source, hdr.ipv6.destination, 16w0, hdr.ipv6.payload_length, 24w0, hdr.ipv6.next_header,
              hdr.icmp.type, hdr.icmp.code, hdr.neighbour.router, hdr.neighbour.solicited,
              hdr.neighbour.override, hdr.neighbour.reserved, hdr.neighbour.target, hdr.neighbour.option_type,
              hdr.neighbour.option_length, hdr.neighbour.option_mac },
            hdr.icmp.checksum, HashAlgorithm.csum16);
    }
}

control FabricDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.valiant_shim);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_hops);
        OWN_EMITS
        packet.emit(hdr.arp);
#ifdef INT_MD
        INT_MD_REPORT_EMITS
#endif
        packet.emit(hdr.ipv4);
#ifdef SRV6
        packet.emit(hdr.outer_ipv6);
#endif
        packet.emit(hdr.ipv6);
        packet.emit(hdr.icmp);
        packet.emit(hdr.neighbour);
#ifdef INT_MD
        INT_MD_EMITS
#endif
        packet.emit(hdr.tcp_ports);
        packet.emit(hdr.transport_rest);
        packet.emit(hdr.quoted_ipv4);
        packet.emit(hdr.quoted_ipv6);
        packet.emit(hdr.quoted_start);
#ifndef INT_MD
        packet.emit(hdr.udp);
#endif
        OWN_UDP_EMITS
#ifdef BOLT
        packet.emit(hdr.notification);
#endif
        packet.emit(hdr.bth);
        packet.emit(hdr.deth);
        packet.emit(hdr.reth);
        packet.emit(hdr.aeth);
        packet.emit(hdr.immediate);
        packet.emit(hdr.aggregation);
        packet.emit(hdr.lanes);
#ifdef SERVICE_SYNCHRONISATION
        packet.emit(hdr.service);
#endif
#ifdef SERVICE_PARAMETER_CACHE
        packet.emit(hdr.parameter);
        packet.emit(hdr.block);
#endif
        packet.emit(hdr.icrc);
    }
}

#endif
