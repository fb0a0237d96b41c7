#include <core.p4>
#include <v1model.p4>
extern E<T> { E(T initial); void put(in T v); }
extern Plain { void m(); }
void f(in bit<8> x, out bit<8> y) { y = x; }
void over(in bit<8> x) { }
void over(in bool x, in bit<8> y) { }
T same<T>(in T a, in T b) { return a; }
void text(in bit<8> v) { }
extern void any<T>(in T v);
extern T made<T>();
header h_t { bit<8> a; }
struct s_t { bit<8> x; }
const bit<8> K = 3;
control Sub(inout bit<8> v)(bit<8> k) { apply { v = k; } }
control C(inout h_t h, packet_in p) {
    E<bit<8>>(h.a) changing;
    Plain() plain;
    h_t() wrong;
    Sub(1) sub;
    apply {
        f();
        f(h.a, h.a, h.a);
        f(x = h.a, x = h.a);
        f(x = h.a, z = h.a);
        f(h.a, 8w1);
        f(h.a, K);
        f(_, h.a);
        over();
        same(8w1, 16w1);
        same<bit<8>, bit<8>>(8w1, 8w2);
        any(1);
        any("text");
        any({ a = 1 });
        made();
        any(over);
        any(plain);
        h.a = K();
        Sub.apply(h.a);
        sub.apply();
        p.extract(h.a);
        p.extract(h, 8);
        bit<8> v = p.lookahead<void>();
        return 3;
        K = 4;
        f(h.a, sub);
    }
}
