const bit<8> A = 1
const bit<8> B = 2;
header h { bit<8> x }
