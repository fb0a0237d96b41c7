// Messages of log_msg().
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weft {

// A two's complement number, its least significant word first, in decimal.
std::string to_decimal(std::span<const uint64_t> words);

// `format` with each {} replaced by the next value; values are numbers of `value_words` words each. A {} for
// which there is no value stays.
std::string format_message(const std::string& format, std::span<const uint64_t> values, size_t value_words);

}  // namespace weft
