// Includes with a guard, macros with and without arguments, conditional compilation.
#include "include/case.p4"

#include "include/byte_pair.p4"
#include "include/byte_pair.p4"

#define PORT 3
#define SUM(a, b) ((a) + (b))
#define TWICE(x) SUM(x, \
                     x)
#define MEMBER(name) headers.pair.name
#if PORT == 3 && defined(SUM) && !defined(NOT_DEFINED)
#define ADDED 1
#elif PORT == 4
#define ADDED 2
#else
#error "no branch was taken"
#endif
#undef PORT
#define PORT 4

struct headers_t {
    byte_pair_t pair;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.pair);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = PORT;
        MEMBER(left) = TWICE(headers.pair.left) + ADDED;
#ifdef NOT_DEFINED
        MEMBER(right) = 0;
#endif
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
