parser P(in bit<8> v) {
    state start {
        transition select(v) {
            1: accept
            2 accept;
            default: reject;
        }
    }
}
