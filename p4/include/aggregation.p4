// In-network aggregation: this switch as one node of the reduction trees of its jobs.
// The rules of the slots stand in docs/spec/aggregation.md. All slot state is touched in ingress only,
// where BMv2 has one thread.
#ifndef WEFT_AGGREGATION_P4
#define WEFT_AGGREGATION_P4

#include "drops.p4"
#include "headers.p4"
#include "icrc.p4"

// Slots of all jobs together, of two versions each. By default as many as take the memory of 4,096 slots of 64 lanes.
#ifndef SLOTS
#define SLOTS         (4096 * 64 / AGGREGATION_LANES)
#endif
#define SLOT_VERSIONS (2 * SLOTS)

// Most children of a node in a tree: the bits that a slot has for them.
#ifndef AGGREGATION_CHILDREN
#define AGGREGATION_CHILDREN 32
#endif

const bit<4> AGGREGATION_VERSION = 2;
const bit<4> KIND_CONTRIBUTION   = 0;
const bit<4> KIND_RESULT         = 1;
const bit<8> OPERATION_SUM       = 0;
const bit<8> OPERATION_MAX       = 1;
const bit<8> OPERATION_MIN       = 2;
const bit<8> OPERATION_AND       = 3;
const bit<8> OPERATION_OR        = 4;
const bit<8> OPERATION_XOR       = 5;

// What a lane holds: one integer, or two or four narrow ones.
const bit<8> DATA_TYPE_INT32     = 0;
const bit<8> DATA_TYPE_INT16     = 1;
const bit<8> DATA_TYPE_INT8      = 2;

// A sum has left the range of its type somewhere on the way.
const bit<8> FLAG_OVERFLOW       = 1;

// A result's lanes are for all workers.
const bit<16> DESTINATION_ALL = 0xFFFF;

// What a meter says of a packet that exceeds its rates.
const bit<2> COLOUR_RED = 2;

const bit<8> SLOT_COLLECTING = 0;
const bit<8> SLOT_SENT_UP    = 1;
const bit<8> SLOT_DONE       = 2;

// What switches send to each other in a tree has never been routed, which takes at least one from it (RFC 5082).
const bit<8> HOP_LIMIT_ADJACENT = 255;

// What becomes of a packet once the slot has been looked at.
enum bit<8> Outcome {
    ABSORB    = 0, // a contribution that waits for the others
    SEND_UP   = 1,
    MULTICAST = 2,
    REPLY     = 3, // the result, to the asking port alone
    DROP      = 4
}

// Where results go: 239.87.0.0/16 or ff15::ef57:0/112, and the group MACs of these (RFC 1112, section 6.4, and
// RFC 2464, section 7). The last 16 bits of address and MAC are the job's.
const bit<112> RESULT_GROUP_IPV4     = 0xEF57;
const bit<112> RESULT_GROUP_IPV6     = 0xFF1500000000000000000000EF57;
const bit<32>  RESULT_GROUP_MAC_IPV4 = 0x01005E57;
const bit<32>  RESULT_GROUP_MAC_IPV6 = 0x3333EF57;
#define RESULT_GROUP(meta) (meta.ip_version == 4 ? RESULT_GROUP_IPV4 : RESULT_GROUP_IPV6)

// Lane count and lengths of a packet whose lanes have come or gone.
control AggregationLengths(inout headers_t hdr) {
    apply {
        hdr.aggregation.lane_count = hdr.lanes.isValid() ? 16w0 + AGGREGATION_LANES : 0;
        hdr.udp.length = hdr.lanes.isValid() ? UDP_LENGTH_LANES : UDP_LENGTH_HEADER_ONLY;
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.total_length = IPV4_BYTES + hdr.udp.length;
        } else {
            hdr.ipv6.payload_length = hdr.udp.length;
        }
    }
}

struct job_t {
    bit<32>        queue_key;
    bit<16>        epoch;
    bit<4>         ip_version;
    bit<16>        slot_base;
    bit<16>        slot_count;
    bit<AGGREGATION_CHILDREN> full_bitmap;
    bit<1>         is_root;
    port_t         parent_port;
    mac_t          parent_mac;
    ipv6_address_t parent_address;  // IPv4 widened
    bit<16>        rank_at_parent;
    bit<16>        multicast_group;
    bit<16>        worker_count;    // of the whole job
}

control Aggregation(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                    inout DropReason drop_reason) {
    direct_counter(CounterType.packets_and_bytes) job_counter;
    direct_counter(CounterType.packets_and_bytes) member_counter;
    // Holds a worker to what its job is promised of its link. Without rates, as of jobs without a promise, all is green.
    direct_meter<bit<2>>(MeterType.bytes) member_meter;
    // Index: Outcome. What the slots did with the packets that passed all checks.
    counter(8, CounterType.packets_and_bytes) aggregation_outcomes;

    register<bit<48>>(SLOT_VERSIONS) slot_tag;      // epoch, round
    register<bit<AGGREGATION_CHILDREN>>(SLOT_VERSIONS) slot_bitmap;   // contributors seen
    register<bit<8>>(SLOT_VERSIONS)  slot_state;
    register<bit<8>>(SLOT_VERSIONS)  slot_has_lanes; // 0: only headers have come
    register<bit<32>>(SLOT_VERSIONS) slot_request;   // operation, data type, destination
    register<bit<8>>(SLOT_VERSIONS)  slot_flags;     // of the lanes
    register<bit<1>>(SLOT_VERSIONS)  slot_marked;    // a contribution, or the result, met congestion
#define LANE_REGISTER(n) register<bit<32>>(SLOT_VERSIONS) slot_lane##n;
    FOR_EACH_LANE(LANE_REGISTER)

    AggregationIcrc() icrc;
    AggregationLengths() lengths;

    job_t   job = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    bit<AGGREGATION_CHILDREN> worker_bit = 0;
    bit<16> rank = 0;
    bit<1>  from_parent = 0;
    bit<1>  from_switch = 0;
    bit<32> slot = 0;
    bit<32> index = 0;
    // Lanes become (packet's & keep) + (slot's & combine).
    bit<32> keep = 0;
    bit<32> combine = 0;
    bit<32> stored = 0;
    bit<32> added = 0;
    bit<32> overflow = 0;
    bit<32> larger = 0;
    // The sign bits of a lane's integers, and how far each is from its integer's lowest bit.
    bit<32> signs = 0;
    bit<8>  sign_place = 0;
    bit<32> order = 0;
    bit<32> both = 0;
    bit<32> either = 0;
    ipv6_address_t destination = 0;

    action set_job(bit<32> queue_key, bit<16> epoch, bit<4> ip_version, bit<16> slot_base, bit<16> slot_count,
                   bit<AGGREGATION_CHILDREN> full_bitmap, bit<1> is_root, port_t parent_port, mac_t parent_mac,
                   ipv6_address_t parent_address, bit<16> rank_at_parent, bit<16> multicast_group,
                   bit<16> worker_count) {
        job_counter.count();
        job.queue_key = queue_key;
        job.epoch = epoch;
        job.ip_version = ip_version;
        job.slot_base = slot_base;
        job.slot_count = slot_count;
        job.full_bitmap = full_bitmap;
        job.is_root = is_root;
        job.parent_port = parent_port;
        job.parent_mac = parent_mac;
        job.parent_address = parent_address;
        job.rank_at_parent = rank_at_parent;
        job.multicast_group = multicast_group;
        job.worker_count = worker_count;
    }

    action foreign_job() {
        drop_reason = DropReason.AGGREGATION_FOREIGN_JOB;
    }

    table aggregation_job {
        key = { hdr.aggregation.job_id: exact @name("job_id"); }
        actions = { set_job; @defaultonly foreign_job; }
        const default_action = foreign_job();
        counters = job_counter;
        size = 1024;
    }

    action child(bit<16> child_rank, bit<AGGREGATION_CHILDREN> child_bit, bit<1> is_switch) {
        member_counter.count();
        member_meter.read(meta.colour);
        rank = child_rank;
        worker_bit = child_bit;
        from_switch = is_switch;
    }

    action parent() {
        member_counter.count();
        from_parent = 1;
        from_switch = 1;
    }

    action foreign_port() {
        drop_reason = DropReason.AGGREGATION_FOREIGN_PORT;
    }

    table aggregation_member {
        key = {
            hdr.aggregation.job_id: exact @name("job_id");
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { child; parent; @defaultonly foreign_port; }
        const default_action = foreign_port();
        counters = member_counter;
        meters = member_meter;
        size = 16384;
    }

    // Adds each integer by itself: without sign bits no carry leaves it, and the sign is the carry's and both signs'
    // sum. A sum has left its range if it differs in sign from two terms of the same sign.
#define LANE_SUM(n) \
        slot_lane##n.read(stored, index); \
        added = hdr.lanes.lane##n & keep; \
        stored = stored & combine; \
        hdr.lanes.lane##n = ((added & ~signs) + (stored & ~signs)) ^ ((added ^ stored) & signs); \
        overflow = overflow | (~(added ^ stored) & (added ^ hdr.lanes.lane##n)); \
        slot_lane##n.write(index, hdr.lanes.lane##n);
    action apply_sum() {
        FOR_EACH_LANE(LANE_SUM)
    }

    // The larger in an unsigned order, into which `order` turns the integers' own, or for minima its opposite. Where
    // the stored one is at least as large, its sign bit is set in `larger`: by the difference without the sign bits,
    // which borrows from the sign's place alone, if the signs are the same. Twice the sign less the lowest bit fills an
    // integer. Variables are read seldom: p4c writes their expressions in place of them.
#define LANE_EXTREME(n) \
        slot_lane##n.read(stored, index); \
        added = hdr.lanes.lane##n ^ order; \
        stored = stored ^ order; \
        larger = ((stored & ~added) | (~(stored ^ added) & ((stored | signs) - (added & ~signs)))) & signs; \
        hdr.lanes.lane##n = hdr.lanes.lane##n ^ ((stored ^ added) & ((larger << 1) - (larger >> sign_place))); \
        slot_lane##n.write(index, hdr.lanes.lane##n);
    action apply_extreme() {
        order = hdr.aggregation.operation == OPERATION_MIN ? ~signs : signs;
        FOR_EACH_LANE(LANE_EXTREME)
    }

    // Exclusive or, where `either`, and and, where `both`; or is where either.
#define LANE_BITS(n) \
        slot_lane##n.read(stored, index); \
        hdr.lanes.lane##n = ((hdr.lanes.lane##n ^ stored) & either) | (hdr.lanes.lane##n & stored & both); \
        slot_lane##n.write(index, hdr.lanes.lane##n);
    action apply_bits() {
        bit<8> operation = hdr.aggregation.operation;
        either = operation == OPERATION_OR || operation == OPERATION_XOR ? 32w0xFFFFFFFF : 0;
        both = operation == OPERATION_OR || operation == OPERATION_AND ? 32w0xFFFFFFFF : 0;
        FOR_EACH_LANE(LANE_BITS)
    }

    // A packet that this switch made: its own addresses, and nothing of the road the last contribution came.
    action originate() {
        hdr.ethernet.source = meta.identity.mac;
        hdr.int_shim.setInvalid();
        hdr.int_hops[0].setInvalid();
        hdr.int_hops[1].setInvalid();
        hdr.int_hops[2].setInvalid();
        hdr.int_hops[3].setInvalid();
        hdr.int_hops[4].setInvalid();
        hdr.udp.checksum = 0;
        hdr.bth.psn = hdr.aggregation.round[23:0];
        hdr.deth.source_qp = QP_AGGREGATION;
        meta.rewrite_icrc = 1;
    }

    action to_parent() {
        hdr.ethernet.destination = job.parent_mac;
        destination = job.parent_address;
        hdr.bth.destination_qp = QP_AGGREGATION;
        hdr.aggregation.kind = KIND_CONTRIBUTION;
        hdr.aggregation.rank = job.rank_at_parent;
        standard_metadata.egress_spec = job.parent_port;
    }

    action to_result() {
        bit<32> group_mac = meta.ip_version == 4 ? RESULT_GROUP_MAC_IPV4 : RESULT_GROUP_MAC_IPV6;
        hdr.ethernet.destination = group_mac ++ hdr.aggregation.job_id;
        destination = RESULT_GROUP(meta) ++ hdr.aggregation.job_id;
        hdr.bth.destination_qp = QP_MULTICAST;
        hdr.aggregation.kind = KIND_RESULT;
        hdr.aggregation.rank = 0;
    }

    action address_ipv4() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.ipv4.ttl = HOP_LIMIT_ADJACENT;
        hdr.ipv4.source = meta.identity.ipv4;
        hdr.ipv4.destination = destination[31:0];
    }

    // A job's packets are one flow wherever they go, so the job labels them (RFC 6437, section 3).
    action address_ipv6() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        hdr.ipv6.hop_limit = HOP_LIMIT_ADJACENT;
        hdr.ipv6.flow_label = (bit<20>)hdr.aggregation.job_id;
        hdr.ipv6.source = meta.identity.ipv6;
        hdr.ipv6.destination = destination;
    }

    apply {
        bit<32> expected_icrc;
        icrc.apply(hdr, expected_icrc);
        // What goes up is addressed to this switch, what comes down to the job's group, each with its queue pair.
        bool is_contribution = hdr.aggregation.kind == KIND_CONTRIBUTION &&
                               hdr.bth.destination_qp == QP_AGGREGATION &&
                               meta.flow.destination == meta.own_address;
        bool is_result = hdr.aggregation.kind == KIND_RESULT && hdr.bth.destination_qp == QP_MULTICAST &&
                         meta.flow.destination == RESULT_GROUP(meta) ++ hdr.aggregation.job_id;
        bool is_whole = hdr.ipv4.isValid() ? hdr.ipv4.total_length == IPV4_BYTES + hdr.udp.length
                                           : hdr.ipv6.payload_length == hdr.udp.length;
        if (hdr.aggregation.version != AGGREGATION_VERSION ||
            hdr.aggregation.lane_count != (hdr.lanes.isValid() ? 16w0 + AGGREGATION_LANES : 0) ||
            hdr.aggregation.data_type > DATA_TYPE_INT8 || (hdr.aggregation.flags & ~FLAG_OVERFLOW) != 0 ||
            hdr.aggregation.operation > OPERATION_XOR || !is_whole || !(is_contribution || is_result)) {
            drop_reason = DropReason.AGGREGATION_BAD_HEADER;
        } else if (hdr.icrc.value != expected_icrc) {
            drop_reason = DropReason.AGGREGATION_BAD_ICRC;
        } else {
            aggregation_job.apply();
            if (drop_reason == DropReason.NONE) {
                aggregation_member.apply();
            }
            if (drop_reason == DropReason.NONE && meta.colour == COLOUR_RED) {
                drop_reason = DropReason.AGGREGATION_OVER_RATE;
            }
        }
        if (drop_reason == DropReason.NONE) {
            slot = (bit<32>)job.slot_base + (bit<32>)hdr.aggregation.slot;
            bit<8> hop_limit = hdr.ipv4.isValid() ? hdr.ipv4.ttl : hdr.ipv6.hop_limit;
            if (from_switch == 1 && hop_limit != HOP_LIMIT_ADJACENT) {
                drop_reason = DropReason.AGGREGATION_FROM_AFAR;
            } else if (hdr.deth.queue_key != job.queue_key) {
                drop_reason = DropReason.AGGREGATION_WRONG_QKEY;
            } else if (meta.ip_version != job.ip_version) {
                drop_reason = DropReason.AGGREGATION_WRONG_IP_VERSION;
            } else if (hdr.aggregation.epoch != job.epoch) {
                drop_reason = DropReason.AGGREGATION_WRONG_EPOCH;
            } else if (hdr.aggregation.slot >= job.slot_count || slot >= SLOTS) {
                drop_reason = DropReason.AGGREGATION_SLOT_OUT_OF_RANGE;
            } else if (hdr.aggregation.rank != rank) {
                drop_reason = DropReason.AGGREGATION_WRONG_RANK;
            } else if (hdr.aggregation.destination != DESTINATION_ALL &&
                       hdr.aggregation.destination >= job.worker_count) {
                drop_reason = DropReason.AGGREGATION_WRONG_DESTINATION;
            }
        }
        if (drop_reason == DropReason.NONE) {
            index = (slot << 1) | (hdr.aggregation.round & 1);
            bit<48> tag;
            bit<AGGREGATION_CHILDREN> bitmap;
            bit<8> state;
            bit<8> has_lanes;
            bit<8> flags;
            bit<32> slots_request;
            slot_tag.read(tag, index);
            slot_bitmap.read(bitmap, index);
            slot_state.read(state, index);
            slot_has_lanes.read(has_lanes, index);
            slot_flags.read(flags, index);
            slot_request.read(slots_request, index);
            bit<8> brings_lanes = hdr.lanes.isValid() ? 8w1 : 0;
            bit<32> request = hdr.aggregation.operation ++ hdr.aggregation.data_type ++ hdr.aggregation.destination;
            // What a switch makes carries the marks of what it was made from.
            bit<1> marked;
            slot_marked.read(marked, index);
            bit<2> codepoint = hdr.ipv4.isValid() ? hdr.ipv4.ecn : hdr.ipv6.ecn;
            bit<32> age = hdr.aggregation.round - tag[31:0];
            bool same_epoch = tag[47:32] == job.epoch;
            bool same_round = same_epoch && age == 0;
            // Nothing ever came for an empty bitmap: the registers' first content is no slot of epoch 0.
            bool newer = !same_epoch || bitmap == 0 || (age != 0 && age[31:31] == 0);
            Outcome outcome = Outcome.DROP;

            if (from_parent == 1) {
                if (is_result && same_round && state == SLOT_SENT_UP && request == slots_request) {
                    keep = 0xFFFFFFFF;
                    has_lanes = brings_lanes;
                    state = SLOT_DONE;
                    outcome = Outcome.MULTICAST;
                } else if (is_result && same_round && state == SLOT_DONE && request == slots_request) {
                    // The parent answers what was sent again; the children have this result.
                    drop_reason = DropReason.AGGREGATION_DUPLICATE;
                } else if (is_result && !newer && !same_round) {
                    drop_reason = DropReason.AGGREGATION_OLD_ROUND;
                } else {
                    drop_reason = DropReason.AGGREGATION_UNEXPECTED_RESULT;
                }
            } else if (is_result) {
                drop_reason = DropReason.AGGREGATION_UNEXPECTED_RESULT;
            } else if (!newer && same_round && request[31:16] != slots_request[31:16]) {
                drop_reason = DropReason.AGGREGATION_WRONG_OPERATION;
            } else if (!newer && same_round && request != slots_request) {
                drop_reason = DropReason.AGGREGATION_WRONG_DESTINATION;
            } else if (newer || (same_round && state == SLOT_COLLECTING && (bitmap & worker_bit) == 0)) {
                if (brings_lanes == 1) {
                    keep = 0xFFFFFFFF;
                }
                if (newer) {
                    bitmap = worker_bit;
                    state = SLOT_COLLECTING;
                    has_lanes = brings_lanes;
                } else {
                    bitmap = bitmap | worker_bit;
                    if (has_lanes == 1) {
                        combine = 0xFFFFFFFF;
                    }
                    has_lanes = has_lanes | brings_lanes;
                }
                outcome = Outcome.ABSORB;
                if (bitmap == job.full_bitmap) {
                    if (job.is_root == 1) {
                        state = SLOT_DONE;
                        outcome = Outcome.MULTICAST;
                    } else {
                        state = SLOT_SENT_UP;
                        outcome = Outcome.SEND_UP;
                    }
                }
            } else if (!same_round) {
                drop_reason = DropReason.AGGREGATION_OLD_ROUND;
            } else if (state == SLOT_COLLECTING) {
                drop_reason = DropReason.AGGREGATION_DUPLICATE;
            } else {
                combine = 0xFFFFFFFF;
                outcome = state == SLOT_SENT_UP ? Outcome.SEND_UP : Outcome.REPLY;
            }

            if (outcome != Outcome.DROP) {
                slot_tag.write(index, job.epoch ++ hdr.aggregation.round);
                slot_bitmap.write(index, bitmap);
                slot_state.write(index, state);
                if (newer || from_parent == 1) {
                    marked = 0;
                }
                marked = marked | (codepoint == ECN_CE ? 1w1 : 1w0);
                slot_marked.write(index, marked);
                slot_has_lanes.write(index, has_lanes);
                slot_request.write(index, request);
                if (has_lanes == 1 && brings_lanes == 0) {
                    hdr.lanes.setValid();
                }
                if (hdr.aggregation.data_type == DATA_TYPE_INT32) {
                    signs = 0x80000000;
                    sign_place = 31;
                } else if (hdr.aggregation.data_type == DATA_TYPE_INT16) {
                    signs = 0x80008000;
                    sign_place = 15;
                } else {
                    signs = 0x80808080;
                    sign_place = 7;
                }
                if (has_lanes == 0) {
                    hdr.lanes.setInvalid();
                } else if (keep == 0 || combine == 0 || hdr.aggregation.operation == OPERATION_SUM) {
                    apply_sum();
                } else if (hdr.aggregation.operation == OPERATION_MAX ||
                           hdr.aggregation.operation == OPERATION_MIN) {
                    apply_extreme();
                } else {
                    apply_bits();
                }
                flags = (hdr.aggregation.flags & keep[7:0]) | (flags & combine[7:0]);
                if ((overflow & signs) != 0) {
                    flags = flags | FLAG_OVERFLOW;
                }
                slot_flags.write(index, flags);
                hdr.aggregation.flags = flags;
                originate();
                if (outcome == Outcome.SEND_UP) {
                    to_parent();
                } else if (outcome == Outcome.ABSORB) {
                    mark_to_drop(standard_metadata);
                } else {
                    to_result();
                    if (outcome == Outcome.MULTICAST) {
                        standard_metadata.mcast_grp = job.multicast_group;
                    } else {
                        standard_metadata.egress_spec = standard_metadata.ingress_port;
                    }
                }
                // ECT(0) is 2, CE is 3 (RFC 3168, section 5).
                if (hdr.ipv4.isValid()) {
                    address_ipv4();
                    hdr.ipv4.ecn = ECN_ECT0 | (bit<2>)marked;
                } else {
                    address_ipv6();
                    hdr.ipv6.ecn = ECN_ECT0 | (bit<2>)marked;
                }
                lengths.apply(hdr);
            }
            aggregation_outcomes.count((bit<32>)(bit<8>)outcome);
        }
    }
}

// In egress, on each copy of a result: the lanes stay only on the way to their destination. The others get the header,
// which confirms the round.
control AggregationCopies(inout headers_t hdr, in standard_metadata_t standard_metadata) {
    AggregationLengths() lengths;
    bit<16> first = 0xFFFF; // of the workers that a port leads to; none unless the table says so
    bit<16> last = 0;

    action leads_to(bit<16> first_worker, bit<16> last_worker) {
        first = first_worker;
        last = last_worker;
    }

    table aggregation_child {
        key = {
            hdr.aggregation.job_id: exact @name("job_id");
            standard_metadata.egress_port: exact @name("port");
        }
        actions = { leads_to; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    apply {
        if (hdr.aggregation.kind == KIND_RESULT && hdr.lanes.isValid() &&
            hdr.aggregation.destination != DESTINATION_ALL) {
            aggregation_child.apply();
            if (hdr.aggregation.destination < first || hdr.aggregation.destination > last) {
                hdr.lanes.setInvalid();
                lengths.apply(hdr);
            }
        }
    }
}

#endif
