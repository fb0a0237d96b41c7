struct pair { bit<8> a; bit<16> b; }
const pair P = { a = 1 };
const pair Q = { a = 1, b = 2, c = 3 };
const pair R = { 1, 2, 3 };
const bit<8> F = pair;
enum bit<4> Kind { small = 1, large = 16, none }
