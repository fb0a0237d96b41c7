header { bit<8> a; }
struct s { bit<8>; bit<8> b }
enum e { A B }
typedef bit<8>;
const bit<8> = 3;
control C() { }
parser P() { state start { transition; } state { transition accept; } }
action (bit<8> x) { }
bit<8> = 4;
error { , }
