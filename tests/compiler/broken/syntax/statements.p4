struct s { bit<8> a; }
control C(inout s v) {
    apply {
        v.a = ;
        if v.a == 1 { }
        v.a + 1;
        for (bit<8> i = 0; i < 4) { }
        if (v.a == 1) bit<8> x = 1;
        switch (v.a) { 1 { } }
        return 1 2;
        v.a = 3;
    }
}
