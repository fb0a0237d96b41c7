// FOR_EACH_LANE(M) expands M(0) … M(n - 1) for the lanes of a packet: P4_16 has no loops over header fields.
// AGGREGATION_LANES says how many: 64, 128, 256 or 1024.
#ifndef WEFT_LANES_P4
#define WEFT_LANES_P4

#ifndef AGGREGATION_LANES
#define AGGREGATION_LANES 64
#endif

// M(p0) … M(p9) and M(p00) … M(p99), where p are the digits before.
#define TEN_LANES(M, p)     M(p##0) M(p##1) M(p##2) M(p##3) M(p##4) M(p##5) M(p##6) M(p##7) M(p##8) M(p##9)
#define HUNDRED_LANES(M, p) \
    TEN_LANES(M, p##0) TEN_LANES(M, p##1) TEN_LANES(M, p##2) TEN_LANES(M, p##3) TEN_LANES(M, p##4) \
    TEN_LANES(M, p##5) TEN_LANES(M, p##6) TEN_LANES(M, p##7) TEN_LANES(M, p##8) TEN_LANES(M, p##9)

// Numbers have no leading zeros, so the first ten and the first hundred stand apart.
#define FIRST_TEN_LANES(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9)
#define FIRST_SIXTY_LANES(M) \
    FIRST_TEN_LANES(M) TEN_LANES(M, 1) TEN_LANES(M, 2) TEN_LANES(M, 3) TEN_LANES(M, 4) TEN_LANES(M, 5)
#define FIRST_HUNDRED_LANES(M) \
    FIRST_SIXTY_LANES(M) TEN_LANES(M, 6) TEN_LANES(M, 7) TEN_LANES(M, 8) TEN_LANES(M, 9)

#if AGGREGATION_LANES == 64
#define FOR_EACH_LANE(M) FIRST_SIXTY_LANES(M) M(60) M(61) M(62) M(63)
#elif AGGREGATION_LANES == 128
#define FOR_EACH_LANE(M) \
    FIRST_HUNDRED_LANES(M) TEN_LANES(M, 10) TEN_LANES(M, 11) \
    M(120) M(121) M(122) M(123) M(124) M(125) M(126) M(127)
#elif AGGREGATION_LANES == 256
#define FOR_EACH_LANE(M) \
    FIRST_HUNDRED_LANES(M) HUNDRED_LANES(M, 1) \
    TEN_LANES(M, 20) TEN_LANES(M, 21) TEN_LANES(M, 22) TEN_LANES(M, 23) TEN_LANES(M, 24) \
    M(250) M(251) M(252) M(253) M(254) M(255)
#elif AGGREGATION_LANES == 1024
#define FOR_EACH_LANE(M) \
    FIRST_HUNDRED_LANES(M) HUNDRED_LANES(M, 1) HUNDRED_LANES(M, 2) HUNDRED_LANES(M, 3) HUNDRED_LANES(M, 4) \
    HUNDRED_LANES(M, 5) HUNDRED_LANES(M, 6) HUNDRED_LANES(M, 7) HUNDRED_LANES(M, 8) HUNDRED_LANES(M, 9) \
    TEN_LANES(M, 100) TEN_LANES(M, 101) M(1020) M(1021) M(1022) M(1023)
#else
#error "AGGREGATION_LANES: 64, 128, 256 or 1024"
#endif

#endif
