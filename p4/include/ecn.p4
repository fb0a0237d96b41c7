// ECN marking in egress, as DCQCN's congestion point does (SIGCOMM 2015, section 3.1): never below Kmin, with a
// probability that rises linearly to Pmax at Kmax, always above it.
//
// The depth that counts is the one that a packet leaves behind, as in switches with a shared buffer: the depth it met
// would be one queueing delay old when the mark leaves. set_ecn_at_enqueue takes that one, for comparisons.
#ifndef WEFT_ECN_P4
#define WEFT_ECN_P4

#include "headers.p4"

control EcnMarking(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) ecn_marked;
    direct_counter(CounterType.packets) ecn_counter;
    bit<1> mark = 0;

    // kmin and kmax in the target's unit of queue depth. P4 has no division at run time, so the slope comes as
    // Pmax * 2^32 / (kmax - kmin).
    action mark_by(bit<19> depth, bit<19> kmin, bit<19> kmax, bit<32> slope) {
        bit<16> chance;
        random(chance, 16w0, 16w0xFFFF);
        bit<64> probability = ((bit<64>)(depth |-| kmin) * (bit<64>)slope) >> 16;
        mark = (depth > kmax || (depth > kmin && (bit<64>)chance < probability)) ? 1w1 : 1w0;
    }

    action set_ecn(bit<19> kmin, bit<19> kmax, bit<32> slope) {
        ecn_counter.count();
        mark_by(standard_metadata.deq_qdepth, kmin, kmax, slope);
    }

    action set_ecn_at_enqueue(bit<19> kmin, bit<19> kmax, bit<32> slope) {
        ecn_counter.count();
        mark_by(standard_metadata.enq_qdepth, kmin, kmax, slope);
    }

    table ecn_thresholds {
        key = {
            standard_metadata.egress_port: exact @name("port");
            standard_metadata.priority: exact @name("class");
        }
        actions = { set_ecn; set_ecn_at_enqueue; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = ecn_counter;
        size = 4096;
    }

    apply {
        bit<2> codepoint = ECN_NOT_ECT;
        if (hdr.ipv4.isValid()) {
            codepoint = hdr.ipv4.ecn;
        } else if (hdr.ipv6.isValid()) {
            codepoint = hdr.ipv6.ecn;
        }
        if (codepoint != ECN_NOT_ECT && codepoint != ECN_CE) {
#ifdef BOLT
            if (meta.is_bolt == 1) {
                mark = meta.bolt_marks;
            } else
#endif
            {
                ecn_thresholds.apply();
            }
            if (mark == 1) {
                ecn_marked.count((bit<32>)standard_metadata.egress_port);
                if (hdr.ipv4.isValid()) {
                    hdr.ipv4.ecn = ECN_CE;
                } else {
                    hdr.ipv6.ecn = ECN_CE;
                }
            }
        }
    }
}

#endif
