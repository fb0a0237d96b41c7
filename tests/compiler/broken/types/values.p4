#include <core.p4>
#include <v1model.p4>
struct s_t { bit<8> x; bit<8> y; }
header h_t { bit<8> a; varbit<8> v; }
extern bit<8> run_time();
const bit<8> c = run_time();
const s_t missing = { x = 1 };
const s_t twice = { x = 1, x = 2, y = 3 };
const s_t foreign = { x = 1, z = 2 };
const s_t many = { 1, 2, 3 };
const s_t few = { 1 };
const s_t wrong = { 1, true };
const bool flag = 1;
const bit<8> text = "text";
const tuple<bit<8>> pair = { 1, 2 };
const bool asserted = static_assert(1 == 2, "one is not two");
const bool sure = static_assert(false);
const bit<8> shifted = 1 << 70000;
control C(inout h_t h, inout s_t s) {
    apply {
        h = s;
        s = { 1, 2, 3 };
        bool late = static_assert(s.x == 1);
        s = {#};
        s.x = ...;
        s.x = error.NoError;
    }
}
