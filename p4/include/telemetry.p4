// HPCC's INT (SIGCOMM 2019, section 4.1): every hop stamps rate, time, bytes sent and queue length into the room
// that the sender left in the shim.
#ifndef WEFT_TELEMETRY_P4
#define WEFT_TELEMETRY_P4

#include "headers.p4"

// INT-MD's headers have come or gone since the packet's length was taken.
#ifdef INT_MD
#define SENT_BYTES (standard_metadata.packet_length + (bit<32>)(int<32>)(int<16>)meta.int_md_growth_bytes)
#else
#define SENT_BYTES standard_metadata.packet_length
#endif

control IntStamping(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(512) port_tx_bytes;
    direct_counter(CounterType.packets) int_counter;
    bit<64> tx_bytes;
    bit<4> rate_code = 0;
    bit<24> timestamp_ns = 0;
    bit<16> queue_cells = 0;
    bit<1> stamp = 0;

    // The factors turn the target's units of time and queue depth into nanoseconds and cells of 80 bytes.
    action set_int(bit<4> port_rate_code, bit<16> ns_per_time_unit, bit<16> cells_per_depth_unit) {
        int_counter.count();
        stamp = 1;
        rate_code = port_rate_code;
        timestamp_ns = (bit<24>)(standard_metadata.egress_global_timestamp * (bit<48>)ns_per_time_unit);
        bit<35> cells = (bit<35>)standard_metadata.deq_qdepth * (bit<35>)cells_per_depth_unit;
        queue_cells = cells > 35w0xFFFF ? 16w0xFFFF : cells[15:0];
    }

    table int_port {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { set_int; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = int_counter;
        size = 512;
    }

#define STAMP_HOP(n) \
    hdr.int_hops[n].rate_code = rate_code; \
    hdr.int_hops[n].timestamp_ns = timestamp_ns; \
    hdr.int_hops[n].tx_units = tx_bytes[26:7]; \
    hdr.int_hops[n].queue_cells = queue_cells;

    apply {
        port_tx_bytes.read(tx_bytes, (bit<32>)standard_metadata.egress_port);
        port_tx_bytes.write((bit<32>)standard_metadata.egress_port, tx_bytes + (bit<64>)SENT_BYTES);
        if (hdr.int_hops[4].isValid() && hdr.int_shim.echo == 0) {
            int_port.apply();
            if (stamp == 1) {
                if (hdr.int_shim.hop_count == 0) {
                    STAMP_HOP(0)
                } else if (hdr.int_shim.hop_count == 1) {
                    STAMP_HOP(1)
                } else if (hdr.int_shim.hop_count == 2) {
                    STAMP_HOP(2)
                } else if (hdr.int_shim.hop_count == 3) {
                    STAMP_HOP(3)
                } else if (hdr.int_shim.hop_count == 4) {
                    STAMP_HOP(4)
                }
                if (hdr.int_shim.hop_count < 5) {
                    hdr.int_shim.hop_count = hdr.int_shim.hop_count + 1;
                } else {
                    hdr.int_shim.overflow = 1;
                }
                hdr.int_shim.path_id = hdr.int_shim.path_id ^ meta.identity.switch_id;
            }
        }
    }
}

#endif
