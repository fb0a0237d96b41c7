#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
control C(inout h_t[2] stack, inout h_t h, in tuple<bit<8>, bool> pair) {
    apply {
        h = stack[2];
        h = stack[true];
        h.a = h[0];
        h.a = pair[2];
        h.a = pair[h.a];
        h = stack.next;
        h.a = (bit<8>)stack.lastIndex;
        h = stack.previous;
        stack.push_front(h.a);
        h.a = 0w0;
        h.setValid(1);
    }
}
