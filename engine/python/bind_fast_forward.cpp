// Fast-forward of jobs in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <utility>
#include <vector>

#include "collectives/fast_forward.hpp"
#include "collectives/schedule_executor.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"
#include "time/partitions.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

using PartitionsGuard = PythonGuardOf<Partitions>;

// With the run that it is of, for its lock.
struct PythonFastForward : FastForward {
  PythonFastForward(Partitions& owner, double tolerance) : FastForward(owner, tolerance), partitions(owner) {}
  Partitions& partitions;
};

Record<"FastForwardCounts"> counts_dict(PythonFastForward& self) {
  PartitionsGuard guard(self.partitions);
  const FastForwardCounts& counts = self.counts();
  py::dict dict = statistics_dict(counts);
  dict["largest_deviation"] = counts.largest_deviation;
  dict["skipped_packets"] = counts.skipped.network.data_packets_sent;
  dict["skipped_bytes"] = counts.skipped.network.data_bytes_sent;
  dict["skipped_scale_up_messages"] = counts.skipped.scale_up.sent_messages;
  dict["skipped_scale_up_bytes"] = counts.skipped.scale_up.sent_bytes;
  return dict;
}

}  // namespace

void bind_fast_forward(py::module_& m) {
  declare_record<FastForwardCounts>(
      "FastForwardCounts",
      {{"largest_deviation", "float", "of a compared one, as part of the longest time that a rank took"},
       {"skipped_packets", "int", "data packets of repeated operations, between hosts"},
       {"skipped_bytes", "int", "their payload"},
       {"skipped_scale_up_messages", "int", "messages of repeated operations, within hosts"},
       {"skipped_scale_up_bytes", "int", "their bytes"}});
  py::class_<FastForward, std::shared_ptr<FastForward>>(m, "_FastForward");
  py::class_<PythonFastForward, FastForward, std::shared_ptr<PythonFastForward>>(
      m, "FastForward",
      R"doc(Repeats operations of jobs that take as long each time without their packets.

Ranks are the numbers of executors. Raises ValueError for a tolerance that is not above 0 and below 1.)doc")
      .def(py::init([](Partitions& partitions, double tolerance) {
             auto made = std::make_shared<PythonFastForward>(partitions, tolerance);
             PartitionsGuard guard(partitions);
             partitions.adopt(made);
             return made;
           }),
           "partitions"_a, "tolerance"_a, py::keep_alive<1, 2>())
      .def(
          "set_rank",
          [](PythonFastForward& self, uint32_t rank, Engine& engine, ScheduleExecutor& executor) {
            PartitionsGuard guard(self.partitions);
            self.set_rank(rank, engine, executor);
          },
          "rank"_a, "engine"_a, "executor"_a,
          "Make a rank's executor known. Raises ValueError for an engine of another run.")
      .def(
          "add_port",
          [](PythonFastForward& self, uint64_t rate_bps) {
            PartitionsGuard guard(self.partitions);
            return self.add_port(rate_bps);
          },
          "rate_bps"_a, "Add a port, or something else that operations share; returns its number.")
      .def(
          "add_group",
          [](PythonFastForward& self, std::vector<uint32_t> ranks,
             const std::vector<std::vector<std::pair<uint32_t, uint64_t>>>& ports, uint32_t alike,
             TimePs latency_ps, bool is_message, bool may_repeat) {
            PartitionsGuard guard(self.partitions);
            std::vector<std::vector<PortUse>> uses;
            for (const auto& of_place : ports) {
              uses.emplace_back();
              for (const auto& [port, rate_bps] : of_place) uses.back().push_back({port, rate_bps});
            }
            return self.add_group({.ranks = std::move(ranks),
                                   .ports = std::move(uses),
                                   .alike = alike,
                                   .latency_ps = latency_ps,
                                   .is_message = is_message,
                                   .may_repeat = may_repeat});
          },
          "ranks"_a, py::kw_only(), "ports"_a, "alike"_a, "latency_ps"_a, "is_message"_a, "may_repeat"_a,
          R"doc(Add the ranks of collectives, or the sender and the receiver of messages; returns the group's number.

`ports` are, for each of the ranks, the ports that its traffic takes, each with its highest rate there in bit/s.
Operations disturb each other at a port if their rates together exceed its rate. In groups with the same number
`alike` an operation of the same variant takes as long; `latency_ps` of that does not depend on its bytes.

Raises ValueError for a rank or a port that is not known.)doc")
      .def(
          "set_latency",
          [](PythonFastForward& self, uint32_t group, uint64_t variant, TimePs latency_ps) {
            PartitionsGuard guard(self.partitions);
            self.set_latency(group, variant, latency_ps);
          },
          "group"_a, "variant"_a, "latency_ps"_a,
          R"doc(Say which part of the time of a group's operations of a variant does not depend on their bytes.

Raises ValueError for a group that is not known.)doc")
      .def(
          "forget",
          [](PythonFastForward& self) {
            PartitionsGuard guard(self.partitions);
            self.forget();
          },
          "Forget all ports and groups and what was found out, between runs.")
      .def_property_readonly("counts", &counts_dict);
}

}  // namespace weft
