#include <v1model.p4>
const bit<8> A = 1;
