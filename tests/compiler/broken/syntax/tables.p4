control C(inout bit<8> v) {
    action a() { }
    table t {
        entries = { 1 : a(); }
        key = { v : exact; }
        actions = { a; }
        actions = { a; }
        key v : exact;
        default_action a();
        size = ;
    }
    table { actions = { a; } }
    apply { t.apply(); }
}
