// Clients of a NIC by verbs, in Python: see engine/verbs/.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "python/bind_codec.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/registered_memory.hpp"
#include "python/shared_receives.hpp"
#include "verbs/client.hpp"
#include "verbs/client_queue_pair.hpp"
#include "verbs/client_shared_queue.hpp"
#include "verbs/protocol.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;
using verbs::Client;
using verbs::ClientQueuePair;

namespace {

// The names in "(a, b, c)".
std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  std::string name;
  for (const char each : list) {
    if (each == '(' || each == ' ') continue;
    if (each != ',' && each != ')') {
      name += each;
      continue;
    }
    names.push_back(std::move(name));
    name.clear();
  }
  return names;
}

#define WEFT_VERBS_TEXT(...) #__VA_ARGS__
#define WEFT_VERBS_NAMES(name, question, answer) \
  {#name, names_in(WEFT_VERBS_TEXT(question)), names_in(WEFT_VERBS_TEXT(answer))},
using Names = std::tuple<std::string, std::vector<std::string>, std::vector<std::string>>;
std::vector<Names> requests() { return {WEFT_VERBS_REQUESTS(WEFT_VERBS_NAMES)}; }
#undef WEFT_VERBS_NAMES

ClientQueuePair::Stage stage_of(const std::string& name) {
  if (name == "idle") return ClientQueuePair::Stage::kIdle;
  if (name == "receives") return ClientQueuePair::Stage::kReceives;
  if (name == "both") return ClientQueuePair::Stage::kBoth;
  throw std::invalid_argument("stage " + name);
}

}  // namespace

void bind_verbs(py::module_& m) {
  m.def("verbs_requests", &requests,
        "Names of the requests of a verbs provider by number, of their fields and of their answers' fields.");
  m.attr("VERBS_MAGIC") = verbs::kMagic;
  m.attr("VERBS_VERSION") = verbs::kVersion;
  m.attr("VERBS_MESSAGE_BYTES") = verbs::kMaxRequestBytes;
  m.attr("VERBS_TYPE_MRC") = static_cast<uint32_t>(verbs::kTypeMrc);

  // Signatures name these, so they come first.
  using Channel = verbs::EventChannel;
  py::class_<Channel, std::shared_ptr<Channel>>(m, "VerbsChannel", "Sends a client completion events.")
      .def_property_readonly("descriptor", &Channel::clients_end);
  py::class_<ClientQueuePair, CompletionHandler, std::shared_ptr<ClientQueuePair>> queue_pair(
      m, "VerbsQueuePair", "A queue pair of a client, which its counterpart in the engine reports to.");
  py::class_<Client, std::shared_ptr<Client>> client(m, "VerbsClient",
                                                     R"doc(What a process has made at a NIC by verbs.

Objects have numbers of the client's own, keys and queue pairs those of the NIC. `memory` is a descriptor of
/proc/PID/mem, which the client takes over. Errors are OSError with the errno that the verb has.)doc");
  const auto limit = [&](const char* name, uint64_t value) { client.attr(name) = value; };
  limit("MAX_DOMAINS", Client::kMaxDomains);
  limit("MAX_REGIONS", Client::kMaxRegions);
  limit("MAX_REGION_BYTES", Client::kMaxRegionBytes);
  limit("MAX_COMPLETION_QUEUES", Client::kMaxCompletionQueues);
  limit("MAX_COMPLETIONS", Client::kMaxCompletions);
  limit("MAX_QUEUE_PAIRS", Client::kMaxQueuePairs);
  limit("MAX_SHARED_QUEUES", Client::kMaxSharedQueues);
  limit("MAX_ADDRESS_HANDLES", Client::kMaxAddressHandles);
  limit("MAX_REQUESTS", Client::kMaxRequests);
  limit("MAX_PIECES", Client::kMaxPieces);
  limit("MAX_INLINE_BYTES", Client::kMaxInlineBytes);

  // Most methods are calls under the engine's lock.
  const auto method = [&]<class Result, class... Arguments>(
                          const char* name, Result (Client::*function)(Arguments...), auto... extra) {
    client.def(
        name,
        [function](Client& self, Arguments... arguments) {
          PythonGuard guard(self.nic().engine());
          return (self.*function)(arguments...);
        },
        extra...);
  };
  client.def(py::init([](std::shared_ptr<Nic> nic, int memory) {
               PythonGuard guard(nic->engine());
               auto made = std::make_shared<Client>(*nic, memory);
               Client* client_made = made.get();
               return std::shared_ptr<Client>(client_made, [made = std::move(made), nic](Client*) mutable {
                 PythonGuard last(nic->engine());
                 made.reset();
               });
             }),
             "nic"_a, "memory"_a, py::keep_alive<1, 2>());  // and the NIC keeps its engine
  client.def(
      "set_news_listener",
      [](Client& self, std::shared_ptr<verbs::VirtualClockPage> clock, Callback listener) {
        auto callback = std::make_shared<PythonCallback>(std::move(listener));
        PythonGuard guard(self.nic().engine());
        self.set_news_listener(std::move(clock), [callback] { (*callback)(); });
      },
      "clock"_a, "listener"_a, R"doc(In virtual time: set the page's time and call listener() before the first
completion or event since the last take_news(); the run ends with the event that has it.)doc");
  method("take_news", &Client::take_news, "Whether there has been any.");
  method("take_posted", &Client::take_posted,
         "Take what it has posted, which the engine does itself under the real clock.");
  method("events_sent", &Client::events_sent, "How many events it has been sent.");
  method("watch_memory", &Client::watch_memory, "watch"_a,
         "Whether what the NIC writes to its memory is news, too.");
  client.def_property_readonly("page_descriptor", &Client::page_descriptor);
  client.def_property_readonly("doorbell_descriptor", &Client::doorbell_descriptor);
  client.def_property_readonly("events_descriptor",
                               [](Client& self) { return self.asynchronous_events().clients_end(); });
  client.def(
      "create_domain",
      [](Client& self, const std::shared_ptr<MemoryDomain>& domain) {
        PythonGuard guard(self.nic().engine());
        return self.create_domain(std::shared_ptr<MemoryRegistry>(domain, &domain->registry));
      },
      "domain"_a, "`domain`: where its queue pairs look keys up.");
  method("destroy_domain", &Client::destroy_domain, "domain"_a);
  method("register_memory", &Client::register_memory, "domain"_a, "address"_a, "length_bytes"_a,
         "virtual_address"_a, "access"_a);
  method("register_again", &Client::register_again, "key"_a, "domain"_a, "address"_a, "length_bytes"_a,
         "virtual_address"_a, "access"_a);
  method("deregister_memory", &Client::deregister_memory, "key"_a);
  method("create_completion_queue", &Client::create_completion_queue, "entries"_a, "channel"_a, "cookie"_a);
  method("resize_completion_queue", &Client::resize_completion_queue, "queue"_a, "entries"_a);
  client.def(
      "destroy_completion_queue",
      [](Client& self, uint32_t queue) {
        PythonGuard guard(self.nic().engine());
        const Client::ReadEvents read = self.destroy_completion_queue(queue);
        return std::tuple(read.completion, read.asynchronous);
      },
      "queue"_a, "How many events of both kinds its client has read.");
  client.def(
      "completion_queue",
      [](Client& self, uint32_t queue) {
        PythonGuard guard(self.nic().engine());
        const verbs::CompletionRing& ring = self.completion_queue(queue);
        return std::tuple(ring.descriptor(), ring.size());
      },
      "queue"_a, "Its descriptor and its entries.");

  method("create_channel", &Client::create_channel);
  method("destroy_channel", &Client::destroy_channel, "channel"_a);

  client.def(
      "create_queue_pair",
      [](Client& self, uint32_t domain, uint32_t type, uint32_t send_queue, uint32_t receive_queue,
         uint32_t shared_queue, const std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>& size,
         bool signals_all, uint64_t cookie) {
        PythonGuard guard(self.nic().engine());
        const auto [sends, receives, send_pieces, receive_pieces, inline_bytes] = size;
        return self.create_queue_pair(domain, static_cast<verbs::QueuePairType>(type), send_queue,
                                      receive_queue, shared_queue,
                                      {.sends = sends,
                                       .receives = receives,
                                       .send_pieces = send_pieces,
                                       .receive_pieces = receive_pieces,
                                       .inline_bytes = inline_bytes},
                                      signals_all, cookie);
      },
      "domain"_a, "type"_a, "send_queue"_a, "receive_queue"_a, "shared_queue"_a, "size"_a, "signals_all"_a,
      "cookie"_a, "`size`: sends, receives, pieces of each, and bytes inline.");
  method("queue_pair", &Client::queue_pair, "handle"_a, py::keep_alive<0, 1>());
  method("destroy_queue_pair", &Client::destroy_queue_pair, "handle"_a);

  method("create_shared_queue", &Client::create_shared_queue, "domain"_a, "requests"_a, "pieces"_a,
         "cookie"_a);
  method("destroy_shared_queue", &Client::destroy_shared_queue, "handle"_a);
  client.def("ring_of_shared_queue", &Client::ring_of_shared_queue, "handle"_a);
  client.def(
      "shared_queue",
      [](Client& self, uint32_t handle) {
        PythonGuard guard(self.nic().engine());
        const verbs::ClientSharedQueue& queue = self.shared_queue(handle);
        return std::tuple(queue.descriptor(), queue.entries(), queue.max_pieces(), queue.limit());
      },
      "handle"_a, "Its descriptor, its entries, pieces of each, its limit.");
  client.def(
      "shared_receives",
      [](Client& self, uint32_t handle) {
        PythonGuard guard(self.nic().engine());
        auto shared = std::make_shared<PythonSharedReceives>(self.nic());
        shared->receives = self.shared_queue(handle).receives();
        return shared;
      },
      "handle"_a, py::keep_alive<0, 1>());
  client.def(
      "arm_shared_queue",
      [](Client& self, uint32_t handle, size_t limit) {
        PythonGuard guard(self.nic().engine());
        self.shared_queue(handle).arm(limit);
      },
      "handle"_a, "limit"_a);
  client.def(
      "create_address_handle",
      [](Client& self, uint32_t domain, int port, const std::string& ip, const std::string& mac,
         std::optional<uint8_t> dscp, uint8_t hop_limit, uint32_t flow_label) {
        PythonGuard guard(self.nic().engine());
        return self.create_address_handle(domain, port,
                                          {.ip = parse_ip(ip),
                                           .mac = parse_mac(mac),
                                           .dscp = dscp,
                                           .hop_limit = hop_limit,
                                           .flow_label = flow_label});
      },
      "domain"_a, py::kw_only(), "port"_a, "ip"_a, "mac"_a, "dscp"_a, "hop_limit"_a, "flow_label"_a);
  method("destroy_address_handle", &Client::destroy_address_handle, "handle"_a);

  const auto engine_call = [](auto&& call) {
    return [call](ClientQueuePair& self) {
      PythonGuard guard(self.client().nic().engine());
      return call(self);
    };
  };
  queue_pair.def_property_readonly("number", &ClientQueuePair::number)
      .def_property_readonly("descriptor", &ClientQueuePair::descriptor)
      .def_property_readonly("send_entries", &ClientQueuePair::send_entries)
      .def_property_readonly("receive_entries", &ClientQueuePair::receive_entries)
      .def_property_readonly("send_entry_bytes", &ClientQueuePair::send_entry_bytes)
      .def_property_readonly("has_failed",
                             engine_call([](ClientQueuePair& self) { return self.has_failed(); }))
      .def_property_readonly("has_sends", engine_call([](ClientQueuePair& self) { return self.has_sends(); }))
      .def(
          "connect",
          [](ClientQueuePair& self, std::shared_ptr<WritingQueuePair> counterpart) {
            PythonGuard guard(self.client().nic().engine());
            self.connect(std::move(counterpart));
          },
          "counterpart"_a)
      .def(
          "connect_datagrams",
          [](ClientQueuePair& self, std::shared_ptr<UdQueuePair> counterpart, int port) {
            PythonGuard guard(self.client().nic().engine());
            self.connect(std::move(counterpart), port);
          },
          "counterpart"_a, "port"_a)
      .def("reset", engine_call([](ClientQueuePair& self) { self.reset(); }))
      .def(
          "drain",
          [](ClientQueuePair& self, bool notifies) {
            PythonGuard guard(self.client().nic().engine());
            self.drain(notifies);
          },
          "notifies"_a, "Begin nothing more; `notifies`: raise an event when nothing is under way.")
      .def("fail", engine_call([](ClientQueuePair& self) { self.fail(); }))
      .def(
          "set_stage",
          [](ClientQueuePair& self, const std::string& stage) {
            PythonGuard guard(self.client().nic().engine());
            self.set_stage(stage_of(stage));
          },
          "stage"_a, R"doc(What is taken from its rings: "idle", "receives", or "both", sends too.)doc");
}

}  // namespace weft
