#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; tuple<bit<8>> t; }
header two_t { varbit<8> a; varbit<8> b; }
header_union u_t { bit<8> a; }
struct s_t { string text; _ any; void nothing; }
enum s_t e_t { A = 1 }
enum f_t { A = 1 }
enum bit<8> g_t { A = true }
type s_t new_t;
typedef h_t[0] none_t;
typedef int[3] eight_t;
typedef bit<65537> wide_t;
typedef int<0> zero_t;
typedef list<void> list_t;
typedef tuple<_> any_t;
struct generic_t<T> { T value; }
typedef generic_t bare_t;
typedef generic_t<bit<8>, bit<8>> more_t;
typedef generic_t<packet_in> extern_t;
extern X { void X(); void X(in bit<8> v); }
extern Z { Z(); abstract void f(); }
bit<8> missing(in bit<8> v) { if (v == 1) { return v; } }
bit<8> optional(@optional in bit<8> v) { return v; }
void default_of_out(out bit<8> v = 1) { v = 2; }
void default_of_what(in bit<8> w, in bit<8> v = w) { }
action order(bit<8> data, in bit<8> v) { }
action whole(int v) { }
control C(string text, inout bit<8> v)(bit<8> k) { Z() z; apply { int i = 1; void nothing; } }
@name(3) const bit<8> named = 1;
