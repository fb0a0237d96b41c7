// What a packet's choice among the members of its ECMP group is made by, other than its flow's hash alone.
//
// The selector takes the member by meta.ecmp_selection, modulo the number of members whose links are up, each counted
// as often as its weight. So no mode below can choose a port that has lost its link, and none divides.
#ifndef WEFT_LOAD_BALANCING_P4
#define WEFT_LOAD_BALANCING_P4

#include "headers.p4"

const bit<32> FLOWLETS = 4096; // flows whose hashes agree in these bits share one's state

enum bit<3> LoadBalancingMode {
    FLOW        = 0,
    QUEUE_PAIR  = 1,
    FLOWLET     = 2,
    ROUND_ROBIN = 3,
    RANDOM      = 4,
    ADAPTIVE    = 5
}

// What a flow's packets select by until it chooses again; of the program, because an adaptive choice ends elsewhere.
register<bit<32>>(FLOWLETS) flowlet_choices;

control LoadBalancing(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata,
                      out adaptive_t adaptive) {
    register<bit<48>>(FLOWLETS) flowlet_times;
    LoadBalancingMode mode = LoadBalancingMode.FLOW;
    bit<48> gap = 0;

    action hash_flow_only() {
        mode = LoadBalancingMode.FLOW;
    }

    action hash_queue_pair() {
        mode = LoadBalancingMode.QUEUE_PAIR;
    }

    // Times in the target's unit.
    action switch_flowlets(bit<48> flowlet_gap) {
        mode = LoadBalancingMode.FLOWLET;
        gap = flowlet_gap;
    }

    // The next member for each packet of a flow. One turn for all flows of a group would leave to chance how even each
    // of them is spread, and so how even the links beyond are filled (Cao et al., CoNEXT 2013).
    action spray_in_turn() {
        mode = LoadBalancingMode.ROUND_ROBIN;
    }

    action spray_at_random() {
        mode = LoadBalancingMode.RANDOM;
    }

    // Without a gap every packet chooses, and each takes the flow's next member unless another is better. The hysteresis
    // is in the target's unit of queue depth.
    action adapt(bit<48> flowlet_gap, bit<19> hysteresis, bit<48> lifetime) {
        mode = LoadBalancingMode.ADAPTIVE;
        gap = flowlet_gap;
        adaptive.hysteresis = hysteresis;
        adaptive.lifetime = lifetime;
    }

    table load_balancing {
        key = { meta.ecmp_group: exact @name("group"); }
        actions = {
            hash_flow_only; hash_queue_pair; switch_flowlets; spray_in_turn; spray_at_random; adapt;
        }
        default_action = hash_flow_only();
        size = 1024;
    }

    apply {
        bit<32> drawn = 0;
        bit<32> choice = 0;
        bit<48> last = 0;
        adaptive = { 0, 0, 0, 0, 0, 0 };
        load_balancing.apply();
        if (mode == LoadBalancingMode.QUEUE_PAIR) {
            // Mixed once more: by CRC, or as they are, the numbers of queue pairs would choose alike on all switches.
            if (hdr.bth.isValid()) {
                meta.ecmp_hash = meta.ecmp_hash ^ (bit<32>)hdr.bth.destination_qp;
                MIX_HASH(meta.ecmp_hash)
                meta.ecmp_selection = meta.ecmp_hash;
            }
        } else if (mode == LoadBalancingMode.RANDOM) {
            random(meta.ecmp_selection, 32w0, 32w0xFFFFFFFF);
        } else if (mode == LoadBalancingMode.ROUND_ROBIN) {
            bit<32> flow = meta.ecmp_hash & (FLOWLETS - 1);
            flowlet_choices.read(choice, flow);
            flowlet_choices.write(flow, choice + 1);
            meta.ecmp_selection = choice + meta.ecmp_hash;
        } else if (mode != LoadBalancingMode.FLOW) {
            bit<32> flowlet = meta.ecmp_hash & (FLOWLETS - 1);
            flowlet_times.read(last, flowlet);
            flowlet_times.write(flowlet, standard_metadata.ingress_global_timestamp);
            flowlet_choices.read(choice, flowlet);
            bool is_new = last == 0 || standard_metadata.ingress_global_timestamp - last >= gap;
            if (last == 0) {
                choice = meta.ecmp_hash;
            } else if (is_new && mode == LoadBalancingMode.FLOWLET) {
                random(choice, 32w0, 32w0xFFFFFFFF);
            } else if (gap == 0) {
                choice = choice + 1;
            }
            if (is_new && mode == LoadBalancingMode.ADAPTIVE) {
                adaptive.chooses = 1;
                adaptive.takes_turns = gap == 0 ? 1w1 : 1w0;
                adaptive.flowlet = flowlet;
                random(drawn, 32w0, 32w0xFFFFFFFF);
                adaptive.drawn = drawn;
            } else if (is_new) {
                flowlet_choices.write(flowlet, choice);
            }
            meta.ecmp_selection = choice;
        }
    }
}

#endif
