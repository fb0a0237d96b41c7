// Why a packet is dropped. Every reason is an entry of the table `drops` with a counter of its own, and its name is
// the entry's action, so a reader of the table over P4Runtime sees what was dropped and why.
#ifndef WEFT_DROPS_P4
#define WEFT_DROPS_P4

#include "ev_routes/drop_reasons.p4"
#include "services/drop_reasons.p4"
#ifdef INT_MD
#define FOR_EACH_INT_MD_REASON(do) do(INT_MD_FROM_HOST, int_md_from_host, 11)
#else
#define FOR_EACH_INT_MD_REASON(do)
#endif

#define REASON_MEMBER(NAME, counted, number) , NAME = number
#define REASON_ACTION(NAME, counted, number) action counted() { drop_counter.count(); }
#define REASON_CHOICE(NAME, counted, number) counted;
#define REASON_ENTRY(NAME, counted, number) DropReason.NAME: counted();

enum bit<8> DropReason {
    NONE                          = 0,
    PARSER_ERROR                  = 1,
    IPV4_CHECKSUM                 = 2,
    NOT_FOR_THIS_SWITCH           = 3,
    UNKNOWN_ETHERTYPE             = 4,
    NO_ROUTE                      = 5,
    TTL_EXPIRED                   = 6,
    DENIED_BY_ACL                 = 7,
    UNKNOWN_NEIGHBOUR             = 8,
    UNHANDLED_LOCAL               = 9,
    IPV4_OPTIONS                  = 10,
    AGGREGATION_OVER_RATE         = 15,
    AGGREGATION_BAD_HEADER        = 16,
    AGGREGATION_BAD_ICRC          = 17,
    AGGREGATION_FOREIGN_JOB       = 18,
    AGGREGATION_FOREIGN_PORT      = 19,
    AGGREGATION_WRONG_QKEY        = 20,
    AGGREGATION_WRONG_EPOCH       = 21,
    AGGREGATION_WRONG_RANK        = 22,
    AGGREGATION_SLOT_OUT_OF_RANGE = 23,
    AGGREGATION_OLD_ROUND         = 24,
    AGGREGATION_DUPLICATE         = 25,
    AGGREGATION_UNEXPECTED_RESULT = 26,
    AGGREGATION_WRONG_OPERATION   = 27,
    AGGREGATION_WRONG_IP_VERSION  = 28,
    AGGREGATION_NOT_FORWARDED     = 29,
    AGGREGATION_FROM_AFAR         = 30,
    AGGREGATION_WRONG_DESTINATION = 31
    FOR_EACH_SERVICE_REASON(REASON_MEMBER)
    FOR_EACH_INT_MD_REASON(REASON_MEMBER) FOR_EACH_SRV6_REASON(REASON_MEMBER)
}

control Drops(inout standard_metadata_t standard_metadata, in DropReason drop_reason) {
    direct_counter(CounterType.packets_and_bytes) drop_counter;

    action parser_error() { drop_counter.count(); }
    action ipv4_checksum() { drop_counter.count(); }
    action not_for_this_switch() { drop_counter.count(); }
    action unknown_ethertype() { drop_counter.count(); }
    action no_route() { drop_counter.count(); }
    action ttl_expired() { drop_counter.count(); }
    action denied_by_acl() { drop_counter.count(); }
    action unknown_neighbour() { drop_counter.count(); }
    action unhandled_local() { drop_counter.count(); }
    action ipv4_options() { drop_counter.count(); }
    action aggregation_over_rate() { drop_counter.count(); }
    action aggregation_bad_header() { drop_counter.count(); }
    action aggregation_bad_icrc() { drop_counter.count(); }
    action aggregation_foreign_job() { drop_counter.count(); }
    action aggregation_foreign_port() { drop_counter.count(); }
    action aggregation_wrong_qkey() { drop_counter.count(); }
    action aggregation_wrong_epoch() { drop_counter.count(); }
    action aggregation_wrong_rank() { drop_counter.count(); }
    action aggregation_slot_out_of_range() { drop_counter.count(); }
    action aggregation_old_round() { drop_counter.count(); }
    action aggregation_duplicate() { drop_counter.count(); }
    action aggregation_unexpected_result() { drop_counter.count(); }
    action aggregation_wrong_operation() { drop_counter.count(); }
    action aggregation_wrong_ip_version() { drop_counter.count(); }
    action aggregation_not_forwarded() { drop_counter.count(); }
    action aggregation_from_afar() { drop_counter.count(); }
    action aggregation_wrong_destination() { drop_counter.count(); }
    FOR_EACH_SERVICE_REASON(REASON_ACTION)
    FOR_EACH_INT_MD_REASON(REASON_ACTION) FOR_EACH_SRV6_REASON(REASON_ACTION)

    table drops {
        key = { drop_reason: exact @name("reason"); }
        actions = {
            parser_error; ipv4_checksum; not_for_this_switch; unknown_ethertype; no_route; ttl_expired;
            denied_by_acl; unknown_neighbour; unhandled_local; ipv4_options; aggregation_bad_header;
            aggregation_bad_icrc; aggregation_foreign_job; aggregation_foreign_port; aggregation_wrong_qkey;
            aggregation_wrong_epoch; aggregation_wrong_rank; aggregation_slot_out_of_range;
            aggregation_old_round; aggregation_duplicate; aggregation_unexpected_result;
            aggregation_wrong_operation; aggregation_wrong_ip_version; aggregation_not_forwarded;
            aggregation_from_afar; aggregation_wrong_destination; aggregation_over_rate;
            FOR_EACH_SERVICE_REASON(REASON_CHOICE) FOR_EACH_INT_MD_REASON(REASON_CHOICE)
            FOR_EACH_SRV6_REASON(REASON_CHOICE) @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            DropReason.PARSER_ERROR: parser_error();
            DropReason.IPV4_CHECKSUM: ipv4_checksum();
            DropReason.NOT_FOR_THIS_SWITCH: not_for_this_switch();
            DropReason.UNKNOWN_ETHERTYPE: unknown_ethertype();
            DropReason.NO_ROUTE: no_route();
            DropReason.TTL_EXPIRED: ttl_expired();
            DropReason.DENIED_BY_ACL: denied_by_acl();
            DropReason.UNKNOWN_NEIGHBOUR: unknown_neighbour();
            DropReason.UNHANDLED_LOCAL: unhandled_local();
            DropReason.IPV4_OPTIONS: ipv4_options();
            DropReason.AGGREGATION_OVER_RATE: aggregation_over_rate();
            DropReason.AGGREGATION_BAD_HEADER: aggregation_bad_header();
            DropReason.AGGREGATION_BAD_ICRC: aggregation_bad_icrc();
            DropReason.AGGREGATION_FOREIGN_JOB: aggregation_foreign_job();
            DropReason.AGGREGATION_FOREIGN_PORT: aggregation_foreign_port();
            DropReason.AGGREGATION_WRONG_QKEY: aggregation_wrong_qkey();
            DropReason.AGGREGATION_WRONG_EPOCH: aggregation_wrong_epoch();
            DropReason.AGGREGATION_WRONG_RANK: aggregation_wrong_rank();
            DropReason.AGGREGATION_SLOT_OUT_OF_RANGE: aggregation_slot_out_of_range();
            DropReason.AGGREGATION_OLD_ROUND: aggregation_old_round();
            DropReason.AGGREGATION_DUPLICATE: aggregation_duplicate();
            DropReason.AGGREGATION_UNEXPECTED_RESULT: aggregation_unexpected_result();
            DropReason.AGGREGATION_WRONG_OPERATION: aggregation_wrong_operation();
            DropReason.AGGREGATION_WRONG_IP_VERSION: aggregation_wrong_ip_version();
            DropReason.AGGREGATION_NOT_FORWARDED: aggregation_not_forwarded();
            DropReason.AGGREGATION_FROM_AFAR: aggregation_from_afar();
            DropReason.AGGREGATION_WRONG_DESTINATION: aggregation_wrong_destination();
            FOR_EACH_SERVICE_REASON(REASON_ENTRY)
            FOR_EACH_INT_MD_REASON(REASON_ENTRY) FOR_EACH_SRV6_REASON(REASON_ENTRY)
        }
        counters = drop_counter;
    }

    apply {
        drops.apply();
        mark_to_drop(standard_metadata);
    }
}

#endif
