// Clients and stores of parameters in Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hosts/nic.hpp"
#include "hosts/parameter_client.hpp"
#include "hosts/parameter_store.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_columns.hpp"
#include "python/bind_request_client.hpp"
#include "python/bind_services.hpp"
#include "python/bindings_support.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

template <class T>
using Values = py::array_t<T, py::array::c_style | py::array::forcecast>;

ParameterPath path_of(Nic& nic, int port, uint16_t group_id, uint16_t epoch, uint32_t q_key,
                      const std::string& destination_mac, const std::string& destination_ip) {
  ParameterPath path;
  path.group_id = group_id;
  path.epoch = epoch;
  path.q_key = q_key;
  path.source_mac = nic.port_config(port).mac;
  path.destination_mac = parse_mac(destination_mac);
  path.destination_ip = parse_ip(destination_ip);
  path.source_ip = nic.own_address(port, path.destination_ip);
  return path;
}

// Knows the engine and keeps the executor alive.
class PythonParameterClient final : public ParameterClient {
 public:
  PythonParameterClient(Nic& nic, const ParameterPath& path, uint16_t client, const RequestConfig& requests,
                        std::vector<ParameterRequest> asked, std::shared_ptr<ScheduleExecutor> executor)
      : ParameterClient(path, client, requests, std::move(asked), nic.engine().packets(), *executor),
        engine(nic.engine()),
        executor_(std::move(executor)) {}

  Engine& engine;

 private:
  std::shared_ptr<ScheduleExecutor> executor_;
};

class PythonParameterStore final : public ParameterStore {
 public:
  PythonParameterStore(Nic& nic, const ParameterPath& path, uint32_t blocks, uint32_t clients,
                       uint32_t window)
      : ParameterStore(path, blocks, clients, window, nic.engine().packets()), engine(nic.engine()) {}

  Engine& engine;
};

std::vector<ParameterRequest> requests_of(const Values<uint32_t>& blocks, const Values<bool>& pushes) {
  if (blocks.size() != pushes.size())
    throw std::invalid_argument("blocks and pushes differ in length: " + std::to_string(blocks.size()) +
                                " and " + std::to_string(pushes.size()));
  std::vector<ParameterRequest> asked(static_cast<size_t>(blocks.size()));
  for (size_t each = 0; each < asked.size(); ++each) asked[each] = {blocks.data()[each], pushes.data()[each]};
  return asked;
}

std::shared_ptr<PythonParameterClient> make_client(
    Nic& nic, int port, std::shared_ptr<ScheduleExecutor> executor, const Values<uint32_t>& blocks,
    const Values<bool>& pushes, uint16_t window, uint16_t group_id, uint16_t epoch, uint32_t q_key,
    uint16_t client, const std::string& destination_mac, const std::string& destination_ip,
    TimePs retransmission_timeout_ps) {
  Engine& engine = nic.engine();
  std::vector<ParameterRequest> asked = requests_of(blocks, pushes);
  PythonGuard guard(engine);
  const RequestConfig requests{.window = window, .retransmission_timeout_ps = retransmission_timeout_ps};
  auto made = std::make_shared<PythonParameterClient>(
      nic, path_of(nic, port, group_id, epoch, q_key, destination_mac, destination_ip), client, requests,
      std::move(asked), std::move(executor));
  nic.attach(*made, port, parameter::kClientQueuePair);
  engine.adopt(made);
  return made;
}

std::shared_ptr<PythonParameterStore> make_store(Nic& nic, int port, uint32_t blocks, uint32_t clients,
                                                 uint32_t window, uint16_t group_id, uint16_t epoch,
                                                 uint32_t q_key, const std::string& destination_mac,
                                                 const std::string& own_ip) {
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  auto made = std::make_shared<PythonParameterStore>(
      nic, path_of(nic, port, group_id, epoch, q_key, destination_mac, own_ip), blocks, clients, window);
  nic.attach(*made, port, parameter::kStoreQueuePair);
  engine.adopt(made);
  return made;
}

Record<"ParameterRecords"> parameter_records(PythonParameterClient& client) {
  PythonGuard guard(client.engine);
  const std::vector<ParameterRecord>& records = client.records();
  return py::dict("started_ps"_a = column_of(records, &ParameterRecord::started_ps),
                  "finished_ps"_a = column_of(records, &ParameterRecord::finished_ps),
                  "block_version"_a = column_of(records, &ParameterRecord::block_version),
                  "writer"_a = column_of(records, &ParameterRecord::writer),
                  "writer_sequence"_a = column_of(records, &ParameterRecord::writer_sequence),
                  "cached"_a = column_of(records, &ParameterRecord::cached));
}

}  // namespace

void bind_parameters(py::module_& m) {
  declare_record<ParameterStoreCounters>("ParameterStoreCounters");
  using Client = PythonParameterClient;
  py::class_<ParameterClient, QueuePair, std::shared_ptr<ParameterClient>>(m, "_ParameterClient");
  py::class_<Client, ParameterClient, std::shared_ptr<Client>> client(
      m, "ParameterClient",
      R"doc(A worker's requests to a parameter store, one run of them: pulls of blocks, and pushes.

`window` requests, a power of two, are under way at once. Raises ValueError for parameters out of range.)doc");
  define_request_client(client);
  client
      .def(py::init(&make_client), "nic"_a, "port"_a, "executor"_a, py::kw_only(), "blocks"_a, "pushes"_a,
           "window"_a, "group_id"_a, "epoch"_a, "q_key"_a, "client"_a, "destination_mac"_a,
           "destination_ip"_a, "retransmission_timeout_ps"_a, py::keep_alive<1, 2>())
      .def("records", &parameter_records, "Columns of all requests, in their order.")
      .def(
          "spoilt_blocks",
          [](Client& client) {
            PythonGuard guard(client.engine);
            return client.spoilt_blocks();
          },
          "Answers whose block is no contents that anybody writes.");
  using Store = PythonParameterStore;
  py::class_<ParameterStore, QueuePair, std::shared_ptr<ParameterStore>>(m, "_ParameterStore");
  py::class_<Store, ParameterStore, std::shared_ptr<Store>>(
      m, "ParameterStore",
      R"doc(A host's versioned blocks, which clients pull and push. `own_ip` is of the IP version of its clients.)doc")
      .def(py::init(&make_store), "nic"_a, "port"_a, py::kw_only(), "blocks"_a, "clients"_a, "window"_a,
           "group_id"_a, "epoch"_a, "q_key"_a, "destination_mac"_a, "own_ip"_a, py::keep_alive<1, 2>())
      .def(
          "counters",
          [](Store& store) {
            PythonGuard guard(store.engine);
            return Record<"ParameterStoreCounters">(statistics_dict(store.counters()));
          },
          "What it has answered.");
}

}  // namespace weft
