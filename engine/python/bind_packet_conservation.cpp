// Ledgers as Python dictionaries.
#include <pybind11/pybind11.h>

#include <map>
#include <string>

#include "observe/packet_conservation.hpp"
#include "observe/probe.hpp"
#include "python/bindings_support.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

const std::map<int64_t, std::string>& names_of_drops() {
  static const std::map<int64_t, std::string> names = [] {
    const auto pairs = drop_names();
    return std::map<int64_t, std::string>(pairs.begin(), pairs.end());
  }();
  return names;
}

}  // namespace

py::dict ledger_dict(const LedgerBalance& balance) {
  py::dict entered;
  for (size_t each = 0; each < static_cast<size_t>(LedgerSource::kCount); ++each) {
    const auto source = static_cast<LedgerSource>(each);
    entered[ledger_source_name(source)] = counter_dict(balance.entered(source));
  }
  py::dict left;
  for (size_t each = 0; each < static_cast<size_t>(LedgerSink::kCount); ++each) {
    const auto sink = static_cast<LedgerSink>(each);
    left[ledger_sink_name(sink)] = counter_dict(balance.left(sink));
  }
  py::dict dropped;
  for (const auto& [code, counter] : balance.dropped())
    dropped[py::str(names_of_drops().at(code))] = counter_dict(counter);
  return py::dict(
      "entered"_a = entered, "left"_a = left, "dropped"_a = dropped,
      "resized_bytes"_a = balance.resized_bytes(), "queued"_a = counter_dict(balance.held().queued),
      "in_flight"_a = counter_dict(balance.held().in_flight),
      "in_switches"_a = counter_dict(balance.held().in_switches),
      "missing"_a = py::dict("packets"_a = balance.missing_packets(), "bytes"_a = balance.missing_bytes()));
}

}  // namespace weft
