header h { bit<8> a; bit<16> b; int<8> s; bool f; }
control C(inout h x) {
    apply {
        x.a = x.b;
        x.b = x.a + x.b;
        x.a = x.s;
        x.a = true;
        x.f = x.a;
        if (x.a) { }
        x.a = x.b[7:9];
        x.a = x.b[16:9];
        x.a = x.a << -1;
        x.a = x.a / 0;
    }
}
