#include <core.p4>
#include <v1model.p4>
header odd { tuple<bit<8>> pair; error what; }
header generic<T> { T value; }
header_union choice { bit<8> a; }
struct holder { packet_in packet; int number; }
extern void take<T>(in T value);
extern void give<T>(out T value);
extern Thing { Thing(bit<8> number); abstract void act(); }
control Inner(in bit<8> x)(bit<8> size) { apply { } }
bit<8> again(in bit<8> x) { return again(x); }
bit<8> optional(@optional in bit<8> x) { return 1; }
void named(in string text) { }
const tuple<_> unknown = { 1 };
const bit<8> negative = 7 / -2;
Inner(3) outer;
parser P(packet_in packet, out generic<int> h) {
    state start { return; transition start; }
}
control C(inout bit<8> x, inout int<4> y)(Inner inner) {
    bit<8> run_time;
    Inner(run_time) instance;
    Thing(1) thing;
    action act(int number) { }
    apply {
        take(5);
        take("text");
        take({ a = x });
        take(_);
        give(_);
        take(inner);
        tuple<bit<8>> pair = { 1 };
        Inner.apply(x);
        y = (int<4>)x;
        x = x.minSizeInBits(1);
        x = 1 << x;
        C.apply(x, y);
    }
}
