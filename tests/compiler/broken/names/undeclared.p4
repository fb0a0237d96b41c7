header ethernet_t { bit<48> destination; }
control C(inout ethernet_t ethernet) {
    action forward() { ethernet.destnation = 1; }
    apply { forwrd(); ethernet.destination = undefined_name; }
}
