// Headers as lists of their fields in wire order, from which the code that reads and writes them is made. A
// struct has a static function fields() that returns a tuple of them, and the lists are the same as those of
// weft/wire/, which tests compare.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "packets/byte_order.hpp"

namespace weft::wire {

// A field whose value is a member of the struct.
template <class Header, class Value>
struct MemberField {
  const char* name;
  size_t bits;
  Value Header::* member;
};

// A field that is written with the same value always, or that store_field() writes: the struct has no member
// for it.
struct PlainField {
  const char* name;
  size_t bits;
  uint64_t value;
};

template <class Header, class Value>
constexpr MemberField<Header, Value> field(const char* name, size_t bits, Value Header::* member) {
  return {name, bits, member};
}
constexpr PlainField plain(const char* name, size_t bits, uint64_t value) { return {name, bits, value}; }

template <class Field>
inline constexpr bool kIsMember = true;
template <>
inline constexpr bool kIsMember<PlainField> = false;

template <class Header>
constexpr size_t kFieldCount = std::tuple_size_v<decltype(Header::fields())>;

// Where each field begins, in bits, and behind the last where the header ends.
template <class Header>
constexpr auto kFieldsAt = std::apply(
    [](const auto&... fields) {
      std::array<size_t, sizeof...(fields) + 1> at{};
      const std::array<size_t, sizeof...(fields)> bits = {fields.bits...};
      for (size_t i = 0; i < bits.size(); ++i) at[i + 1] = at[i] + bits[i];
      return at;
    },
    Header::fields());

template <class Header>
constexpr size_t kHeaderBytes = kFieldsAt<Header>.back() / 8;

// The first byte boundary at or before a field that another field ends at: what lies between is stored at
// once.
template <class Header>
constexpr size_t chunk_of(size_t index) {
  while (kFieldsAt<Header>[index] % 8 != 0) --index;
  return kFieldsAt<Header>[index];
}

template <size_t Bytes>
inline uint64_t load_bytes(const uint8_t* at) {
  static_assert(Bytes >= 1 && Bytes <= 8,
                "a field that begins within a byte must end within the seven that follow it");
  if constexpr (Bytes == 1) {
    return at[0];
  } else if constexpr (Bytes == 2) {
    return load_big_endian<uint16_t>(at);
  } else if constexpr (Bytes == 4) {
    return load_big_endian<uint32_t>(at);
  } else if constexpr (Bytes == 8) {
    return load_big_endian<uint64_t>(at);
  } else {
    // In two, as compilers do not join loads of single bytes to such a number.
    constexpr size_t kFirst = std::bit_floor(Bytes);
    return load_bytes<kFirst>(at) << 8 * (Bytes - kFirst) | load_bytes<Bytes - kFirst>(at + kFirst);
  }
}

template <size_t Bytes>
inline void store_bytes(uint8_t* at, uint64_t value) {
  static_assert(Bytes >= 1 && Bytes <= 8, "fields that share bytes must have 64 bits together at most");
  if constexpr (Bytes == 1) {
    at[0] = static_cast<uint8_t>(value);
  } else if constexpr (Bytes == 2) {
    store_big_endian<uint16_t>(at, static_cast<uint16_t>(value));
  } else if constexpr (Bytes == 4) {
    store_big_endian<uint32_t>(at, static_cast<uint32_t>(value));
  } else if constexpr (Bytes == 8) {
    store_big_endian<uint64_t>(at, value);
  } else {
    constexpr size_t kFirst = std::bit_floor(Bytes);
    store_bytes<kFirst>(at, value >> 8 * (Bytes - kFirst));
    store_bytes<Bytes - kFirst>(at + kFirst, value);
  }
}

// The bits of a member's value as its field has them; negative numbers are two's complements of the member's
// width.
template <class Value>
constexpr uint64_t as_bits(Value value) {
  if constexpr (std::is_signed_v<Value>) {
    return static_cast<std::make_unsigned_t<Value>>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

constexpr uint64_t mask_of(size_t bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

// Bits of a header of `Size` bytes.
template <size_t Size, size_t Begin, size_t Bits>
inline uint64_t load_bits(const uint8_t* header) {
  constexpr size_t kFirst = Begin / 8;
  constexpr size_t kEnd = (Begin + Bits + 7) / 8;
  // One load of more bytes of the header takes less than several of those with the field only, and neighbours
  // that are in the same bytes share it.
  constexpr size_t kBytes = std::bit_ceil(kEnd - kFirst);
  constexpr size_t kFrom = kEnd < kBytes ? 0 : kEnd - kBytes;
  if constexpr (kFrom + kBytes <= Size) {
    return load_bytes<kBytes>(header + kFrom) >> (8 * (kFrom + kBytes) - Begin - Bits) & mask_of(Bits);
  } else {
    return load_bytes<kEnd - kFirst>(header + kFirst) >> (8 * kEnd - Begin - Bits) & mask_of(Bits);
  }
}

namespace details {

template <class Header, size_t Index>
inline void store_one(const Header& header, uint8_t* at, uint64_t& chunk) {
  constexpr auto kField = std::get<Index>(Header::fields());
  constexpr size_t kChunk = chunk_of<Header>(Index);
  constexpr size_t kBegin = kFieldsAt<Header>[Index];
  constexpr size_t kEnd = kFieldsAt<Header>[Index + 1];
  uint64_t value;
  if constexpr (kIsMember<std::remove_const_t<decltype(kField)>>) {
    value = as_bits(header.*kField.member) & mask_of(kField.bits);
  } else {
    value = kField.value;
  }
  if constexpr (kBegin == kChunk) {
    chunk = value;
  } else {
    chunk = chunk << kField.bits | value;
  }
  if constexpr (kEnd % 8 == 0) store_bytes<(kEnd - kChunk) / 8>(at + kChunk / 8, chunk);
}

template <class Header, size_t Index>
inline void load_one(Header& header, const uint8_t* at) {
  constexpr auto kField = std::get<Index>(Header::fields());
  if constexpr (kIsMember<std::remove_const_t<decltype(kField)>>) {
    using Value = std::remove_reference_t<decltype(header.*kField.member)>;
    header.*kField.member =
        static_cast<Value>(load_bits<kHeaderBytes<Header>, kFieldsAt<Header>[Index], kField.bits>(at));
  }
}

template <class Header>
constexpr size_t index_of(const char* name) {
  size_t index = 0;
  bool found = false;
  std::apply(
      [&](const auto&... fields) {
        auto is_it = [&](const char* other) {
          if (found) return;
          size_t i = 0;
          while (name[i] != 0 && name[i] == other[i]) ++i;
          found = name[i] == other[i];
          if (!found) ++index;
        };
        (is_it(fields.name), ...);
      },
      Header::fields());
  return index;  // kFieldCount if there is none: then what uses it does not compile
}

}  // namespace details

// Name of a field, as a template argument.
template <size_t Size>
struct Name {
  char text[Size]{};
  constexpr Name(const char (&from)[Size]) { std::copy_n(from, Size, text); }
};

// Writes a header and returns where it ends. Bits of a member beyond its field's are not written.
template <class Header>
inline uint8_t* store_header(const Header& header, uint8_t* at) {
  uint64_t chunk = 0;
  [&]<size_t... Index>(std::index_sequence<Index...>) {
    (details::store_one<Header, Index>(header, at, chunk), ...);
  }(std::make_index_sequence<kFieldCount<Header>>());
  return at + kHeaderBytes<Header>;
}

// Reads the members that fields fill; `at` has kHeaderBytes.
template <class Header>
inline void load_header(Header& header, const uint8_t* at) {
  [&]<size_t... Index>(std::index_sequence<Index...>) {
    (details::load_one<Header, Index>(header, at), ...);
  }(std::make_index_sequence<kFieldCount<Header>>());
}

// One field of a header at `at`, which has kHeaderBytes.
template <class Header, Name Field>
inline uint64_t load_field(const uint8_t* at) {
  constexpr size_t kIndex = details::index_of<Header>(Field.text);
  return load_bits<kHeaderBytes<Header>, kFieldsAt<Header>[kIndex], std::get<kIndex>(Header::fields()).bits>(
      at);
}

// Puts a value into a field that was written as 0.
template <class Header, Name Field>
inline void store_field(uint8_t* at, uint64_t value) {
  constexpr size_t kIndex = details::index_of<Header>(Field.text);
  constexpr size_t kBegin = kFieldsAt<Header>[kIndex];
  constexpr size_t kEnd = kFieldsAt<Header>[kIndex + 1];
  constexpr size_t kFirst = kBegin / 8;
  constexpr size_t kBytes = (kEnd + 7) / 8 - kFirst;
  if constexpr (kBegin % 8 == 0 && kEnd % 8 == 0) {
    store_bytes<kBytes>(at + kFirst, value);
  } else {
    store_bytes<kBytes>(at + kFirst,
                        load_bytes<kBytes>(at + kFirst) | value << (8 * (kFirst + kBytes) - kEnd));
  }
}

// Calls `visit(name, bits, member)` for each field that a member holds.
template <class Header, class Visit>
inline void for_each_member(Visit&& visit) {
  std::apply(
      [&](const auto&... fields) {
        auto one = [&](const auto& each) {
          if constexpr (kIsMember<std::remove_cvref_t<decltype(each)>>)
            visit(each.name, each.bits, each.member);
        };
        (one(fields), ...);
      },
      Header::fields());
}

// Whether a member has a value that its field does not hold.
template <class Header>
inline bool is_too_wide(const Header& header) {
  uint64_t beyond = 0;
  for_each_member<Header>(
      [&](const char*, size_t bits, auto member) { beyond |= as_bits(header.*member) & ~mask_of(bits); });
  return beyond != 0;
}

}  // namespace weft::wire
