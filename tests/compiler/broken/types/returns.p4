bit<8> f(in bit<8> v) { if (v == 1) { return v; } }
void g() { return 1; }
bit<8> h() { return true; }
control C() { action a() { break; } apply { return 1; } }
