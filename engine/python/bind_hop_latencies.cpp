// Latencies of hops in Python.
#include "python/bind_hop_latencies.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <vector>

#include "observe/hop_latencies.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

py::dict path_dict(const HopLatencies::Path& path) {
  py::list hops;
  for (size_t number = 0; number < path.hop_count; ++number) {
    const HopLatencies::Hop& hop = path.hops[number];
    hops.append(py::dict("latency_ns"_a = hop.latency_ns, "queue_cells"_a = hop.queue_cells,
                         "counts"_a = py::cast(hop.counts)));
  }
  return py::dict("peer"_a = path.peer, "plane"_a = path.plane, "path_id"_a = path.path_id,
                  "overflow"_a = path.overflow, "stacks"_a = path.stacks, "hops"_a = hops);
}

Typed<"list[PathLatencies]", py::list> paths_of(PythonHopLatencies& latencies) {
  std::vector<HopLatencies::Path> paths;
  {
    PythonGuard guard(latencies.engine());
    paths = latencies.paths();
  }
  py::list found;
  for (const HopLatencies::Path& path : paths) found.append(path_dict(path));
  return found;
}

}  // namespace

void bind_hop_latencies(py::module_& m) {
  py::class_<PythonHopLatencies, std::shared_ptr<PythonHopLatencies>>(
      m, "HopLatencies",
      R"doc(What packets have met at each hop of their paths, by the INT stacks that acknowledgements bring back.

Queue pairs that are to count there are told so (`RcQueuePair.count_hops`). A host has 1,024 paths at most.)doc")
      .def(py::init([](Engine& engine) { return make_component<PythonHopLatencies>(engine, engine); }),
           "engine"_a, py::keep_alive<1, 2>())
      .def("paths", &paths_of,
           R"doc(Return what is known of each path.

A hop's latency_ns is a sum over all stacks of the time since the packet left the hop before, counts are how
many were in each bucket; of the first hop both are 0. queue_cells is a sum of what waited as packets left, in
cells of 80 bytes.)doc")
      .def(
          "stacks_beyond_limit",
          [](PythonHopLatencies& latencies) {
            PythonGuard guard(latencies.engine());
            return latencies.stacks_beyond_limit();
          },
          "Return how many stacks were of paths beyond the limit.")
      .def(
          "reset",
          [](PythonHopLatencies& latencies) {
            PythonGuard guard(latencies.engine());
            latencies.reset();
          },
          "Forget everything.");
  m.def(
      "hop_latency_edges_ns",
      [] { return std::vector<uint32_t>(HopLatencies::kEdgesNs.begin(), HopLatencies::kEdgesNs.end()); },
      "Return the upper edges of the buckets of HopLatencies; one bucket more is without.");
}

}  // namespace weft
