#include <core.p4>

table t {
    actions = { }
}
const bit<8> too_many_bits = 8w0b12;
struct sizes_t {
    varbit unsized;
    bit<8> sized;
    = nameless;
}
bit<8> first(in sizes_t sizes) {
    return sizes.;
}
void loop() {
    for (unknown each in 1 .. 3) {
    }
}
@marks[1] @marks[2]
const bit<8> marked = 1;
