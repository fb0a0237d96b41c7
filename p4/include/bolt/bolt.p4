// Bolt's congestion point (Arslan et al., "Bolt: Sub-RTT Congestion Control for Ultra-Low Latency", NSDI 2023): egress
// notifies the sender of a packet that leaves a queue behind (SRC, section 3.1), and marks (CE) packets that find
// neither the place of a flow that ends (proactive ramp-up, section 3.2) nor supply of the link (supply matching,
// section 3.3); ecn.p4 sets and counts the marks. FECN in the BTH, which the iCRC does not cover, is the paper's DEC
// flag: a packet's sender is notified once. ECT(0) is its INC flag, CE the flag taken back.
#ifndef WEFT_BOLT_P4
#define WEFT_BOLT_P4

#include "../headers.p4"

control Bolt(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<48>>(512) supply_times;
    register<bit<32>>(512) supply_tokens;
    register<bit<32>>(512) ramp_up_tokens;
    direct_counter(CounterType.packets) bolt_counter;
    counter(512, CounterType.packets) notifications;

    bit<8>  classes = 0;
    bit<19> threshold = 0;
    bit<32> depth_unit_bytes = 0;
    bit<32> rate_mbps = 0;
    bit<32> supply_per_time_unit = 0;
    bit<32> token_bytes = 0;
    bit<32> most_ramp_up_tokens = 0;

    // The threshold is in the target's unit of queue depth, the supply in 2^-16 bytes for each unit of its time.
    action set_bolt(bit<8> data_classes, bit<19> queue_threshold, bit<32> bytes_per_depth_unit, bit<32> port_rate_mbps,
                    bit<32> supply, bit<32> full_packet_bytes, bit<32> most_departures) {
        bolt_counter.count();
        classes = data_classes;
        threshold = queue_threshold;
        depth_unit_bytes = bytes_per_depth_unit;
        rate_mbps = port_rate_mbps;
        supply_per_time_unit = supply;
        token_bytes = full_packet_bytes;
        most_ramp_up_tokens = most_departures;
    }

    table bolt_ports {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { set_bolt; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = bolt_counter;
        size = 512;
    }

    apply {
        bolt_ports.apply();
        if (classes != 0) {
            bit<32> port = (bit<32>)standard_metadata.egress_port;
            bit<48> last = 0;
            bit<32> tokens = 0;
            bit<2> codepoint = ECN_NOT_ECT;
            if (hdr.ipv4.isValid()) {
                codepoint = hdr.ipv4.ecn;
            } else if (hdr.ipv6.isValid()) {
                codepoint = hdr.ipv6.ecn;
            }
            // Algorithm 3, at the end of the queue: while packets wait, supply equals what leaves; what idle time
            // leaves over counts, at most a packet's worth. No port takes 2^16 units of time for that.
            supply_times.read(last, port);
            supply_tokens.read(tokens, port);
            bit<48> elapsed = standard_metadata.egress_global_timestamp - last;
            bit<64> supply = (bit<64>)(elapsed > 0xFFFF ? 48w0xFFFF : elapsed) * (bit<64>)supply_per_time_unit;
            bit<32> most = token_bytes + standard_metadata.packet_length;
            tokens = tokens |+| supply[47:16];
            if (tokens > most) {
                tokens = most;
            }
            tokens = tokens |-| standard_metadata.packet_length;
            // Algorithm 1.
            bool is_of_class = ((classes >> (bit<8>)standard_metadata.priority) & 1) == 1;
            if (hdr.bth.isValid() && !hdr.deth.isValid() && codepoint != ECN_NOT_ECT && is_of_class) {
                meta.is_bolt = 1;
                if (standard_metadata.deq_qdepth > threshold) {
                    if (hdr.bth.fecn == 0) {
                        hdr.bth.fecn = 1;
                        meta.notifies = 1;
                        meta.notified_queue_bytes = (bit<32>)standard_metadata.deq_qdepth * depth_unit_bytes;
                        meta.notified_rate_mbps = rate_mbps;
                        notifications.count(port);
                        clone_preserving_field_list(CloneType.E2E, NOTIFICATION_SESSION, FIELDS_OF_NOTIFICATION);
                    }
                    meta.bolt_marks = 1;
                } else {
                    bit<32> departures = 0;
                    ramp_up_tokens.read(departures, port);
                    if ((hdr.bth.reserved1 & LAST_WINDOW) != 0) {
                        // A round trip from now it leaves its place to another packet. What is also in the first
                        // window has been here for no round trip. Neither asks for more.
                        if ((hdr.bth.reserved1 & FIRST_WINDOW) == 0 && departures < most_ramp_up_tokens) {
                            ramp_up_tokens.write(port, departures + 1);
                        }
                        meta.bolt_marks = 1;
                    } else if (codepoint != ECN_CE) {
                        if (departures != 0) {
                            ramp_up_tokens.write(port, departures - 1);
                        } else if (tokens >= token_bytes) {
                            tokens = tokens - token_bytes;
                        } else {
                            meta.bolt_marks = 1;
                        }
                    }
                }
            }
            supply_times.write(port, standard_metadata.egress_global_timestamp);
            supply_tokens.write(port, tokens);
        }
    }
}

// Egress of the clone of such a packet: it becomes the notification, from the packet's destination to its source.
control Notification(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    mac_t own_mac = 0;

    // The MAC is this switch's: the notification enters its ingress once more.
    action set_notifier(mac_t mac) {
        own_mac = mac;
    }

    table notifier {
        actions = { set_notifier; NoAction; }
        default_action = NoAction();
        size = 1;
    }

    action notify() {
        hdr.notification.setValid();
        hdr.notification.version = NOTIFICATION_VERSION;
        hdr.notification.queue_pair = hdr.bth.destination_qp;
        hdr.notification.reserved = 0;
        hdr.notification.psn = hdr.bth.psn;
        hdr.notification.queue_bytes = meta.notified_queue_bytes;
        hdr.notification.rate_mbps = meta.notified_rate_mbps;
        hdr.udp.destination = UDP_PORT_NOTIFICATION;
        hdr.udp.length = NOTIFICATION_UDP_LENGTH;
        hdr.udp.checksum = 0;
        hdr.ethernet.destination = own_mac;
        hdr.ethernet.source = own_mac;
        hdr.valiant_shim.setInvalid();
        hdr.int_shim.setInvalid();
        hdr.int_hops.pop_front(5);
        hdr.bth.setInvalid();
        hdr.reth.setInvalid();
        hdr.aeth.setInvalid();
        hdr.immediate.setInvalid();
        hdr.icrc.setInvalid();
#ifdef INT_MD
        INT_MD_REMOVE
#endif
    }

    action notify_over_ipv4() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        ipv4_address_t sender = hdr.ipv4.source;
        hdr.ipv4.source = hdr.ipv4.destination;
        hdr.ipv4.destination = sender;
        hdr.ipv4.dscp = DSCP_CONTROL;
        hdr.ipv4.ecn = ECN_NOT_ECT;
        hdr.ipv4.total_length = NOTIFICATION_UDP_LENGTH + IPV4_BYTES;
        hdr.ipv4.ttl = 64;
        truncate(NOTIFICATION_BYTES_IPV4);
    }

    action notify_over_ipv6() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        ipv6_address_t sender = hdr.ipv6.source;
        hdr.ipv6.source = hdr.ipv6.destination;
        hdr.ipv6.destination = sender;
        hdr.ipv6.dscp = DSCP_CONTROL;
        hdr.ipv6.ecn = ECN_NOT_ECT;
        hdr.ipv6.payload_length = NOTIFICATION_UDP_LENGTH;
        hdr.ipv6.hop_limit = 64;
        // UDP over IPv6 has a checksum (RFC 8200, section 8.1).
        hash(hdr.udp.checksum, HashAlgorithm.csum16, 16w0,
            { hdr.ipv6.source, hdr.ipv6.destination, 16w0, hdr.udp.length, 24w0, PROTOCOL_UDP,
              hdr.udp.source, hdr.udp.destination, hdr.udp.length, hdr.notification }, 32w0x10000);
        truncate(NOTIFICATION_BYTES_IPV6);
    }

    apply {
        notifier.apply();
        notify();
        if (hdr.ipv4.isValid()) {
            notify_over_ipv4();
        } else {
            notify_over_ipv6();
            if (hdr.udp.checksum == 0) {
                hdr.udp.checksum = 0xFFFF;
            }
        }
        recirculate_preserving_field_list(0);
    }
}

#endif
