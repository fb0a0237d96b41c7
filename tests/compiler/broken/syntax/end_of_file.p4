control C(inout bit<8> v) {
    apply {
        v = 1;
