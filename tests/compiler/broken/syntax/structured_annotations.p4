@pair[a = 1, 2]
@twice[a = 1, a = 2]
const bit<8> c = 1;
@open[1, 2
const bit<8> d = 2;
