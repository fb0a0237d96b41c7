// The program of loops.p4, whose first loop has no end for some packets.
#include "loops.p4"
