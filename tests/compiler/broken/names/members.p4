#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> first; bit<8> second; }
struct headers_t { h_t outer; h_t[2] layers; }
enum colours_t { RED, GREEN }
enum bit<8> kinds_t { IP = 1 }
control C(inout headers_t hdr) {
    table t { key = { hdr.outer.first : exact; } actions = { NoAction; } }
    apply {
        hdr.outer.frist = 1;
        hdr.inner.first = 1;
        hdr.layers.frist = 1;
        hdr.layers.next.first = 1;
        colours_t c = colours_t.BLUE;
        kinds_t k = kinds_t.UDP;
        error e = error.NoErorr;
        bool b = t.apply().hits;
        bit<8> x = 8w1.first;
        hdr.outer.isVald();
        t.aply();
        C.nothing();
    }
}
