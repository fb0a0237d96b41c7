// Blocks of a parameter store in the switch that it is attached to. Packets, rules: docs/spec/services.md.
//
// All that comes from the store passes by this switch, so it knows the latest version of each block that anybody has been
// notified of, and answers with no other. Registers are touched in ingress only, where BMv2 has one thread.
#ifndef WEFT_PARAMETER_CACHE_P4
#define WEFT_PARAMETER_CACHE_P4

#include "../drops.p4"
#include "../headers.p4"
#include "../icrc.p4"

// Of all groups together.
#define CACHE_ENTRIES 4096

const bit<4> PARAMETER_VERSION = 1;
const bit<4> PARAMETER_PULL    = 0;
const bit<4> PARAMETER_PUSH    = 1;
const bit<4> PARAMETER_VALUE   = 2;
const bit<4> PARAMETER_DONE    = 3;
const bit<8> PARAMETER_CACHED  = 1;

#define AND_WORD(n) , hdr.block.word##n
#define ICRC_PARAMETER \
    ICRC_DATAGRAM, \
    hdr.parameter.version, hdr.parameter.kind, hdr.parameter.flags, hdr.parameter.group_id, hdr.parameter.epoch, \
    hdr.parameter.client, hdr.parameter.block_number, hdr.parameter.sequence, hdr.parameter.block_version, \
    hdr.parameter.reserved

control ParameterIcrc(in headers_t hdr, out bit<32> icrc) {
    apply {
        bit<32> crc;
        if (hdr.block.isValid()) {
            if (hdr.ipv4.isValid()) {
                hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV4, ICRC_PARAMETER FOR_EACH_WORD(AND_WORD) }, ICRC_RANGE);
            } else {
                hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV6, ICRC_PARAMETER FOR_EACH_WORD(AND_WORD) }, ICRC_RANGE);
            }
        } else if (hdr.ipv4.isValid()) {
            hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV4, ICRC_PARAMETER }, ICRC_RANGE);
        } else {
            hash(crc, HashAlgorithm.crc32, 32w0, { ICRC_IPV6, ICRC_PARAMETER }, ICRC_RANGE);
        }
        icrc = crc[7:0] ++ crc[15:8] ++ crc[23:16] ++ crc[31:24];
    }
}

struct parameter_group_t {
    bit<32>        queue_key;
    bit<16>        epoch;
    bit<32>        cached_blocks;  // 0 in a switch that has no cache of the group
    ipv6_address_t store_address;  // IPv4 widened
}

control ParameterCache(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                       inout DropReason drop_reason) {
    direct_counter(CounterType.packets_and_bytes) parameter_group_counter;

    register<bit<48>>(CACHE_ENTRIES) cache_version;  // epoch, version
    register<bit<8>>(CACHE_ENTRIES)  cache_is_valid;
#define WORD_REGISTER(n) register<bit<64>>(CACHE_ENTRIES) cache_word##n;
    FOR_EACH_WORD(WORD_REGISTER)

    ParameterIcrc() icrc;

    parameter_group_t group = { 0, 0, 0, 0 };
    bit<1>  is_known = 0;
    bit<1>  is_store = 0;
    bit<1>  is_transit = 0;
    bit<16> client = 0;
    bit<32> index = 0;

    action set_parameter_group(bit<32> queue_key, bit<16> epoch, bit<32> cached_blocks,
                               ipv6_address_t store_address) {
        parameter_group_counter.count();
        is_known = 1;
        group.queue_key = queue_key;
        group.epoch = epoch;
        group.cached_blocks = cached_blocks;
        group.store_address = store_address;
    }

    table parameter_group {
        key = { hdr.parameter.group_id: exact @name("group_id"); }
        actions = { set_parameter_group; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = parameter_group_counter;
        size = 256;
    }

    action parameter_client(bit<16> number) {
        client = number;
    }

    action parameter_store() {
        is_store = 1;
    }

    action parameter_transit() {
        is_transit = 1;
    }

    action parameter_stranger() {
        drop_reason = DropReason.PARAMETER_FOREIGN_PORT;
    }

    // Who is behind a port: a client, the store, or another switch.
    table parameter_port {
        key = {
            hdr.parameter.group_id: exact @name("group_id");
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { parameter_client; parameter_store; parameter_transit; @defaultonly parameter_stranger; }
        const default_action = parameter_stranger();
        size = 4096;
    }

#define WORD_READ(n) cache_word##n.read(hdr.block.word##n, index);
    action read_block() {
        FOR_EACH_WORD(WORD_READ)
    }

#define WORD_WRITE(n) cache_word##n.write(index, hdr.block.word##n);
    action write_block() {
        FOR_EACH_WORD(WORD_WRITE)
    }

    // The pull turns into its answer, from the store's address to the client's.
    action answer(bit<32> block_version) {
        ipv6_address_t asking = meta.flow.source;
        hdr.parameter.kind = PARAMETER_VALUE;
        hdr.parameter.flags = PARAMETER_CACHED;
        hdr.parameter.block_version = block_version;
        hdr.bth.destination_qp = QP_PARAMETER_CLIENT;
        hdr.deth.source_qp = QP_PARAMETER_STORE;
        hdr.udp.length = UDP_LENGTH_PARAMETER_BLOCK;
        hdr.udp.checksum = 0;
        meta.flow.source = meta.flow.destination;
        meta.flow.destination = asking;
        hdr.int_shim.setInvalid();
        hdr.int_hops[0].setInvalid();
        hdr.int_hops[1].setInvalid();
        hdr.int_hops[2].setInvalid();
        hdr.int_hops[3].setInvalid();
        hdr.int_hops[4].setInvalid();
        meta.rewrite_icrc = 1;
    }

    action answer_ipv4() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.ipv4.total_length = 20 + UDP_LENGTH_PARAMETER_BLOCK;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.source = meta.flow.source[31:0];
        hdr.ipv4.destination = meta.flow.destination[31:0];
    }

    action answer_ipv6() {
        hdr.ethernet.ether_type = ETHERTYPE_IPV6;
        hdr.ipv6.payload_length = UDP_LENGTH_PARAMETER_BLOCK;
        hdr.ipv6.hop_limit = 64;
        hdr.ipv6.source = meta.flow.source;
        hdr.ipv6.destination = meta.flow.destination;
    }

    apply {
        parameter_group.apply();
        if (is_known == 1) {
            parameter_port.apply();
            bool is_request = hdr.parameter.kind == PARAMETER_PULL || hdr.parameter.kind == PARAMETER_PUSH;
            bool is_to_store = hdr.bth.destination_qp == QP_PARAMETER_STORE;
            bool has_block = hdr.parameter.kind == PARAMETER_PUSH || hdr.parameter.kind == PARAMETER_VALUE;
            bool is_whole = hdr.ipv4.isValid() ? hdr.ipv4.total_length == 20 + hdr.udp.length
                                               : hdr.ipv6.payload_length == hdr.udp.length;
            if (drop_reason != DropReason.NONE) {
                // A stranger's.
            } else if (hdr.parameter.version != PARAMETER_VERSION || hdr.parameter.kind > PARAMETER_DONE ||
                       is_request != is_to_store || hdr.block.isValid() != has_block || !is_whole ||
                       hdr.parameter.reserved != 0 || (is_transit == 0 && hdr.parameter.flags != 0)) {
                drop_reason = DropReason.PARAMETER_BAD_HEADER;
            } else if (is_transit == 0 && is_request == (is_store == 1)) {
                // The store alone answers, and clients ask.
                drop_reason = DropReason.PARAMETER_WRONG_ROLE;
            } else if (is_transit == 0 && is_request && hdr.parameter.client != client) {
                drop_reason = DropReason.PARAMETER_WRONG_ROLE;
            } else if ((is_request && meta.flow.destination != group.store_address) ||
                       (!is_request && meta.flow.source != group.store_address)) {
                drop_reason = DropReason.PARAMETER_WRONG_ROLE;
            } else if (hdr.deth.queue_key != group.queue_key) {
                drop_reason = DropReason.PARAMETER_WRONG_QKEY;
            } else if (hdr.parameter.epoch != group.epoch) {
                drop_reason = DropReason.PARAMETER_WRONG_EPOCH;
            } else if (hdr.parameter.block_number < group.cached_blocks &&
                       hdr.parameter.block_number < CACHE_ENTRIES &&
                       (hdr.parameter.kind == PARAMETER_PULL || is_store == 1)) {
                bit<32> expected_icrc;
                icrc.apply(hdr, expected_icrc);
                if (hdr.icrc.value != expected_icrc) {
                    drop_reason = DropReason.PARAMETER_BAD_ICRC;
                } else {
                    index = hdr.parameter.block_number;
                    bit<48> tag;
                    bit<8> is_valid;
                    cache_version.read(tag, index);
                    cache_is_valid.read(is_valid, index);
                    if (tag[47:32] != group.epoch) {
                        tag = group.epoch ++ 32w0;
                        is_valid = 0;
                    }
                    bit<32> age = hdr.parameter.block_version - tag[31:0];
                    if (hdr.parameter.kind == PARAMETER_VALUE) {
                        // An older one has been overtaken.
                        if (age[31:31] == 0) {
                            cache_version.write(index, group.epoch ++ hdr.parameter.block_version);
                            cache_is_valid.write(index, 1);
                            write_block();
                        }
                    } else if (hdr.parameter.kind == PARAMETER_DONE) {
                        if (age != 0 && age[31:31] == 0) {
                            cache_version.write(index, group.epoch ++ hdr.parameter.block_version);
                            cache_is_valid.write(index, 0);
                        }
                    } else if (is_valid == 1) {
                        hdr.block.setValid();
                        read_block();
                        answer(tag[31:0]);
                        if (hdr.ipv4.isValid()) {
                            answer_ipv4();
                        } else {
                            answer_ipv6();
                        }
                    }
                }
            }
        }
    }
}

#endif
