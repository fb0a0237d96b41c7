// Packet conservation in Python.
#include <pybind11/pybind11.h>

#include <map>
#include <span>
#include <string>

#include "observe/packet_conservation.hpp"
#include "observe/probe.hpp"
#include "python/bindings.hpp"
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

Record<"ConservationCounts"> conservation_dict(const ConservationBalance& balance) {
  py::dict entered;
  for (size_t each = 0; each < packet_origins().size(); ++each)
    entered[packet_origins()[each].name] = counter_dict(balance.entered(static_cast<PacketOrigin>(each)));
  py::dict left;
  for (size_t each = 0; each < packet_ends().size(); ++each)
    left[packet_ends()[each].name] = counter_dict(balance.left(static_cast<PacketEnd>(each)));
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

void bind_packet_conservation(py::module_& m) {
  const auto meanings = [](std::span<const NameAndMeaning> names) {
    Record<"dict[str, str]"> dict;
    for (const auto& [name, meaning] : names) dict[name] = meaning;
    return dict;
  };
  m.def(
      "packet_origins", [meanings] { return meanings(packet_origins()); },
      "What packets that entered are, by the keys of `entered` in packet conservation.");
  m.def(
      "packet_ends", [meanings] { return meanings(packet_ends()); },
      "What packets that left are, by the keys of `left` in packet conservation.");
}

}  // namespace weft
