// What parser, checksums, hashes and arithmetic make of a packet, written into a report in front of it.
#include <core.p4>
#include <v1model.p4>

header report_t {
    bit<32> parser_error;
    bit<8>  checksum_error;
    bit<32> crc32;
    bit<16> crc16;
    bit<16> csum16;
    bit<16> xor16;
    bit<64> identity;
    bit<32> crc32_custom;
    bit<16> crc16_custom;
    bit<16> bounded;
    bit<8>  stack_size;
    bit<40> sums;
    int<24> signed_sums;
    bit<16> shifts;
    bit<8>  saturated;
    int<8>  saturated_signed;
    bit<16> slices;
    bit<32> packet_length;
}

header kind_t {
    bit<8> kind;
    bit<8> count;
}

header item_t {
    bit<4>  more;
    bit<12> value;
}

header options_t {
    bit<8>      length;
    varbit<64>  data;
    bit<16>     checksum;
}

struct headers_t {
    report_t report;
    kind_t kind;
    item_t[3] items;
    options_t options;
}

struct metadata_t {
}

error {
    UnknownKind
}

parser ObservationsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind, packet.lookahead<bit<8>>()) {
            (0, _): items;
            (1, 0x00 &&& 0x80): options;
            (2 .. 7, _): skip;
            (8, _): refuse;
        }
    }

    state items {
        packet.extract(hdr.items.next);
        transition select(hdr.items.last.more) {
            0: accept;
            default: items;
        }
    }

    state options {
        packet.extract(hdr.options, (bit<32>)packet.lookahead<bit<8>>());
        transition accept;
    }

    state skip {
        packet.advance((bit<32>)hdr.kind.count * 8);
        packet.extract(hdr.items.next);
        transition accept;
    }

    state refuse {
        verify(hdr.kind.count < 100, error.UnknownKind);
        transition accept;
    }
}

control ObservationsVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.options.isValid(), { hdr.kind, hdr.options.length, hdr.options.data }, hdr.options.checksum, HashAlgorithm.csum16);
    }
}

control ObservationsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        // The fields of an invalid header would be anything.
        bit<12> first = 0;
        bit<12> second = 0;
        if (hdr.items[0].isValid()) {
            first = hdr.items[0].value;
        }
        if (hdr.items[1].isValid()) {
            second = hdr.items[1].value;
        }
        bit<40> wide = hdr.kind.kind ++ first ++ second ++ hdr.kind.count;
        hdr.report.setValid();
        if (standard_metadata.parser_error == error.NoError) {
            hdr.report.parser_error = 0;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.report.parser_error = 1;
        } else if (standard_metadata.parser_error == error.NoMatch) {
            hdr.report.parser_error = 2;
        } else if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.report.parser_error = 3;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            hdr.report.parser_error = 4;
        } else if (standard_metadata.parser_error == error.ParserInvalidArgument) {
            hdr.report.parser_error = 5;
        } else if (standard_metadata.parser_error == error.UnknownKind) {
            hdr.report.parser_error = 6;
        } else {
            hdr.report.parser_error = 7;
        }
        hdr.report.checksum_error = (bit<8>)standard_metadata.checksum_error;
        hash(hdr.report.crc32, HashAlgorithm.crc32, 32w0, { wide, hdr.kind.count, 3w5 }, 64w0x100000000);
        hash(hdr.report.crc16, HashAlgorithm.crc16, 16w0, { wide, hdr.kind.count, 3w5 }, 32w0x10000);
        hash(hdr.report.csum16, HashAlgorithm.csum16, 16w0, { wide, hdr.kind.count }, 32w0x10000);
        hash(hdr.report.xor16, HashAlgorithm.xor16, 16w0, { wide, hdr.kind.count, hdr.kind.kind, wide }, 32w0x10000);
        hash(hdr.report.identity, HashAlgorithm.identity, 64w0, { wide, 24w7 }, 64w0xffffffffffffffff);
        hash(hdr.report.crc32_custom, HashAlgorithm.crc32_custom, 32w0, { wide }, 64w0x100000000);
        hash(hdr.report.crc16_custom, HashAlgorithm.crc16_custom, 16w0, { wide }, 32w0x10000);
        hash(hdr.report.bounded, HashAlgorithm.crc16, 16w100, { wide }, 32w7);
        hdr.report.stack_size = (bit<8>)(hdr.items[0].isValid() ? 8w1 : 8w0) + (hdr.items[2].isValid() ? 8w4 : 8w0);
        hdr.report.sums = wide * 40w3 - (wide >> 7) + (40w1 << hdr.kind.kind);
        hdr.report.signed_sums = (int<24>)(bit<24>)wide[23:0] - 24s100 - ((int<24>)(bit<24>)wide[30:7] >> 3);
        hdr.report.shifts = wide[15:0] << hdr.kind.count;
        hdr.report.saturated = hdr.kind.kind |+| hdr.kind.count;
        hdr.report.saturated_signed = (int<8>)hdr.kind.kind |-| (int<8>)hdr.kind.count;
        hdr.report.slices = wide[11:4] ++ ~wide[39:32];
        hdr.report.slices[3:1] = wide[2:0];
    }
}

control ObservationsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.report.packet_length = standard_metadata.packet_length;
    }
}

control ObservationsCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.options.isValid() && hdr.kind.count[0:0] == 1, { hdr.kind, hdr.options.length, hdr.options.data }, hdr.options.checksum, HashAlgorithm.csum16);
    }
}

control ObservationsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.kind);
        packet.emit(hdr.items);
        packet.emit(hdr.options);
    }
}

V1Switch(ObservationsParser(), ObservationsVerify(), ObservationsIngress(), ObservationsEgress(), ObservationsCompute(), ObservationsDeparser()) main;
