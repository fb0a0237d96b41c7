const bit<8> a = 1 + ;
const bit<8> b = (1;
const bit<8> c = 1 ? 2;
const bit<8> d = {1, 2;
const bit<8> e = f(1, ;
const bit<8> g = h[1;
const bit<8> i = 1 2;
const bit<8> m = .;
