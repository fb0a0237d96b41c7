const bit<8> A = 1 $ 2;
const string S = "unclosed;
