#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> a; }
struct s_t { bit<8> b; bit<16> b; }
enum e_t { A, A }
enum bit<8> f_t { A = 1, A = 2 }
error { Mine, Mine }
match_kind { exact }
const bit<8> c = 1;
const bit<8> c = 2;
control C(inout h_t x, inout h_t x) {
    action a(bit<8> p, bit<8> p) { }
    action a() { }
    table t { actions = { NoAction; NoAction; } }
    apply { bit<8> v; bit<8> v; { bit<8> v; } }
}
void f<T>(in T T) { }
