// What an instruction of x86-64 does to memory, as far as loops need that look at it.
#pragma once

#include <cstdint>

namespace weft::verbs {

// Whether memory is after an instruction what it was before, but for the stack where it follows from the
// registers (calls, pushes). False, too, for all that this function does not know. `registers`: those of the
// thread that is about to carry it out, in the order of gregs of ucontext_t.
bool keeps_memory(const unsigned char* instruction, const long long* registers);

}  // namespace weft::verbs
