// Every kind of table, counter, meter and register that a script can speak of; the first byte says which one is used.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> operation;
    bit<8> first;
    bit<16> second;
    bit<8> answer;
}

header extra_t {
    bit<16> value;
}

struct headers_t {
    request_t request;
    extra_t[2] extra;
}

struct metadata_t {
    bit<2> colour;
}

parser ParseAll(packet_in packet, out headers_t headers, inout metadata_t metadata,
                inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.request);
        transition select(headers.request.operation) {
            9: parse_extra;
            default: accept;
        }
    }
    state parse_extra {
        packet.extract(headers.extra.next);
        packet.extract(headers.extra.next);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t metadata) {
    apply { }
}

control Decide(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    counter(4, CounterType.packets_and_bytes) requests;
    direct_counter(CounterType.packets_and_bytes) exact_hits;
    register<bit<8>>(4) remembered;
    meter(4, MeterType.packets) rates;

    action discard() {
        mark_to_drop(standard);
    }
    action answer(bit<8> value, bit<9> port) {
        headers.request.answer = value;
        standard.egress_spec = port;
    }
    action counted_answer(bit<8> value, bit<9> port) {
        exact_hits.count();
        answer(value, port);
    }

    table exact_table {
        key = { headers.request.first: exact; }
        actions = { counted_answer; discard; }
        default_action = discard();
        counters = exact_hits;
        size = 2;
    }
    table prefix_table {
        key = { headers.request.second: lpm; }
        actions = { answer; discard; }
        default_action = discard();
    }
    table ternary_table {
        key = { headers.request.first: ternary; headers.request.second: ternary; }
        actions = { answer; discard; }
        default_action = discard();
    }
    table range_table {
        key = { headers.request.second: range; headers.request.first: optional; }
        actions = { answer; discard; }
        default_action = discard();
    }
    table profile_table {
        key = { headers.request.first: exact; }
        actions = { answer; discard; }
        implementation = action_profile(4);
    }
    table selector_table {
        key = { headers.request.first: exact; headers.request.second: selector; }
        actions = { answer; discard; }
        implementation = action_selector(HashAlgorithm.crc16, 32w4, 32w8);
    }
    table extra_table {
        key = { headers.extra[1].isValid(): exact; headers.extra[1].value: ternary @name("extra[1].value"); }
        actions = { answer; discard; }
        default_action = discard();
    }

    apply {
        requests.count((bit<32>)headers.request.first & 3);
        discard();
        if (headers.request.operation == 1) {
            exact_table.apply();
        } else if (headers.request.operation == 2) {
            prefix_table.apply();
        } else if (headers.request.operation == 3) {
            ternary_table.apply();
        } else if (headers.request.operation == 4) {
            range_table.apply();
        } else if (headers.request.operation == 5) {
            profile_table.apply();
        } else if (headers.request.operation == 6) {
            selector_table.apply();
        } else if (headers.request.operation == 7) {
            bit<8> value;
            remembered.read(value, (bit<32>)headers.request.first);
            answer(value, 1);
        } else if (headers.request.operation == 8) {
            rates.execute_meter((bit<32>)headers.request.first, metadata.colour);
            answer((bit<8>)metadata.colour, 1);
        } else if (headers.request.operation == 9) {
            extra_table.apply();
        } else if (headers.request.operation == 10) {
            answer(0, 510);
        }
    }
}

control Leave(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply { }
}

control Update(inout headers_t headers, inout metadata_t metadata) {
    apply { }
}

control Deparse(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(ParseAll(), Verify(), Decide(), Leave(), Update(), Deparse()) main;
