// Operations of jobs in Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/bound_job.hpp"
#include "collectives/job_operations.hpp"
#include "python/bindings.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

template <class T>
using Column = py::array_t<T, py::array::c_style>;

template <class T>
std::vector<T> values_of(const Column<T>& column) {
  return std::vector<T>(column.data(), column.data() + column.size());
}

// channel, address and key of where messages land, end of its share
using PathTuple = std::tuple<uint32_t, uint64_t, uint32_t, uint32_t>;

// group, place in it, variant
using CallTuple = std::tuple<uint32_t, uint32_t, uint64_t>;

std::shared_ptr<BoundJob> bind_job(std::shared_ptr<JobOperations> operations,
                                   const std::vector<std::vector<PathTuple>>& peers,
                                   const std::vector<std::shared_ptr<RunnableSchedule>>& calls,
                                   bool as_length, uint32_t run_tag, double compute_scale,
                                   double communication_share, uint64_t stripe_bytes,
                                   std::shared_ptr<FastForward> fast_forward, uint64_t run,
                                   const std::vector<CallTuple>& call_groups,
                                   const std::vector<std::pair<uint32_t, uint32_t>>& peer_groups) {
  JobBinding binding{
      .peers = {},
      .calls = {calls.begin(), calls.end()},
      .as_length = as_length,
      .run_tag = run_tag,
      .compute_scale = compute_scale,
      .communication_share = communication_share,
      .stripe_bytes = stripe_bytes,
      .fast_forward = {.of_fabric = std::move(fast_forward), .run = run, .calls = {}, .peers = {}}};
  for (const auto& [group, place, variant] : call_groups)
    binding.fast_forward.calls.push_back({group, place, variant});
  for (const auto& [to, from] : peer_groups) binding.fast_forward.peers.push_back({to, from});
  for (const std::vector<PathTuple>& paths : peers) {
    std::vector<PeerPath>& own = binding.peers.emplace_back();
    for (const auto& [channel, address, rkey, end_share] : paths) {
      own.push_back({channel, address, rkey, end_share});
    }
  }
  return std::make_shared<BoundJob>(std::move(operations), std::move(binding));
}

}  // namespace

void bind_jobs(py::module_& m) {
  py::class_<JobOperations, std::shared_ptr<JobOperations>>(
      m, "JobOperations",
      R"doc(The operations of a rank, or of several, as columns; see weft.traffic.jobs.Operations.

`number` is that of the transfer among those of its peer, or of the collective among those of its group;
`traffic_kind` that by which ports count what it sends (TransmitPort.count_by_kind). Raises
ValueError, naming the operation, for values out of range and for columns that do not fit each other.)doc")
      .def(py::init([](const Column<uint8_t>& kind, const Column<int16_t>& stream,
                       const Column<int64_t>& duration_ps, const Column<int64_t>& size_bytes,
                       const Column<int32_t>& target, const Column<int64_t>& number,
                       const Column<uint8_t>& traffic_kind, const Column<int64_t>& after_offsets,
                       const Column<int32_t>& after, const Column<bool>& after_start) {
             const bool* starts = after_start.data();
             return std::make_shared<JobOperations>(
                 OperationColumns{.kind = values_of(kind),
                                  .stream = values_of(stream),
                                  .duration_ps = values_of(duration_ps),
                                  .size_bytes = values_of(size_bytes),
                                  .target = values_of(target),
                                  .number = values_of(number),
                                  .traffic_kind = values_of(traffic_kind),
                                  .after_offsets = values_of(after_offsets),
                                  .after = values_of(after),
                                  .after_start = {starts, starts + after_start.size()}});
           }),
           "kind"_a, "stream"_a, "duration_ps"_a, "size_bytes"_a, "target"_a, "number"_a, "traffic_kind"_a,
           "after_offsets"_a, "after"_a, "after_start"_a)
      .def("__len__", &JobOperations::size)
      .def_property_readonly("largest_received_bytes", &JobOperations::largest_received_bytes,
                             "The size of the largest message that is received.");
  py::class_<BoundJob, RunnableSchedule, std::shared_ptr<BoundJob>>(
      m, "BoundJob", R"doc(A rank's part of a job over its channels. For one run.

`peers` are, by slot, the paths to each: the executor's channel, address and key of where messages land, and the
end of the path's share of a striped message in 1/65536. `calls` are, by slot, the schedules of collectives.
While a collective or a message of the rank is under way, computations go on at 1 - `communication_share` of
their rate. Messages from `stripe_bytes` on are striped, smaller ones take the paths in turn. With
`fast_forward`, `run` is the executor's number of the job, `call_groups` have the group there, the rank's
place in it and the variant of each call, `peer_groups` the groups of messages to each peer and from it.
Raises ValueError for what the operations need and lack.)doc")
      .def(py::init(&bind_job), "operations"_a, py::kw_only(), "peers"_a, "calls"_a, "as_length"_a,
           "run_tag"_a, "compute_scale"_a, "communication_share"_a, "stripe_bytes"_a,
           "fast_forward"_a = nullptr, "run"_a = 0, "call_groups"_a = std::vector<CallTuple>(),
           "peer_groups"_a = std::vector<std::pair<uint32_t, uint32_t>>())
      .def_property_readonly("step_count", &BoundJob::step_count);
}

}  // namespace weft
