// A string ends before its line does not: it may span lines.
const bit<8> a = "never closed;
