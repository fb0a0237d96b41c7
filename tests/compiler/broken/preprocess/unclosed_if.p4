#if 1
const bit<8> A = 1;
