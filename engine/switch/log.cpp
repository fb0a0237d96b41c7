#include "switch/log.hpp"

#include <algorithm>
#include <vector>

namespace weft {

namespace {

constexpr uint64_t kChunk =
    1'000'000'000'000'000'000u;  // the largest power of ten that a word holds, but for one
constexpr size_t kChunkDigits = 18;

// Divides the magnitude by kChunk in place; the remainder.
uint64_t divide(std::vector<uint64_t>& magnitude) {
  unsigned __int128 remainder = 0;
  for (size_t i = magnitude.size(); i-- > 0;) {
    remainder = remainder << 64 | magnitude[i];
    magnitude[i] = static_cast<uint64_t>(remainder / kChunk);
    remainder %= kChunk;
  }
  while (!magnitude.empty() && magnitude.back() == 0) magnitude.pop_back();
  return static_cast<uint64_t>(remainder);
}

void negate(std::vector<uint64_t>& words) {
  bool carry = true;
  for (uint64_t& word : words) {
    word = ~word + (carry ? 1 : 0);
    carry = carry && word == 0;
  }
}

}  // namespace

std::string to_decimal(std::span<const uint64_t> words) {
  std::vector<uint64_t> magnitude(words.begin(), words.end());
  const bool negative = !words.empty() && words.back() >> 63 != 0;
  if (negative) negate(magnitude);
  std::vector<uint64_t> chunks;
  do chunks.push_back(divide(magnitude));
  while (!magnitude.empty());
  std::string text = (negative ? "-" : "") + std::to_string(chunks.back());
  for (size_t i = chunks.size() - 1; i-- > 0;) {
    const std::string digits = std::to_string(chunks[i]);
    text += std::string(kChunkDigits - digits.size(), '0') + digits;
  }
  return text;
}

std::string format_message(const std::string& format, std::span<const uint64_t> values, size_t value_words) {
  std::string line;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format.compare(i, 2, "{}") == 0 && values.size() >= value_words && value_words != 0) {
      line += to_decimal(values.first(value_words));
      values = values.subspan(value_words);
      ++i;
    } else {
      line += format[i];
    }
  }
  return line;
}

}  // namespace weft
