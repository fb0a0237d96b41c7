// A keyword cannot name anything; every place for a name says that it is one.
const bit<8> out = 1;
typedef bit<8> in;
type bit<8> table;
struct header { bit<8> a; }
struct fields_t { bit<8> default; bit<8> select; bool true; }
struct parameters_t<action> { bit<8> a; }
enum exit { A }
enum bit<8> return { A = 1 }
enum members_t { A, out }
error { switch }
extern string { void f(); }
extern methods_t { void if(); }
extern void this();
package package();
control control(inout bit<8> a) { apply { } }
bit<8> tuple(bit<8> a) { return a; }
parser P(bit<8> packet) {
    value_set<bit<8>>(4) error;
    state parser { transition accept; }
}
control C(inout bit<8> out, inout fields_t fields) {
    apply { }
}
control D(inout fields_t fields) {
    bit<8> varbit;
    action void() { }
    action a(bit<8> bool) { }
    table const { actions = { NoAction; } }
    table t {
        for = 3;
        actions = { NoAction; }
    }
    apply {
        bit<8> int = 1;
        action = 1;
        table.apply();
        package();
        fields.in = 1;
        fields.a = out + 1;
        for (bit<8> out in 1 .. 3) { }
        if (a == 1) { parser = 1; }
    }
}
