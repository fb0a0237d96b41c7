// Why packets of SRv6 are dropped: more reasons for drops.p4, none in a program without it.
#ifndef WEFT_EV_ROUTES_DROP_REASONS_P4
#define WEFT_EV_ROUTES_DROP_REASONS_P4

#ifdef SRV6
#define FOR_EACH_SRV6_REASON(do) \
    do(SRV6_FOREIGN_USID, srv6_foreign_usid, 12) \
    do(SRV6_NO_NEXT_USID, srv6_no_next_usid, 13) \
    do(SRV6_HOP_LIMIT, srv6_hop_limit, 14)
#else
#define FOR_EACH_SRV6_REASON(do)
#endif

#endif
