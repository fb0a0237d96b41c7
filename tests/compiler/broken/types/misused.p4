#include <core.p4>

extern Counter {
    Counter();
    void count();
    abstract bit<8> next();
}
extern bit<8> pick(in bit<8> small, in bit<16> large);
extern bit<8> pick(in bit<16> large, in bit<8> small);
extern bit<8> random();
header data_t {
    bit<8> value;
}
struct pair_t {
    bit<8> first;
    bit<8> second;
}
control Shape(inout pair_t pair);
control Uses(inout pair_t pair, inout data_t[2] stack, in bit<8> preset = random()) {
    bit<8>[4] array;
    apply {
        pair.first = pair_t;
        pair.first = array.length;
        pair.first = Counter.reset();
        pair.first = pick(1, 2);
        stack.size = 1;
        if (pick == pick) {
            pair.second = this;
        }
    }
}
control Instances() {
    Shape() shape;
    Counter() counter = {
        bit<8> next() {
            return 1;
        }
    };
    apply {
    }
}
Counter() main;
