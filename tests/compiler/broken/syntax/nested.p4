control C(inout bit<8> v) {
    apply {
        if (v == 1) {
            if (v == 2) {
                v = 3;
        }
    }
}
control D() { apply { } }
