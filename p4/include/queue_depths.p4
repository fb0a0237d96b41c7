// The depth that each queue had when it last sent, left by egress where ingress reads it: adaptive routing compares the
// queues of several ports before it takes one. Queues are a port's classes.
//
// A depth is as old as the last packet that left its queue. A queue that holds packets is at most one serialisation
// behind, unless flow control holds it back; one that is empty said so when it became empty. How old the depths were
// that choices relied on is counted by powers of two, in the target's unit of time.
#ifndef WEFT_QUEUE_DEPTHS_P4
#define WEFT_QUEUE_DEPTHS_P4

#include "headers.p4"

const bit<32> QUEUES = 4096; // eight classes of each of 512 ports
#define QUEUE_OF(port, class) (bit<32>)(port ++ class)

// Of the program, not of a control: ingress reads what egress writes.
register<bit<19>>(QUEUES) queue_depths;
register<bit<48>>(QUEUES) queue_depth_times;

control QueueDepthReport(in standard_metadata_t standard_metadata) {
    apply {
        bit<32> queue = QUEUE_OF(standard_metadata.egress_port, standard_metadata.priority);
        queue_depths.write(queue, standard_metadata.deq_qdepth);
        queue_depth_times.write(queue, standard_metadata.egress_global_timestamp);
    }
}

// A depth older than `lifetime` counts as 0: its queue was emptied in another way, as when its link failed.
control QueueDepth(in standard_metadata_t standard_metadata, in bit<48> lifetime, out bit<19> depth, out bit<48> age) {
    apply {
        bit<32> queue = QUEUE_OF(standard_metadata.egress_spec, standard_metadata.priority);
        bit<48> written = 0;
        depth = 0;
        queue_depths.read(depth, queue);
        queue_depth_times.read(written, queue);
        age = standard_metadata.ingress_global_timestamp - written;
        if (age > lifetime) {
            depth = 0;
        }
    }
}

control QueueDepthAges(in bit<19> depth, in bit<48> age) {
    direct_counter(CounterType.packets) age_counter;
    bit<1> is_queued = depth != 0 ? 1w1 : 1w0;

    action count_age() {
        age_counter.count();
    }

// From 2^n units of time to below 2^(n + 1).
#define AGE(queued, n) (queued, 48w1 << n &&& 48w0xFFFFFFFFFFFF ^ ((48w1 << n) - 1)): count_age();
#define AGES(queued) \
    (queued, 48w0 &&& 48w0xFFFFFFFFFFFF): count_age(); \
    AGE(queued, 0) AGE(queued, 1) AGE(queued, 2) AGE(queued, 3) AGE(queued, 4) AGE(queued, 5) AGE(queued, 6) \
    AGE(queued, 7) AGE(queued, 8) AGE(queued, 9) AGE(queued, 10) AGE(queued, 11) AGE(queued, 12) AGE(queued, 13) \
    AGE(queued, 14) AGE(queued, 15) AGE(queued, 16) AGE(queued, 17) AGE(queued, 18) AGE(queued, 19) AGE(queued, 20) \
    AGE(queued, 21) AGE(queued, 22) AGE(queued, 23) AGE(queued, 24) AGE(queued, 25) AGE(queued, 26) AGE(queued, 27) \
    AGE(queued, 28) AGE(queued, 29) AGE(queued, 30) AGE(queued, 31)

    table queue_depth_ages {
        key = {
            is_queued: exact @name("queued");
            age: lpm @name("age");
        }
        actions = { count_age; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            AGES(0)
            AGES(1)
        }
        counters = age_counter;
    }

    apply {
        queue_depth_ages.apply();
    }
}

#endif
