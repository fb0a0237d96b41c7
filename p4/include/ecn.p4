// ECN marking in egress, as DCQCN's congestion point does (SIGCOMM 2015, section 3.1): never below Kmin, with a
// probability that rises linearly to Pmax at Kmax, always above it.
#ifndef WEFT_ECN_P4
#define WEFT_ECN_P4

#include "headers.p4"

control EcnMarking(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) ecn_marked;
    direct_counter(CounterType.packets) ecn_counter;
    bit<1> mark = 0;

    // kmin and kmax in the target's unit of queue depth. P4 has no division at run time, so the slope comes as
    // Pmax * 2^32 / (kmax - kmin).
    action set_ecn(bit<19> kmin, bit<19> kmax, bit<32> slope) {
        ecn_counter.count();
        bit<16> chance;
        random(chance, 16w0, 16w0xFFFF);
        bit<64> probability = ((bit<64>)(standard_metadata.enq_qdepth |-| kmin) * (bit<64>)slope) >> 16;
        mark = (standard_metadata.enq_qdepth > kmax ||
                (standard_metadata.enq_qdepth > kmin && (bit<64>)chance < probability)) ? 1w1 : 1w0;
    }

    table ecn_thresholds {
        key = {
            standard_metadata.egress_port: exact @name("port");
            standard_metadata.priority: exact @name("class");
        }
        actions = { set_ecn; @defaultonly NoAction; }
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
            ecn_thresholds.apply();
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
