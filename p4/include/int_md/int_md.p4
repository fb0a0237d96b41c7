// INT-MD: the first switch of a watched packet's path puts INT behind its UDP header, every switch adds its metadata, and
// the last one removes INT and sends it to a collector in a telemetry report. Tables say which flows are watched, which
// metadata are recorded and where reports go. Format: docs/spec/int-md.md.
//
// All of this is egress, where the depth of the packet's queue is known.
#ifndef WEFT_INT_MD_P4
#define WEFT_INT_MD_P4

#include "../headers.p4"

// What is counted, by index of `int_md_events`.
enum bit<8> IntMdEvent {
    STARTED        = 0,
    NOT_STARTED    = 1, // the fixed headers would not fit the link
    PUSHED         = 2, // metadata of this hop
    MTU_EXCEEDED   = 3, // not pushed, M set
    HOPS_EXCEEDED  = 4, // not pushed, E set
    UNSUPPORTED    = 5, // not pushed: instructions that this hop does not know
    REMOVED        = 6, // by the sink
    REPORTED       = 7
}

// Bits of the instructions (MSB first): node, interfaces of level 1, latency, queue, times of ingress and egress.
const bit<16> INT_MD_SUPPORTED = 0xFC00;

counter(8, CounterType.packets) int_md_events;
#define COUNT_INT_MD(event) int_md_events.count((bit<32>)(bit<8>)IntMdEvent.event);

// Adjusts the lengths of IP and UDP to so many more bytes, modulo 2^16.
control IntMdGrow(inout headers_t hdr, inout metadata_t meta, in bit<16> bytes) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.total_length = hdr.ipv4.total_length + bytes;
        } else {
            hdr.ipv6.payload_length = hdr.ipv6.payload_length + bytes;
        }
        meta.int_md_growth_bytes = meta.int_md_growth_bytes + bytes;
    }
}

control IntMdProtocol(inout headers_t hdr, in bit<8> protocol) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.protocol = protocol;
        } else {
            hdr.ipv6.next_header = protocol;
        }
    }
}

// Has IP and UDP announce the INT headers that are in front of the payload now.
control IntMdEnclose(inout headers_t hdr, inout metadata_t meta, in bit<16> source_port) {
    IntMdGrow() grow;
    IntMdProtocol() protocol;

    apply {
        bit<16> bytes = ((bit<16>)hdr.int_md_shim.length_words + 1) << 2;
        if (hdr.int_md_shim.npt == NPT_LAYER_4) {
            if (hdr.udp.isValid()) {
                hdr.inner_udp = hdr.udp;
            }
            hdr.udp.setValid();
            hdr.udp.source = source_port;
            hdr.udp.length = hdr.ipv4.isValid() ? hdr.ipv4.total_length - IPV4_BYTES : hdr.ipv6.payload_length;
            hdr.udp.length = hdr.udp.length + UDP_BYTES + bytes;
            hdr.udp.checksum = 0;
            protocol.apply(hdr, PROTOCOL_UDP);
            bytes = bytes + UDP_BYTES;
        } else {
            hdr.udp.length = hdr.udp.length + bytes;
        }
        hdr.udp.destination = UDP_PORT_INT_MD;
        grow.apply(hdr, meta, bytes);
    }
}

// Takes INT out of a packet, and keeps it where the deparser does not see it.
control IntMdRemove(inout headers_t hdr, inout metadata_t meta) {
    IntMdGrow() grow;
    IntMdProtocol() protocol;

    apply {
        bit<16> bytes = ((bit<16>)hdr.int_md_shim.length_words + 1) << 2;
        if (hdr.int_md_shim.npt == NPT_LAYER_4) {
            protocol.apply(hdr, hdr.int_md_shim.original[7:0]);
            if (hdr.inner_udp.isValid()) {
                hdr.udp = hdr.inner_udp;
                hdr.inner_udp.setInvalid();
            } else {
                hdr.udp.setInvalid();
            }
            bytes = bytes + UDP_BYTES;
        } else {
            hdr.udp.destination = hdr.int_md_shim.original;
            hdr.udp.length = hdr.udp.length - bytes;
        }
        grow.apply(hdr, meta, 0 - bytes);
        hdr.removed_shim = hdr.int_md_shim;
        hdr.removed_int_md = hdr.int_md;
        hdr.removed_stack = hdr.int_md_stack;
        hdr.int_md_shim.setInvalid();
        hdr.int_md.setInvalid();
        hdr.int_md_stack.setInvalid();
    }
}

// Puts what the instructions ask for on top of the stack.
control IntMdPush(inout headers_t hdr, inout metadata_t meta, in bit<32> node_id) {
    IntMdGrow() grow;

    apply {
        if (hdr.int_md.instructions[15:15] == 1) {
            hdr.int_md_node.setValid();
            hdr.int_md_node.node_id = node_id;
        }
        if (hdr.int_md.instructions[14:14] == 1) {
            hdr.int_md_interfaces.setValid();
            hdr.int_md_interfaces.ingress = meta.int_md_ingress;
            hdr.int_md_interfaces.egress = meta.int_md_egress;
        }
        if (hdr.int_md.instructions[13:13] == 1) {
            hdr.int_md_latency.setValid();
            hdr.int_md_latency.latency_ns = meta.int_md_latency_ns;
        }
        if (hdr.int_md.instructions[12:12] == 1) {
            hdr.int_md_queue.setValid();
            hdr.int_md_queue.queue_id = meta.int_md_queue_id;
            hdr.int_md_queue.occupancy_bytes = meta.int_md_queue_bytes;
        }
        if (hdr.int_md.instructions[11:11] == 1) {
            hdr.int_md_ingress_time.setValid();
            hdr.int_md_ingress_time.time_ns = meta.int_md_ingress_ns;
        }
        if (hdr.int_md.instructions[10:10] == 1) {
            hdr.int_md_egress_time.setValid();
            hdr.int_md_egress_time.time_ns = meta.int_md_egress_ns;
        }
        bit<16> bytes = ((bit<16>)hdr.int_md.hop_words) << 2;
        hdr.int_md.remaining_hops = hdr.int_md.remaining_hops - 1;
        hdr.int_md_shim.length_words = hdr.int_md_shim.length_words + (bit<8>)hdr.int_md.hop_words;
        hdr.udp.length = hdr.udp.length + bytes;
        grow.apply(hdr, meta, bytes);
    }
}

// Ingress: INT that comes from a host is forged, as the network's edge is where INT begins and ends.
control IntMdEdge(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    action at_edge() {
        meta.int_md_from_host = 1;
    }

    table int_md_ingress {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { at_edge; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    apply {
        int_md_ingress.apply();
    }
}

control IntMd(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(1024) int_md_samples;  // packets of each watchlist entry since the last that was taken
    direct_counter(CounterType.packets) watch_counter;
    IntMdEnclose() enclose;
    IntMdRemove() remove;
    IntMdPush() push;

    bit<32> node_id = 0;
    bit<16> ns_per_time_unit = 0;
    bit<16> bytes_per_depth_unit = 0;
    bit<1>  is_node = 0;
    bit<1>  to_a_host = 0;
    bit<16> mtu_bytes = 0;
    bit<1>  is_watched = 0;
    bit<1>  reports = 0;
    bit<16> instructions = 0;
    bit<5>  hop_words = 0;
    bit<8>  hops = 0;
    bit<32> every = 0;
    bit<16> sampler = 0;

    // The factors turn the target's units of time and queue depth into nanoseconds and bytes.
    action set_node(bit<32> id, bit<16> time_unit_ns, bit<16> depth_unit_bytes, bit<1> sends_reports) {
        is_node = 1;
        node_id = id;
        ns_per_time_unit = time_unit_ns;
        bytes_per_depth_unit = depth_unit_bytes;
        reports = sends_reports;
    }

    // Keyless: its default action says who the node is.
    table int_md_node {
        actions = { set_node; NoAction; }
        default_action = NoAction();
        size = 1;
    }

    action to_host() {
        to_a_host = 1;
    }

    action to_switch(bit<16> link_mtu_bytes) {
        mtu_bytes = link_mtu_bytes;
    }

    table int_md_egress {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { to_host; to_switch; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    // One packet of every so many is taken, the first one included.
    action watch(bit<16> instruction_bitmap, bit<5> words_per_hop, bit<8> most_hops, bit<32> one_of,
                 bit<16> entry_number) {
        watch_counter.count();
        is_watched = 1;
        instructions = instruction_bitmap;
        hop_words = words_per_hop;
        hops = most_hops;
        every = one_of;
        sampler = entry_number;
    }

    table int_md_watchlist {
        key = {
            meta.flow.source: ternary @name("source");
            meta.flow.destination: ternary @name("destination");
            meta.flow.protocol: ternary @name("protocol");
            meta.flow.source_port: ternary @name("source_port");
            meta.flow.destination_port: ternary @name("destination_port");
            standard_metadata.priority: ternary @name("class");
        }
        actions = { watch; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = watch_counter;
        size = 1024;
    }

    action measure() {
        meta.int_md_ingress = (bit<16>)standard_metadata.ingress_port;
        meta.int_md_egress = (bit<16>)standard_metadata.egress_port;
        meta.int_md_ingress_ns = (bit<64>)standard_metadata.ingress_global_timestamp * (bit<64>)ns_per_time_unit;
        meta.int_md_egress_ns = (bit<64>)standard_metadata.egress_global_timestamp * (bit<64>)ns_per_time_unit;
        bit<64> latency = meta.int_md_egress_ns - meta.int_md_ingress_ns;
        // All ones would mean: not known.
        meta.int_md_latency_ns = latency > 64w0xFFFFFFFE ? 32w0xFFFFFFFE : latency[31:0];
        bit<35> depth = (bit<35>)standard_metadata.deq_qdepth * (bit<35>)bytes_per_depth_unit;
        meta.int_md_queue_id = (bit<8>)standard_metadata.priority;
        meta.int_md_queue_bytes = depth > 35w0xFFFFFE ? 24w0xFFFFFE : depth[23:0];
    }

    apply {
        int_md_node.apply();
        if (is_node == 0) {
            // This switch takes no part, so INT passes it as it is.
        } else if (meta.int_md_is_report == 1) {
            // What is left of its packet's payload goes no further. It has been recirculated whole.
            bit<32> bytes = 14;
            if (hdr.valiant_shim.isValid()) {
                bytes = bytes + 6;
            }
            if (hdr.ipv4.isValid()) {
                bytes = bytes + (bit<32>)hdr.ipv4.total_length;
            } else {
                bytes = bytes + (bit<32>)hdr.ipv6.payload_length + 40;
            }
            truncate(bytes);
        } else if (standard_metadata.instance_type == INSTANCE_NORMAL) {
            bool may_start = meta.int_md_from_host == 1 && (hdr.udp.isValid() || hdr.tcp_ports.isValid()) &&
                             !hdr.aggregation.isValid();
#ifdef SERVICE_SYNCHRONISATION
            may_start = may_start && !hdr.service.isValid();
#endif
#ifdef SERVICE_PARAMETER_CACHE
            may_start = may_start && !hdr.parameter.isValid();
#endif
            if (hdr.int_md.isValid() || may_start) {
                int_md_egress.apply();
                // What a link carries besides Ethernet.
                bit<16> bytes = hdr.ipv4.isValid() ? hdr.ipv4.total_length : hdr.ipv6.payload_length + 40;
                if (hdr.int_shim.isValid()) {
                    bytes = bytes + 46;
                }
                if (hdr.valiant_shim.isValid()) {
                    bytes = bytes + 6;
                }
                if (may_start) {
                    int_md_watchlist.apply();
                    if (is_watched == 1) {
                        bit<32> count;
                        int_md_samples.read(count, (bit<32>)sampler);
                        int_md_samples.write((bit<32>)sampler, count + 1 >= every ? 32w0 : count + 1);
                        is_watched = count == 0 ? 1w1 : 1w0;
                    }
                    bool by_payload = hdr.udp.isValid() && hdr.udp.checksum == 0;
                    bit<16> fixed = by_payload ? INT_MD_FIXED_BYTES : INT_MD_FIXED_BYTES + UDP_BYTES;
                    if (is_watched == 1 && to_a_host == 0 && bytes + fixed > mtu_bytes) {
                        COUNT_INT_MD(NOT_STARTED)
                    } else if (is_watched == 1) {
                        hdr.int_md_shim.setValid();
                        hdr.int_md_shim.type = INT_TYPE_MD;
                        hdr.int_md_shim.reserved = 0;
                        hdr.int_md_shim.length_words = INT_MD_WORDS;
                        if (by_payload) {
                            hdr.int_md_shim.npt = NPT_UDP_PAYLOAD;
                            hdr.int_md_shim.original = hdr.udp.destination;
                        } else {
                            hdr.int_md_shim.npt = NPT_LAYER_4;
                            hdr.int_md_shim.original = (bit<16>)meta.flow.protocol;
                        }
                        hdr.int_md.setValid();
                        hdr.int_md.version = INT_MD_VERSION;
                        hdr.int_md.discard = 0;
                        hdr.int_md.hops_exceeded = 0;
                        hdr.int_md.mtu_exceeded = 0;
                        hdr.int_md.reserved = 0;
                        hdr.int_md.hop_words = hop_words;
                        hdr.int_md.remaining_hops = hops;
                        hdr.int_md.instructions = instructions;
                        hdr.int_md.domain_id = 0;
                        hdr.int_md.domain_instructions = 0;
                        hdr.int_md.domain_flags = 0;
                        enclose.apply(hdr, meta, meta.flow.source_port);
                        bytes = bytes + fixed;
                        COUNT_INT_MD(STARTED)
                    }
                }
                if (hdr.int_md.isValid()) {
                    measure();
                    if (to_a_host == 1) {
                        remove.apply(hdr, meta);
                        COUNT_INT_MD(REMOVED)
                        if (reports == 1) {
                            clone_preserving_field_list(CloneType.E2E, INT_MD_REPORT_SESSION, FIELDS_OF_CLONE);
                        }
                    } else if (hdr.int_md.remaining_hops == 0) {
                        hdr.int_md.hops_exceeded = 1;
                        COUNT_INT_MD(HOPS_EXCEEDED)
                    } else if ((hdr.int_md.instructions & ~INT_MD_SUPPORTED) != 0) {
                        COUNT_INT_MD(UNSUPPORTED)
                    } else if (bytes + (((bit<16>)hdr.int_md.hop_words) << 2) > mtu_bytes) {
                        hdr.int_md.mtu_exceeded = 1;
                        COUNT_INT_MD(MTU_EXCEEDED)
                    } else {
                        push.apply(hdr, meta, node_id);
                        COUNT_INT_MD(PUSHED)
                    }
                }
            }
        }
    }
}

// Egress of the clone of a packet from which the sink has removed INT: it becomes the report.
control IntMdReport(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(1) int_md_sequence;
    IntMdEnclose() enclose_again;
    IntMdPush() push_last;

    bit<32> node_id = 0;
    mac_t   own_mac = 0;
    bit<4>  collector_ip_version = 0;
    ipv6_address_t own_address = 0;
    ipv6_address_t collector = 0;
    bit<16> collector_port = 0;
    bit<6>  collector_dscp = 0;

    // IPv4 addresses widened. The MAC is this switch's: the report enters its ingress once more.
    action set_collector(bit<32> id, mac_t mac, bit<4> ip_version, ipv6_address_t source, ipv6_address_t destination,
                         bit<16> port, bit<6> dscp) {
        node_id = id;
        own_mac = mac;
        collector_ip_version = ip_version;
        own_address = source;
        collector = destination;
        collector_port = port;
        collector_dscp = dscp;
    }

    table int_md_collector {
        actions = { set_collector; NoAction; }
        default_action = NoAction();
        size = 1;
    }

    // The headers behind Ethernet, of the packet that the report is about.
    action start_report() {
        hdr.ethernet.destination = own_mac;
        hdr.ethernet.source = own_mac;
        hdr.valiant_shim.setInvalid();
        hdr.int_shim.setInvalid();
        hdr.int_hops.pop_front(5);
        hdr.removed_shim.setInvalid();
        hdr.removed_int_md.setInvalid();
        hdr.removed_stack.setInvalid();
        hdr.report_udp.setValid();
        hdr.report_udp.source = hdr.udp.source;
        hdr.report_udp.destination = collector_port;
        hdr.report_udp.checksum = 0;
        hdr.report_group.setValid();
        hdr.report_group.version = REPORT_VERSION;
        hdr.report_group.hardware_id = 0;
        hdr.report_group.node_id = node_id;
        hdr.report.setValid();
        hdr.report.type = REPORT_INNER_ONLY;
        hdr.report.metadata_words = 0;
        hdr.report.dropped = 0;
        hdr.report.congested = 0;
        hdr.report.tracked = 1;
        hdr.report.intermediate = 0;
        hdr.report.reserved = 0;
    }

    action report_over_ipv4() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.report_ipv4.setValid();
        hdr.report_ipv4.version = 4;
        hdr.report_ipv4.ihl = 5;
        hdr.report_ipv4.dscp = collector_dscp;
        hdr.report_ipv4.ecn = ECN_NOT_ECT;
        hdr.report_ipv4.total_length = hdr.report_udp.length + IPV4_BYTES;
        hdr.report_ipv4.identification = 0;
        hdr.report_ipv4.flags = 2; // do not fragment
        hdr.report_ipv4.fragment_offset = 0;
        hdr.report_ipv4.ttl = 64;
        hdr.report_ipv4.protocol = PROTOCOL_UDP;
        hdr.report_ipv4.source = own_address[31:0];
        hdr.report_ipv4.destination = collector[31:0];
    }

    action report_over_ipv6() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        hdr.report_ipv6.setValid();
        hdr.report_ipv6.version = 6;
        hdr.report_ipv6.dscp = collector_dscp;
        hdr.report_ipv6.ecn = ECN_NOT_ECT;
        hdr.report_ipv6.flow_label = 0;
        hdr.report_ipv6.payload_length = hdr.report_udp.length;
        hdr.report_ipv6.next_header = PROTOCOL_UDP;
        hdr.report_ipv6.hop_limit = 64;
        hdr.report_ipv6.source = own_address;
        hdr.report_ipv6.destination = collector;
        // UDP over IPv6 has a checksum (RFC 8200, section 8.1): pseudo-header, UDP and all that the report keeps of the
        // packet. A quoted IPv4 header with its right checksum adds nothing; headers that are not there do not count.
        hash(hdr.report_udp.checksum, HashAlgorithm.csum16, 16w0,
            { own_address, collector, 16w0, hdr.report_udp.length, 24w0, PROTOCOL_UDP,
              hdr.report_udp.source, hdr.report_udp.destination, hdr.report_udp.length,
              hdr.report_group, hdr.report, hdr.ipv6, hdr.udp, hdr.int_md_shim, hdr.int_md, hdr.int_md_node,
              hdr.int_md_interfaces, hdr.int_md_latency, hdr.int_md_queue, hdr.int_md_ingress_time,
              hdr.int_md_egress_time, hdr.int_md_stack, hdr.inner_udp, hdr.tcp_ports, hdr.transport_rest, hdr.bth },
            32w0x10000);
    }

    apply {
        int_md_collector.apply();
        hdr.int_md_shim = hdr.removed_shim;
        hdr.int_md = hdr.removed_int_md;
        hdr.int_md_stack = hdr.removed_stack;
        enclose_again.apply(hdr, meta, hdr.tcp_ports.isValid() ? hdr.tcp_ports.source : hdr.udp.source);
        if (hdr.int_md.remaining_hops == 0) {
            hdr.int_md.hops_exceeded = 1;
            COUNT_INT_MD(HOPS_EXCEEDED)
        } else if ((hdr.int_md.instructions & ~INT_MD_SUPPORTED) != 0) {
            COUNT_INT_MD(UNSUPPORTED)
        } else {
            push_last.apply(hdr, meta, node_id);
            COUNT_INT_MD(PUSHED)
        }
        start_report();
        bit<32> sequence;
        int_md_sequence.read(sequence, 0);
        int_md_sequence.write(0, sequence + 1);
        hdr.report_group.sequence = sequence[21:0];
        // From IP to the last header that was parsed: addresses, ports and queue pairs say which flow it is.
        bit<16> inner_words = (bit<16>)hdr.int_md_shim.length_words + 3; // shim and UDP
        if (hdr.ipv4.isValid()) {
            hdr.report.inner_type = REPORT_INNER_IPV4;
            inner_words = inner_words + 5;
        } else {
            hdr.report.inner_type = REPORT_INNER_IPV6;
            inner_words = inner_words + 10;
        }
        if (hdr.bth.isValid()) {
            inner_words = inner_words + 3;
        } else if (hdr.int_md_shim.npt == NPT_LAYER_4) {
            inner_words = inner_words + 2;
        }
        hdr.report.length_words = inner_words > 16w0xFF ? 8w0xFF : inner_words[7:0];
        hdr.report_udp.length = UDP_BYTES + 12 + (inner_words << 2);
        if (collector_ip_version == 4) {
            report_over_ipv4();
        } else {
            report_over_ipv6();
            if (hdr.report_udp.checksum == 0) {
                hdr.report_udp.checksum = 0xFFFF;
            }
        }
        COUNT_INT_MD(REPORTED)
        meta.int_md_is_report = 1;
        recirculate_preserving_field_list(FIELDS_OF_REPORT);
    }
}

#endif
