// A switch's packets for Python: replication, packets in and out, stream events, traces and logs.
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bind_switch.hpp"
#include "python/typed.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace weft {
namespace {

using AskPython = Typed<"collections.abc.Callable[[int, bytes], bool]", py::function>;

SearchValue value_of(const py::handle& number) {
  const py::int_ low_bits(std::numeric_limits<uint64_t>::max());
  return {py::int_(number.attr("__rshift__")(64)).cast<uint64_t>(),
          py::int_(number.attr("__and__")(low_bits)).cast<uint64_t>()};
}

// As dictionaries, in the form of weft/switch/debug/searches.py.
std::vector<SearchTest> tests_of(const py::list& tests) {
  std::vector<SearchTest> result;
  for (const py::handle& item : tests) {
    SearchTest test;
    test.site = item["site"].cast<uint32_t>();
    test.part = item["part"].cast<uint32_t>();
    test.kind = static_cast<SearchTest::Kind>(item["kind"].cast<uint8_t>());
    test.is_certain = item["is_certain"].cast<bool>();
    test.assigns = item["assigns"].cast<bool>();
    test.offset = item["offset"].cast<uint32_t>();
    test.size_bytes = item["size_bytes"].cast<uint32_t>();
    test.little_endian = item["little_endian"].cast<bool>();
    test.shift = item["shift"].cast<uint32_t>();
    test.mask = value_of(item["mask"]);
    test.sign = static_cast<SearchTest::Sign>(item["sign"].cast<uint8_t>());
    test.constant = value_of(item["constant"]);
    test.zero_at = item["zero_at"].cast<uint32_t>();
    test.zero_bytes = item["zero_bytes"].cast<uint32_t>();
    result.push_back(test);
  }
  return result;
}

std::function<bool(size_t, std::span<const uint8_t>)> asking(py::function function) {
  // Released with the GIL, as whoever drops the search need not hold it.
  const std::shared_ptr<py::function> held(new py::function(std::move(function)), [](py::function* dropped) {
    py::gil_scoped_acquire acquire;
    delete dropped;
  });
  return [held](size_t test, std::span<const uint8_t> bytes) {
    py::gil_scoped_acquire acquire;
    return (*held)(test, py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size())).cast<bool>();
  };
}

}  // namespace

void bind_switch_packets(SwitchClass& cls) {
  using Replicas = std::vector<std::pair<uint32_t, uint32_t>>;
  const auto replicas_of = [](const Replicas& pairs) {
    std::vector<Replica> result;
    for (const auto& [port, instance] : pairs) result.push_back(Replica{port, instance});
    return result;
  };
  cls.def(
         "multicast_group_set",
         [replicas_of](Switch& self, uint32_t id, const Replicas& replicas) {
           PythonGuard guard(self.engine());
           self.replication().multicast_groups[id] = replicas_of(replicas);
         },
         "id"_a, "replicas"_a)
      .def(
          "multicast_group_delete",
          [](Switch& self, uint32_t id) {
            PythonGuard guard(self.engine());
            return self.replication().multicast_groups.erase(id) != 0;
          },
          "id"_a)
      .def(
          "clone_session_set",
          [replicas_of](Switch& self, uint32_t id, const Replicas& replicas, uint32_t priority_class,
                        uint32_t packet_length_bytes) {
            PythonGuard guard(self.engine());
            self.replication().clone_sessions[id] = {replicas_of(replicas), priority_class,
                                                     packet_length_bytes};
          },
          "id"_a, "replicas"_a, "priority_class"_a, "packet_length_bytes"_a)
      .def(
          "clone_session_delete",
          [](Switch& self, uint32_t id) {
            PythonGuard guard(self.engine());
            return self.replication().clone_sessions.erase(id) != 0;
          },
          "id"_a)
      .def(
          "packet_out",
          [](Switch& self, const py::bytes& data) {
            PythonGuard guard(self.engine());
            PacketPtr packet = self.engine().packets().copy_of(view_of(data));
            self.engine().conservation().enter(PacketOrigin::kFromController, packet->traffic());
            self.receive(static_cast<int>(self.options().cpu_port), std::move(packet));
          },
          "Let the switch receive a packet on its CPU port.", "data"_a)
      .def(
          "process",
          [](Switch& self, uint32_t port, const py::bytes& data) {
            PythonGuard guard(self.engine());
            Typed<"list[tuple[int, bytes]]", py::list> result;
            for (const Switch::Output& output : self.process(port, view_of(data)))
              result.append(py::make_tuple(output.port, to_bytes(output.bytes)));
            return result;
          },
          py::arg("port"), py::arg("data"), "Run a packet through both pipelines at once; what leaves.")
      .def(
          "would_send",
          [](Switch& self, const std::vector<std::pair<uint32_t, py::bytes>>& packets) {
            PythonGuard guard(self.engine());
            std::vector<Switch::Input> inputs;
            for (const auto& [port, bytes] : packets) inputs.push_back({port, view_of(bytes)});
            Typed<"list[list[tuple[int, bytes]]]", py::list> result;
            for (const std::vector<Switch::Output>& outputs : self.would_send(inputs)) {
              py::list of_packet;
              for (const Switch::Output& output : outputs)
                of_packet.append(py::make_tuple(output.port, to_bytes(output.bytes)));
              result.append(of_packet);
            }
            return result;
          },
          py::arg("packets"),
          "What would leave for each of the packets, each a port and bytes; they count nowhere.")
      .def(
          "process_repeatedly",
          [](Switch& self, const std::vector<std::pair<uint32_t, py::bytes>>& packets, uint64_t count) {
            if (packets.empty()) throw std::invalid_argument("no packets");
            PythonGuard guard(self.engine());
            std::vector<Switch::Input> inputs;
            for (const auto& [port, bytes] : packets) inputs.push_back({port, view_of(bytes)});
            py::gil_scoped_release release;
            return self.process_repeatedly(inputs, count);
          },
          py::arg("packets"), py::arg("count"),
          "`count` packets, each a port and bytes, the given ones over and over; how many left.")
      .def(
          "wait_event", [](Switch& self, double timeout_s)->Typed<"tuple[str, int, bytes, int] | None"> {
            std::optional<StreamEvent> event;
            {
              py::gil_scoped_release release;
              event = self.events().wait(timeout_s);
            }
            if (!event) return py::none();
            const bool digest = event->kind == StreamEvent::Kind::kDigest;
            return py::make_tuple(digest ? "digest" : "packet_in", event->learn_list, to_bytes(event->bytes),
                                  event->time_ps);
          },
          py::arg("timeout_s"),
          "(\"packet_in\" or \"digest\", learn list, bytes, time in ps), or None when the time is over.")
      .def(
          "set_event_listener",
          [](Switch& self, std::optional<Callback> listener) {
            std::function<void()> held = listener_of(self.engine(), std::move(listener));
            PythonGuard guard(self.engine());
            self.events().set_listener(std::move(held));
          },
          py::arg("listener").none(true),
          "Call listener() from the engine whenever wait_event() has one more; None ends that.")
      .def(
          "replace_code",
          [](Switch& self, std::shared_ptr<SwitchProgram> program) {
            PythonGuard guard(self.engine());
            self.replace_code(std::move(program));
          },
          "program"_a, "Go on with other code for the same program. ValueError if its shape is another.")
      .def(
          "add_contents_to",
          [](Switch& self, CommonContents& common) {
            PythonGuard guard(self.engine());
            self.objects().add_to(common);
          },
          "common"_a, "Take the contents of its tables into account.")
      .def(
          "specialise",
          [](Switch& self, std::shared_ptr<SwitchProgram> program) {
            PythonGuard guard(self.engine());
            return self.objects().specialise(std::move(program));
          },
          "program"_a, R"doc(Go on with code that takes contents of tables for granted.

The first write that breaks it brings the general code back. False if the contents break it already, or if the
code in use is not the program's own.)doc")
      .def_property_readonly(
          "code", [](Switch& self)->Typed<"tuple[bool, int, int]"> {
            PythonGuard guard(self.engine());
            const SwitchObjects& objects = self.objects();
            return py::make_tuple(objects.is_specialised(), objects.generalisations(), objects.writes());
          },
          "Whether the code is specialised, how often writes have ended that, and writes to tables.")
      .def(
          "start_trace",
          [](Switch& self, uint64_t packets, std::optional<uint32_t> port, std::optional<Callback> ended,
             TimePs from_ps, TimePs until_ps, std::vector<uint64_t> only) {
            std::function<void()> held = listener_of(self.engine(), std::move(ended));
            PythonGuard guard(self.engine());
            self.trace().start({port, packets, from_ps, until_ps, std::move(only)}, std::move(held));
          },
          py::arg("packets"), py::arg("port").none(true), py::arg("ended").none(true) = py::none(),
          py::arg("from_ps") = 0, py::arg("until_ps") = std::numeric_limits<TimePs>::max(),
          py::arg("only") = std::vector<uint64_t>(), R"doc(Trace the next packets of a port, in a time.

ended() is called as one, or a copy, ends. `only`, unless empty: of these packets, only the ones with these
numbers, counted from 1, in ascending order.)doc")
      .def(
          "search_packets",
          [](Switch& self, const Typed<"list[dict[str, object]]", py::list>& tests, std::vector<int32_t> rule,
             uint64_t holds_for_zero, uint64_t undecidable, uint64_t most_found, uint64_t most_perhaps,
             AskPython ask, Callback changed, std::optional<uint32_t> port, TimePs from_ps, TimePs until_ps) {
            PacketSearch::Request request{
                tests_of(tests), std::move(rule), holds_for_zero,         undecidable,
                most_found,      most_perhaps,    asking(std::move(ask)), {}};
            request.changed = listener_of(self.engine(), std::move(changed));
            auto search = std::make_unique<PacketSearch>(std::move(request));
            PythonGuard guard(self.engine());
            self.trace().search({port, std::numeric_limits<uint64_t>::max(), from_ps, until_ps, {}},
                                std::move(search));
          },
          "tests"_a, "rule"_a, "holds_for_zero"_a, "undecidable"_a, "most_found"_a, "most_perhaps"_a, "ask"_a,
          "changed"_a, py::arg("port").none(true), "from_ps"_a, "until_ps"_a,
          R"doc(Look for packets that fulfil a condition, instead of tracing them (weft/switch/debug/searches.py).)doc")
      .def(
          "close_search",
          [](Switch& self, bool finish) {
            PythonGuard guard(self.engine());
            PacketSearch* search = self.trace().packet_search();
            if (search == nullptr) return;
            if (finish)
              search->finish();
            else
              search->close();
          },
          "finish"_a, "Look at no further packets; `finish`: also decide the ones still in the switch.")
      .def_property_readonly(
          "search_results", [](Switch& self)->Typed<"tuple[list[tuple[int, int, bool]], int, int, bool]"> {
            PythonGuard guard(self.engine());
            const PacketSearch* search = self.trace().packet_search();
            if (search == nullptr) throw std::logic_error("no packets are looked for");
            std::vector<std::tuple<uint64_t, TimePs, bool>> found;
            for (const PacketSearch::Found& each : search->found())
              found.emplace_back(each.arrival, each.received_ps, each.is_certain);
            return py::make_tuple(found, search->looked_at(), search->not_kept(), search->is_over());
          },
          R"doc(Packets found: number of arrival, time, whether the condition holds for certain; then how many packets were
looked at, how many that hold perhaps were not kept, and whether the search is over.)doc")
      .def("stop_trace",
           [](Switch& self) {
             PythonGuard guard(self.engine());
             self.trace().stop();
           })
      .def(
          "take_trace",
          [](Switch& self) {
            PythonGuard guard(self.engine());
            return to_bytes(self.trace().take());
          },
          "All records so far, each a SwitchTrace::Head and its data.")
      .def_property_readonly("trace_packets_missed",
                             [](Switch& self) {
                               PythonGuard guard(self.engine());
                               return self.trace().packets_missed();
                             })
      .def(
          "set_logging",
          [](Switch& self, bool enabled) {
            PythonGuard guard(self.engine());
            self.set_logging(enabled);
          },
          "enabled"_a)
      .def("take_log", [](Switch& self) {
        PythonGuard guard(self.engine());
        return self.take_log();
      });
}

}  // namespace weft
