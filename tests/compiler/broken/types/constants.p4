header h { bit<8> a; }
control C(inout h x) {
    apply {
        bit<(x.a)> wide;
        x.a = x.a[x.a:0];
    }
}
const bit<8> A = 300;
const bit<-1> B = 0;
