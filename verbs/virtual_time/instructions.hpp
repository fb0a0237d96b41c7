// What an instruction of x86-64 does to memory, as far as loops need that look at it.
#pragma once

#include <cstdint>

namespace weft::verbs {

enum class ToMemory : uint8_t {
  kKeeps,    // memory is what it was before
  kPushes,   // but for the 8 bytes below the stack pointer
  kChanges,  // or this library does not know the instruction
};

// `registers`: those of the thread that is about to carry it out, in the order of gregs of ucontext_t.
ToMemory to_memory(const unsigned char* instruction, const long long* registers);

}  // namespace weft::verbs
