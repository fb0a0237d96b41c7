control Empty(inout bit<8> value) {
    action clear() {
        value = 0;
    }
}
