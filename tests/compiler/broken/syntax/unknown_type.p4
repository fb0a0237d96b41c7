struct headers_t { ethernt_t e; }
header ethernet_t { bit<48> d; }
control C(in heders_t h) { apply {} }
