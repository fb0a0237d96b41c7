// Included twice by includes_and_macros.p4: the guard keeps the header from being declared twice.
#ifndef BYTE_PAIR_P4
#define BYTE_PAIR_P4
header byte_pair_t {
    bit<8> left;
    bit<8> right;
}
#endif
