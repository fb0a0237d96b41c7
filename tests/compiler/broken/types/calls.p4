#include <v1model.p4>
header h { bit<8> a; }
bit<8> twice(in bit<8> v, out bool done) { done = true; return v + v; }
control C(inout h x, in h y) {
    action act(bit<8> v) { x.a = v; v = 1; }
    apply {
        bool done;
        x.a = twice(x.a);
        x.a = twice(x.a, true);
        x.a = twice(v = x.a, finished = done);
        y.a = 1;
        y.setValid();
        act();
        x.b();
        hash(x.a, HashAlgorithm.md5, 8w0, { x.a }, 8w10);
    }
}
