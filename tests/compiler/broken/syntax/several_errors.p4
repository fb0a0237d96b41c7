header h { bit<8> x; }
control C(inout h a) {
    action f() { a.x = ; }
    action g() { a.x + 1; }
    apply { a.x = 1; b }
}
