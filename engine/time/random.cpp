#include "time/random.hpp"

namespace weft {

namespace {

uint64_t split_mix_64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// FNV-1a, 64 bits.
uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash;
}

}  // namespace

Rng::Rng(uint64_t seed, std::string_view stream_name) {
  uint64_t mixer = seed;
  mixer = split_mix_64(mixer) ^ hash_name(stream_name);
  for (uint64_t& word : state_) word = split_mix_64(mixer);
}

uint64_t Rng::below(uint64_t bound) {
  auto product = static_cast<unsigned __int128>(next_u64()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = -bound % bound;
    while (static_cast<uint64_t>(product) < threshold)
      product = static_cast<unsigned __int128>(next_u64()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace weft
