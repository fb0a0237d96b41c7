// Options declared once. A list names each with its type, default and meaning; the members of the struct,
// Python's keyword arguments and their types in the stub (python/options_dict.hpp) follow from it:
//
//   #define WEFT_RC_OPTIONS(OPTION)
//     OPTION(uint32_t, retry_limit, 7, "timeouts in a row without progress until the queue pair fails")
//   struct RcConfig {
//     WEFT_OPTIONS(RcConfig, WEFT_RC_OPTIONS)
//   };
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace weft {

[[noreturn]] inline void refuse_setting(const std::string& setting, uint64_t value, const char* valid) {
  throw std::invalid_argument(setting + " " + std::to_string(value) + " (valid: " + valid + ")");
}

}  // namespace weft

#define WEFT_OPTION_MEMBER(type, name, initial, meaning) type name = initial;
#define WEFT_OPTION_VISIT(type, name, initial, meaning) visit(#name, &Self::name, meaning);
#define WEFT_OPTIONS(Struct, LIST)                   \
  LIST(WEFT_OPTION_MEMBER)                           \
  template <class Visit>                             \
  static constexpr void each_option(Visit&& visit) { \
    using Self = Struct;                             \
    LIST(WEFT_OPTION_VISIT)                          \
  }
