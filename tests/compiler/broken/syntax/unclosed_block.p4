control C() {
    apply {
        if (true) {
    }
}
