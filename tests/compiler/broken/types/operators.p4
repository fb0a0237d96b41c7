#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; int<8> s; bool flag; varbit<32> v; }
struct s_t { bit<8> x; }
control C(inout h_t h, inout s_t s, in error e) {
    apply {
        h.flag = !h.a;
        h.a = ~h.flag;
        h.a = -s;
        h.a = h.a + h.flag;
        h.s = h.s / 2;
        h.a = h.a % -1;
        h.a = h.a |+| 1;
        h.a = (bit<8>)(3 |+| 4);
        h.flag = h.flag && h.a;
        h.a = s << 1;
        h.a = h.a << h.s;
        h.a = h.a << -1;
        h.a = 1 << h.a;
        h.a = e ++ h.a;
        h.flag = h.a == s;
        h.flag = h.v == s;
        h.flag = h.a < h.s;
        h.flag = e < e;
        h.a = h.a ? 8w1 : 8w2;
        h.flag = (h.flag ? 1 : 2) == 1;
        h.a = h.flag[3:0];
        h.a = h.a[8:1];
        h.a = h.a[1:3];
        h.a = h.a[h.a:0];
        h.a = h.a[h.a +: 9];
        h.a = h.flag[h.a +: 2];
        h.a = (bit<8>)s;
        h.a = (bit<8>)e;
        h.a = 1 / 0;
    }
}
