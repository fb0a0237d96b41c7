#include <core.p4>
header h { bit<8> a; }
parser P(packet_in packet, out h x) {
    state start {
        packet.extract(x);
        transition select(x.a) {
            1: next;
            default: nxt;
            2: accept;
            (3, 4): accept;
            16w5: accept;
            9 .. 7: accept;
        }
    }
    state next { transition accept; }
    state orphan { transition reject; }
    state accept { }
}
parser Q(packet_in packet) { state begin { transition accept; } }
