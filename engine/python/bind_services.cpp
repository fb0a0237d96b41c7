// Clients of switches' services in Python.
#include "python/bind_services.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "hosts/nic.hpp"
#include "hosts/service_client.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_columns.hpp"
#include "python/bind_request_client.hpp"
#include "python/bindings_support.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

// Knows the engine and keeps the executor alive.
class PythonServiceClient final : public ServiceClient {
 public:
  PythonServiceClient(Nic& nic, const ServiceConfig& config, std::shared_ptr<ScheduleExecutor> executor)
      : ServiceClient(config, nic.engine().packets(), *executor),
        engine(nic.engine()),
        executor_(std::move(executor)) {}

  Engine& engine;

 private:
  std::shared_ptr<ScheduleExecutor> executor_;
};

ServiceOperation operation_of(const std::string& name) {
  if (name == "barrier") return ServiceOperation::kBarrier;
  if (name == "fetch_and_add") return ServiceOperation::kFetchAndAdd;
  if (name == "compare_and_swap") return ServiceOperation::kCompareAndSwap;
  throw std::invalid_argument("operation is '" + name +
                              "' (valid: 'barrier', 'fetch_and_add', 'compare_and_swap')");
}

std::shared_ptr<PythonServiceClient> make_client(Nic& nic, int port,
                                                 std::shared_ptr<ScheduleExecutor> executor,
                                                 const std::string& destination_mac,
                                                 const std::string& destination_ip,
                                                 const std::string& group_ip, ServiceConfig config) {
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  config.source_mac = nic.port_config(port).mac;
  config.destination_mac = parse_mac(destination_mac);
  config.destination_ip = parse_ip(destination_ip);
  config.source_ip = nic.own_address(port, config.destination_ip);
  auto client = std::make_shared<PythonServiceClient>(nic, config, std::move(executor));
  nic.attach_group(*client, port, parse_ip(group_ip));
  engine.adopt(client);
  return client;
}

Record<"ServiceRecords"> service_records(PythonServiceClient& client) {
  PythonGuard guard(client.engine);
  const std::vector<ServiceRecord>& records = client.records();
  py::array_t<uint64_t> values(static_cast<py::ssize_t>(records.size()));
  uint64_t* out = values.mutable_data();
  for (const ServiceRecord& record : records) *out++ = record.value;
  return py::dict("started_ps"_a = column_of(records, &ServiceRecord::started_ps),
                  "finished_ps"_a = column_of(records, &ServiceRecord::finished_ps), "value"_a = values,
                  "attempts"_a = column_of(records, &ServiceRecord::attempts));
}

}  // namespace

void bind_services(py::module_& m) {
  declare_record<ServiceCounters>("ServiceCounters");
  using Client = PythonServiceClient;
  const ServiceConfig defaults;
  py::class_<ServiceClient, QueuePair, std::shared_ptr<ServiceClient>>(m, "_ServiceClient");
  py::class_<Client, ServiceClient, std::shared_ptr<Client>> client(
      m, "ServiceClient",
      R"doc(A host's requests to a service of switches: barriers, or additions to counters, one run of them.

Requests go to `destination_ip` by way of `destination_mac`, answers come to `group_ip`. `cells` are used in turn;
`window` requests are under way at once. Raises ValueError for parameters out of range or a group that is taken.)doc");
  define_request_client(client);
  client
      .def(py::init([](Nic& nic, int port, std::shared_ptr<ScheduleExecutor> executor,
                       const std::string& operation, uint32_t requests, uint16_t cells, uint16_t window,
                       uint64_t addend, uint16_t group_id, uint16_t epoch, uint32_t q_key, uint16_t member,
                       const std::string& destination_mac, const std::string& destination_ip,
                       const std::string& group_ip, TimePs retransmission_timeout_ps,
                       uint16_t source_udp_port, uint32_t timeout_backoff_limit, uint32_t retry_limit) {
             ServiceConfig config;
             config.operation = operation_of(operation);
             config.requests.requests = requests;
             config.cells = cells;
             config.requests.window = window;
             config.addend = addend;
             config.group_id = group_id;
             config.epoch = epoch;
             config.q_key = q_key;
             config.member = member;
             config.requests.retransmission_timeout_ps = retransmission_timeout_ps;
             config.source_udp_port = source_udp_port;
             config.requests.timeout_backoff_limit = timeout_backoff_limit;
             config.requests.retry_limit = retry_limit;
             return make_client(nic, port, std::move(executor), destination_mac, destination_ip, group_ip,
                                config);
           }),
           "nic"_a, "port"_a, "executor"_a, py::kw_only(), "operation"_a, "requests"_a,
           "cells"_a = defaults.cells, "window"_a = defaults.requests.window, "addend"_a = defaults.addend,
           "group_id"_a, "epoch"_a, "q_key"_a, "member"_a, "destination_mac"_a, "destination_ip"_a,
           "group_ip"_a, "retransmission_timeout_ps"_a, "source_udp_port"_a = defaults.source_udp_port,
           "timeout_backoff_limit"_a = defaults.requests.timeout_backoff_limit,
           "retry_limit"_a = defaults.requests.retry_limit, py::keep_alive<1, 2>())
      .def("records", &service_records,
           "Columns of all requests, in their order; those without an answer have finished at 0.")
      .def(
          "counters",
          [](Client& client) {
            PythonGuard guard(client.engine);
            return Record<"ServiceCounters">(statistics_dict(client.counters()));
          },
          "What it has sent and received.");
}

}  // namespace weft
