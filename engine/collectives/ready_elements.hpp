// Which elements of a rank's data are ready, and who waits for others to be.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collectives/element_table.hpp"

namespace weft {

// Does not distinguish elements that were ready from the start: what waits, waits for elements that will be
// marked.
class ReadyElements {
 public:
  // Returns the tokens, in ascending order, for which all elements are ready now. None of these was marked
  // before.
  std::vector<uint32_t> mark(const Elements& elements);
  // Returns whether all are ready; if not, mark() will return the token.
  bool await(const Elements& elements, uint32_t token);

 private:
  struct Waiting {
    Elements elements;
    uint64_t left;
    std::vector<uint32_t> tokens;
  };

  uint64_t ready_among(const Elements& elements) const;

  std::map<uint64_t, uint64_t> ready_;        // start to stop; ranges that touch are one
  std::multimap<uint64_t, Waiting> waiting_;  // by start
  uint64_t longest_ = 0;                      // count of what was waited for
};

}  // namespace weft
