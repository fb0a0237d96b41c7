const bit<8> A = 1;
const bit<8> A = 2;
error { Broken, Broken }
header h { bit<8> x; bit<16> x; }
enum E { one, one }
