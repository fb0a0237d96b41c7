#include <core.p4>
const bit<8> KNOWN = 3;
@text["a" ++ "b", KNOWN + 1, true]
@keys[a=1, a=2]
@values[{ 1, 2 }, MISSING]
@name(4)
struct s { bit<8> a; }
@p4runtime_translation("uri", bool) type bit<8> translated;
extern main { }
