// FOR_EACH_LANE(M) expands M(0) … M(63): P4_16 has no loops over header fields.
#ifndef WEFT_LANES_P4
#define WEFT_LANES_P4

#define FOR_EACH_LANE(M) \
    M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) \
    M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15) \
    M(16) M(17) M(18) M(19) M(20) M(21) M(22) M(23) \
    M(24) M(25) M(26) M(27) M(28) M(29) M(30) M(31) \
    M(32) M(33) M(34) M(35) M(36) M(37) M(38) M(39) \
    M(40) M(41) M(42) M(43) M(44) M(45) M(46) M(47) \
    M(48) M(49) M(50) M(51) M(52) M(53) M(54) M(55) \
    M(56) M(57) M(58) M(59) M(60) M(61) M(62) M(63)

// A comma before each, so that the list can be appended to another.
#define LANE_LIST(P) \
    , P##0 , P##1 , P##2 , P##3 , P##4 , P##5 , P##6 , P##7 \
    , P##8 , P##9 , P##10 , P##11 , P##12 , P##13 , P##14 , P##15 \
    , P##16 , P##17 , P##18 , P##19 , P##20 , P##21 , P##22 , P##23 \
    , P##24 , P##25 , P##26 , P##27 , P##28 , P##29 , P##30 , P##31 \
    , P##32 , P##33 , P##34 , P##35 , P##36 , P##37 , P##38 , P##39 \
    , P##40 , P##41 , P##42 , P##43 , P##44 , P##45 , P##46 , P##47 \
    , P##48 , P##49 , P##50 , P##51 , P##52 , P##53 , P##54 , P##55 \
    , P##56 , P##57 , P##58 , P##59 , P##60 , P##61 , P##62 , P##63

#endif
