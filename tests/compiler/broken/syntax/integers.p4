const bit<8> a = 8w;
const bit<8> b = 0x;
const bit<8> c = 9w0xZZ;
const bit<8> d = 12abc;
const bit<8> e = 8w0b12;
