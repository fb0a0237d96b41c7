@twice[1] @twice[2] const bit<8> A = 1;
@mixed[a=1, 2] struct t { bit<8> a; }
control C(inout bit<8> x) {
    table t { entries = { 1: a(2); } key = { x: exact; } actions = { a; } }
    apply { for (i in 1 .. 3) { } }
}
