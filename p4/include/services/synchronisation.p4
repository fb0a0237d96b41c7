// Barriers and counters of groups of hosts. Packet, states and rules: docs/spec/services.md.
//
// A barrier climbs the group's tree: a node passes it on when all its children have come, and its root releases it by
// multicast. A counter is in the root, which executes each request of a client once however often it is sent.
// Registers are touched in ingress only, where BMv2 has one thread.
#ifndef WEFT_SYNCHRONISATION_P4
#define WEFT_SYNCHRONISATION_P4

#include "../drops.p4"
#include "../headers.p4"
#include "icrc.p4"

// Of all groups together: barriers and counters (a cell is one of each), and requests that clients may have under way.
#define SERVICE_CELLS          1024
#define SERVICE_CLIENT_ENTRIES 16384

const bit<4> SERVICE_VERSION  = 1;
const bit<4> SERVICE_REQUEST  = 0;
const bit<4> SERVICE_ANSWER   = 1;
const bit<8> BARRIER          = 0;
const bit<8> FETCH_AND_ADD    = 1;
const bit<8> COMPARE_AND_SWAP = 2;

const bit<8> BARRIER_COLLECTING = 0;
const bit<8> BARRIER_SENT_UP    = 1;
const bit<8> BARRIER_DONE       = 2;

// What a neighbour has sent has not been routed (RFC 5082).
const bit<8> SERVICE_HOP_LIMIT = 255;

// What becomes of a packet that has passed all checks.
enum bit<8> ServiceOutcome {
    ABSORB    = 0,
    SEND_UP   = 1,
    MULTICAST = 2,
    REPLY     = 3, // to one port
    DROP      = 4
}

// Where answers go: 239.88.0.0/16 or ff15::ef58:0/112; the last 16 bits of address and MAC are the group's.
const bit<112> SERVICE_GROUP_IPV4     = 0xEF58;
const bit<112> SERVICE_GROUP_IPV6     = 0xFF1500000000000000000000EF58;
const bit<32>  SERVICE_GROUP_MAC_IPV4 = 0x01005E58;
const bit<32>  SERVICE_GROUP_MAC_IPV6 = 0x3333EF58;
#define SERVICE_GROUP(meta) (meta.ip_version == 4 ? SERVICE_GROUP_IPV4 : SERVICE_GROUP_IPV6)

struct service_group_t {
    bit<32>        queue_key;
    bit<16>        epoch;
    bit<4>         ip_version;
    bit<16>        cell_base;
    bit<16>        cell_count;
    bit<32>        full_bitmap;
    bit<1>         is_root;
    port_t         parent_port;
    mac_t          parent_mac;
    ipv6_address_t parent_address;  // IPv4 widened
    bit<16>        rank_at_parent;
    bit<16>        multicast_group;
    bit<16>        window_mask;     // requests that a client may have under way, less one
}

control Synchronisation(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                        inout DropReason drop_reason) {
    direct_counter(CounterType.packets_and_bytes) service_group_counter;
    direct_counter(CounterType.packets_and_bytes) service_member_counter;
    // Index: ServiceOutcome.
    counter(8, CounterType.packets_and_bytes) service_outcomes;

    register<bit<48>>(SERVICE_CELLS) barrier_tag;  // epoch, round
    register<bit<32>>(SERVICE_CELLS) barrier_bitmap;
    register<bit<8>>(SERVICE_CELLS)  barrier_state;
    register<bit<16>>(SERVICE_CELLS) counter_epoch;
    register<bit<64>>(SERVICE_CELLS) counter_value;
    register<bit<48>>(SERVICE_CLIENT_ENTRIES) executed_tag;  // epoch, sequence
    register<bit<64>>(SERVICE_CLIENT_ENTRIES) executed_answer;

    ServiceIcrc() icrc;

    service_group_t group = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    bit<32> child_bit = 0;
    bit<16> rank = 0;
    bit<1>  from_parent = 0;
    bit<1>  from_switch = 0;
    port_t  client_port = 0;
    bit<16> client_base = 0;
    ipv6_address_t destination = 0;
    ServiceOutcome outcome = ServiceOutcome.DROP;

    action set_group(bit<32> queue_key, bit<16> epoch, bit<4> ip_version, bit<16> cell_base, bit<16> cell_count,
                     bit<32> full_bitmap, bit<1> is_root, port_t parent_port, mac_t parent_mac,
                     ipv6_address_t parent_address, bit<16> rank_at_parent, bit<16> multicast_group,
                     bit<16> window_mask) {
        service_group_counter.count();
        group.queue_key = queue_key;
        group.epoch = epoch;
        group.ip_version = ip_version;
        group.cell_base = cell_base;
        group.cell_count = cell_count;
        group.full_bitmap = full_bitmap;
        group.is_root = is_root;
        group.parent_port = parent_port;
        group.parent_mac = parent_mac;
        group.parent_address = parent_address;
        group.rank_at_parent = rank_at_parent;
        group.multicast_group = multicast_group;
        group.window_mask = window_mask;
    }

    action foreign_group() {
        drop_reason = DropReason.SERVICE_FOREIGN_GROUP;
    }

    table service_group {
        key = { hdr.service.group_id: exact @name("group_id"); }
        actions = { set_group; @defaultonly foreign_group; }
        const default_action = foreign_group();
        counters = service_group_counter;
        size = 256;
    }

    action service_child(bit<16> rank_of_child, bit<32> bit_of_child, bit<1> is_switch) {
        service_member_counter.count();
        rank = rank_of_child;
        child_bit = bit_of_child;
        from_switch = is_switch;
    }

    action service_parent() {
        service_member_counter.count();
        from_parent = 1;
        from_switch = 1;
    }

    action foreign_service_port() {
        drop_reason = DropReason.SERVICE_FOREIGN_PORT;
    }

    table service_member {
        key = {
            hdr.service.group_id: exact @name("group_id");
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { service_child; service_parent; @defaultonly foreign_service_port; }
        const default_action = foreign_service_port();
        counters = service_member_counter;
        size = 4096;
    }

    // Towards which port a client is; in the root also where its requests are noted.
    action to_client(port_t port, bit<16> first_entry) {
        client_port = port;
        client_base = first_entry;
    }

    action no_client() {
        drop_reason = DropReason.SERVICE_WRONG_MEMBER;
    }

    table service_client {
        key = {
            hdr.service.group_id: exact @name("group_id");
            hdr.service.member: exact @name("client");
        }
        actions = { to_client; @defaultonly no_client; }
        const default_action = no_client();
        size = 16384;
    }

    action originate() {
        hdr.ethernet.source = meta.identity.mac;
        hdr.int_shim.setInvalid();
        hdr.int_hops[0].setInvalid();
        hdr.int_hops[1].setInvalid();
        hdr.int_hops[2].setInvalid();
        hdr.int_hops[3].setInvalid();
        hdr.int_hops[4].setInvalid();
        hdr.udp.checksum = 0;
        hdr.bth.psn = hdr.service.sequence[23:0];
        hdr.deth.source_qp = QP_SERVICE;
        meta.rewrite_icrc = 1;
    }

    action to_parent() {
        hdr.ethernet.destination = group.parent_mac;
        destination = group.parent_address;
        hdr.bth.destination_qp = QP_SERVICE;
        hdr.service.kind = SERVICE_REQUEST;
        standard_metadata.egress_spec = group.parent_port;
    }

    action to_answer() {
        bit<32> group_mac = meta.ip_version == 4 ? SERVICE_GROUP_MAC_IPV4 : SERVICE_GROUP_MAC_IPV6;
        hdr.ethernet.destination = group_mac ++ hdr.service.group_id;
        destination = SERVICE_GROUP(meta) ++ hdr.service.group_id;
        hdr.bth.destination_qp = QP_MULTICAST;
        hdr.service.kind = SERVICE_ANSWER;
    }

    action address_ipv4() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.ipv4.ecn = ECN_ECT0;
        hdr.ipv4.ttl = SERVICE_HOP_LIMIT;
        hdr.ipv4.source = meta.identity.ipv4;
        hdr.ipv4.destination = destination[31:0];
    }

    action address_ipv6() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        hdr.ipv6.ecn = ECN_ECT0;
        hdr.ipv6.hop_limit = SERVICE_HOP_LIMIT;
        hdr.ipv6.flow_label = (bit<20>)hdr.service.group_id;
        hdr.ipv6.source = meta.identity.ipv6;
        hdr.ipv6.destination = destination;
    }

    apply {
        bit<32> expected_icrc;
        icrc.apply(hdr, expected_icrc);
        bool is_request = hdr.service.kind == SERVICE_REQUEST && hdr.bth.destination_qp == QP_SERVICE &&
                          meta.flow.destination == meta.own_address;
        bool is_answer = hdr.service.kind == SERVICE_ANSWER && hdr.bth.destination_qp == QP_MULTICAST &&
                         meta.flow.destination == SERVICE_GROUP(meta) ++ hdr.service.group_id;
        bool is_whole = hdr.ipv4.isValid() ? hdr.ipv4.total_length == IPV4_LENGTH_SERVICE
                                           : hdr.ipv6.payload_length == UDP_LENGTH_SERVICE;
        bool is_barrier = hdr.service.operation == BARRIER;
        if (hdr.service.version != SERVICE_VERSION || hdr.service.flags != 0 ||
            hdr.service.operation > COMPARE_AND_SWAP || !is_whole || !(is_request || is_answer)) {
            drop_reason = DropReason.SERVICE_BAD_HEADER;
        } else if (hdr.icrc.value != expected_icrc) {
            drop_reason = DropReason.SERVICE_BAD_ICRC;
        } else {
            service_group.apply();
            if (drop_reason == DropReason.NONE) {
                service_member.apply();
            }
        }
        bit<32> cell = 0;
        if (drop_reason == DropReason.NONE) {
            cell = (bit<32>)group.cell_base + (bit<32>)hdr.service.cell;
            bit<8> hop_limit = hdr.ipv4.isValid() ? hdr.ipv4.ttl : hdr.ipv6.hop_limit;
            if (from_switch == 1 && hop_limit != SERVICE_HOP_LIMIT) {
                drop_reason = DropReason.SERVICE_FROM_AFAR;
            } else if (is_answer != (from_parent == 1)) {
                drop_reason = DropReason.SERVICE_UNEXPECTED_ANSWER;
            } else if (hdr.deth.queue_key != group.queue_key) {
                drop_reason = DropReason.SERVICE_WRONG_QKEY;
            } else if (meta.ip_version != group.ip_version) {
                drop_reason = DropReason.SERVICE_WRONG_IP_VERSION;
            } else if (hdr.service.epoch != group.epoch) {
                drop_reason = DropReason.SERVICE_WRONG_EPOCH;
            } else if (hdr.service.cell >= group.cell_count || cell >= SERVICE_CELLS) {
                drop_reason = DropReason.SERVICE_CELL_OUT_OF_RANGE;
            } else if (is_barrier && is_request && hdr.service.member != rank) {
                drop_reason = DropReason.SERVICE_WRONG_MEMBER;
            } else if (!is_barrier) {
                service_client.apply();
                // A client's requests come from where its answers go.
                if (drop_reason == DropReason.NONE && is_request && standard_metadata.ingress_port != client_port) {
                    drop_reason = DropReason.SERVICE_WRONG_MEMBER;
                }
            }
        }
        if (drop_reason == DropReason.NONE) {
            if (is_barrier) {
                bit<48> tag;
                bit<32> bitmap;
                bit<8> state;
                barrier_tag.read(tag, cell);
                barrier_bitmap.read(bitmap, cell);
                barrier_state.read(state, cell);
                // Nothing has come in this epoch: round 0 begins, as if the one before were done.
                if (tag[47:32] != group.epoch || bitmap == 0) {
                    tag = group.epoch ++ 32w0xFFFFFFFF;
                    bitmap = group.full_bitmap;
                    state = BARRIER_DONE;
                }
                bit<32> age = hdr.service.sequence - tag[31:0];
                if (is_answer) {
                    if (age == 0 && state == BARRIER_SENT_UP) {
                        state = BARRIER_DONE;
                        outcome = ServiceOutcome.MULTICAST;
                    } else if (age == 0 && state == BARRIER_DONE) {
                        drop_reason = DropReason.SERVICE_DUPLICATE;
                    } else if (age[31:31] == 1) {
                        drop_reason = DropReason.SERVICE_OLD_SEQUENCE;
                    } else {
                        drop_reason = DropReason.SERVICE_UNEXPECTED_ANSWER;
                    }
                } else if (age[31:31] == 1) {
                    // A later round has begun, so all have come to this one.
                    outcome = ServiceOutcome.REPLY;
                } else if (age > 1 || (age == 1 && state != BARRIER_DONE)) {
                    drop_reason = DropReason.SERVICE_EARLY_ROUND;
                } else if (age == 1 || (state == BARRIER_COLLECTING && (bitmap & child_bit) == 0)) {
                    if (age == 1) {
                        tag = group.epoch ++ hdr.service.sequence;
                        bitmap = 0;
                        state = BARRIER_COLLECTING;
                    }
                    bitmap = bitmap | child_bit;
                    outcome = ServiceOutcome.ABSORB;
                    if (bitmap == group.full_bitmap) {
                        if (group.is_root == 1) {
                            state = BARRIER_DONE;
                            outcome = ServiceOutcome.MULTICAST;
                        } else {
                            state = BARRIER_SENT_UP;
                            outcome = ServiceOutcome.SEND_UP;
                        }
                    }
                } else if (state == BARRIER_COLLECTING) {
                    drop_reason = DropReason.SERVICE_DUPLICATE;
                } else {
                    outcome = state == BARRIER_SENT_UP ? ServiceOutcome.SEND_UP : ServiceOutcome.REPLY;
                }
                if (drop_reason == DropReason.NONE) {
                    barrier_tag.write(cell, tag);
                    barrier_bitmap.write(cell, bitmap);
                    barrier_state.write(cell, state);
                    hdr.service.member = outcome == ServiceOutcome.SEND_UP ? group.rank_at_parent : 0;
                    hdr.service.operand = 0;
                    hdr.service.comparand = 0;
                    client_port = standard_metadata.ingress_port;
                }
            } else if (is_answer) {
                outcome = ServiceOutcome.REPLY;
            } else if (group.is_root == 0) {
                outcome = ServiceOutcome.SEND_UP;
            } else {
                bit<32> entry = (bit<32>)client_base + (bit<32>)(hdr.service.sequence[15:0] & group.window_mask);
                bit<48> executed;
                bit<64> answer;
                executed_tag.read(executed, entry);
                executed_answer.read(answer, entry);
                bit<32> age = hdr.service.sequence - executed[31:0];
                if (executed[47:32] != group.epoch || (age != 0 && age[31:31] == 0)) {
                    bit<16> written_in;
                    bit<64> value;
                    counter_epoch.read(written_in, cell);
                    counter_value.read(value, cell);
                    answer = written_in == group.epoch ? value : 0;
                    value = answer;
                    if (hdr.service.operation == FETCH_AND_ADD) {
                        value = answer + hdr.service.operand;
                    } else if (answer == hdr.service.comparand) {
                        value = hdr.service.operand;
                    }
                    counter_epoch.write(cell, group.epoch);
                    counter_value.write(cell, value);
                    executed_tag.write(entry, group.epoch ++ hdr.service.sequence);
                    executed_answer.write(entry, answer);
                    outcome = ServiceOutcome.REPLY;
                } else if (age == 0) {
                    // Executed before: its answer was lost.
                    outcome = ServiceOutcome.REPLY;
                } else {
                    drop_reason = DropReason.SERVICE_OLD_SEQUENCE;
                }
                hdr.service.operand = answer;
                hdr.service.comparand = 0;
            }
        }
        if (drop_reason == DropReason.NONE) {
            originate();
            if (outcome == ServiceOutcome.SEND_UP) {
                to_parent();
            } else if (outcome == ServiceOutcome.ABSORB) {
                mark_to_drop(standard_metadata);
            } else {
                to_answer();
                if (outcome == ServiceOutcome.MULTICAST) {
                    standard_metadata.mcast_grp = group.multicast_group;
                } else {
                    standard_metadata.egress_spec = client_port;
                }
            }
            if (hdr.ipv4.isValid()) {
                address_ipv4();
            } else {
                address_ipv6();
            }
            service_outcomes.count((bit<32>)(bit<8>)outcome);
        }
    }
}

#endif
