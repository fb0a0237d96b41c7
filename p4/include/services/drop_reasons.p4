// Why packets to services are dropped: more reasons for drops.p4, none in a program without services.
#ifndef WEFT_SERVICES_DROP_REASONS_P4
#define WEFT_SERVICES_DROP_REASONS_P4

// Each calls do(NAME, action, number) for its reasons.
#ifdef SERVICE_SYNCHRONISATION
#define FOR_EACH_SYNCHRONISATION_REASON(do) \
    do(SERVICE_BAD_HEADER, service_bad_header, 32) \
    do(SERVICE_BAD_ICRC, service_bad_icrc, 33) \
    do(SERVICE_FOREIGN_GROUP, service_foreign_group, 34) \
    do(SERVICE_FOREIGN_PORT, service_foreign_port, 35) \
    do(SERVICE_WRONG_QKEY, service_wrong_qkey, 36) \
    do(SERVICE_WRONG_IP_VERSION, service_wrong_ip_version, 37) \
    do(SERVICE_WRONG_EPOCH, service_wrong_epoch, 38) \
    do(SERVICE_WRONG_MEMBER, service_wrong_member, 39) \
    do(SERVICE_CELL_OUT_OF_RANGE, service_cell_out_of_range, 40) \
    do(SERVICE_OLD_SEQUENCE, service_old_sequence, 41) \
    do(SERVICE_EARLY_ROUND, service_early_round, 42) \
    do(SERVICE_DUPLICATE, service_duplicate, 43) \
    do(SERVICE_UNEXPECTED_ANSWER, service_unexpected_answer, 44) \
    do(SERVICE_NOT_FORWARDED, service_not_forwarded, 45) \
    do(SERVICE_FROM_AFAR, service_from_afar, 46)
#else
#define FOR_EACH_SYNCHRONISATION_REASON(do)
#endif

#ifdef SERVICE_PARAMETER_CACHE
#define FOR_EACH_PARAMETER_REASON(do) \
    do(PARAMETER_FOREIGN_PORT, parameter_foreign_port, 48) \
    do(PARAMETER_BAD_HEADER, parameter_bad_header, 49) \
    do(PARAMETER_BAD_ICRC, parameter_bad_icrc, 50) \
    do(PARAMETER_WRONG_ROLE, parameter_wrong_role, 51) \
    do(PARAMETER_WRONG_QKEY, parameter_wrong_qkey, 52) \
    do(PARAMETER_WRONG_EPOCH, parameter_wrong_epoch, 53)
#else
#define FOR_EACH_PARAMETER_REASON(do)
#endif

#define FOR_EACH_SERVICE_REASON(do) FOR_EACH_SYNCHRONISATION_REASON(do) FOR_EACH_PARAMETER_REASON(do)

#endif
