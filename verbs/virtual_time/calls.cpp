// What the provider says.
#include "common/next_function.hpp"
#include "common/virtual_time.hpp"
#include "counter.hpp"
#include "run.hpp"

namespace weft::verbs {
namespace {

constexpr VirtualTimeCalls kCalls = {
    .was_empty = [](const void* queue) { look(queue, Wait::kNews); },
    .did_something = did_something,
    .began = trap_counter,
};

}  // namespace
}  // namespace weft::verbs

WEFT_EXPORTED const weft::verbs::VirtualTimeCalls* weft_virtual_time_calls() {
  return weft::verbs::is_timed() ? &weft::verbs::kCalls : nullptr;
}
