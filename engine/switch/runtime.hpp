// What generated code calls and addresses, published to switch/lowering by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace weft {

// Function name -> address, for the linker of generated code.
std::map<std::string, uintptr_t> switch_runtime_symbols();

// "Struct.member" -> byte offset, and "sizeof(Struct)" -> bytes, of the structs in switch/abi.hpp and
// constants.
std::map<std::string, uint64_t> switch_abi();

}  // namespace weft
