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
// The sum of these over a port's classes, where a choice is between ports whatever the class (valiant.p4).
register<bit<32>>(512) port_depths;
register<bit<48>>(512) port_depth_times;

control QueueDepthReport(in standard_metadata_t standard_metadata, in bit<1> of_ports_too) {
    apply {
        bit<32> queue = QUEUE_OF(standard_metadata.egress_port, standard_metadata.priority);
        if (of_ports_too == 1) {
            bit<32> port = (bit<32>)standard_metadata.egress_port;
            bit<19> before = 0;
            bit<32> sum = 0;
            queue_depths.read(before, queue);
            port_depths.read(sum, port);
            port_depths.write(port, sum - (bit<32>)before + (bit<32>)standard_metadata.deq_qdepth);
            port_depth_times.write(port, standard_metadata.egress_global_timestamp);
        }
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

control PortDepth(in standard_metadata_t standard_metadata, in port_t port, in bit<48> lifetime, out bit<32> depth) {
    apply {
        bit<48> written = 0;
        depth = 0;
        port_depths.read(depth, (bit<32>)port);
        port_depth_times.read(written, (bit<32>)port);
        if (standard_metadata.ingress_global_timestamp - written > lifetime) {
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

// From 2^n units of time to below 2^(n + 1), of queues that hold packets.
#define AGE(n) (1, 48w1 << n &&& 48w0xFFFFFFFFFFFF ^ ((48w1 << n) - 1)): count_age();
#define AGES \
    (1, 48w0 &&& 48w0xFFFFFFFFFFFF): count_age(); \
    AGE(0) AGE(1) AGE(2) AGE(3) AGE(4) AGE(5) AGE(6) AGE(7) AGE(8) AGE(9) AGE(10) AGE(11) AGE(12) AGE(13) AGE(14) \
    AGE(15) AGE(16) AGE(17) AGE(18) AGE(19) AGE(20) AGE(21) AGE(22) AGE(23) AGE(24) AGE(25) AGE(26) AGE(27) AGE(28) \
    AGE(29) AGE(30) AGE(31)

    table queue_depth_ages {
        key = {
            is_queued: exact @name("queued");
            age: lpm @name("age");
        }
        actions = { count_age; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            AGES
            (0, 48w0 &&& 48w0): count_age(); // empty queues, however long ago
        }
        counters = age_counter;
    }

    apply {
        queue_depth_ages.apply();
    }
}

#endif
