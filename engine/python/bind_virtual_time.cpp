// Processes that live in a run's virtual time, in Python: see engine/verbs/virtual_time.hpp.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "verbs/timed_process.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;
using verbs::TimedProcess;
using verbs::VirtualClockPage;
using verbs::Wait;

namespace {

const char* name_of(Wait wait) {
  switch (wait) {
    case Wait::kTime:
      return "time";
    case Wait::kNews:
      return "news";
    case Wait::kMemory:
      return "memory";
    case Wait::kKernel:
      return "kernel";
    default:
      return "ended";
  }
}

// place, thread, wait, until_ps or None, loop.
using Row = std::tuple<uint32_t, int32_t, std::string, std::optional<uint64_t>, uint64_t>;

std::vector<Row> rows_of(const TimedProcess& process) {
  std::vector<Row> rows;
  for (const TimedProcess::Waiting& each : process.waiting())
    rows.emplace_back(each.place, each.thread, name_of(each.wait),
                      each.until_ps == verbs::kForEver ? std::nullopt : std::optional(each.until_ps),
                      each.loop);
  return rows;
}

std::vector<std::string> uses_of(const TimedProcess& process) {
  std::vector<std::string> names;
  const uint32_t uses = process.uses();
  if ((uses & verbs::kTimerDescriptors) != 0) names.emplace_back("timerfd_settime");
  if ((uses & verbs::kPosixTimers) != 0) names.emplace_back("timer_settime");
  if ((uses & verbs::kSocketTimeouts) != 0) names.emplace_back("SO_RCVTIMEO or SO_SNDTIMEO");
  return names;
}

}  // namespace

void bind_virtual_time(py::module_& m) {
  m.attr("TIME_SOCKET_VARIABLE") = verbs::kTimeSocketVariable;
  m.attr("TIME_HELLO_BYTES") = sizeof(verbs::TimeHello);
  m.attr("TIME_COUNTER_HZ") = verbs::kCounterHz;
  m.def(
      "is_time_hello",
      [](const py::bytes& message) {
        const std::string text = message;
        const verbs::TimeHello expected{verbs::kTimeMagic, sizeof(verbs::ClockPage),
                                        sizeof(verbs::ProcessPage)};
        return text == std::string(reinterpret_cast<const char*>(&expected), sizeof expected);
      },
      "message"_a, "Whether it is the first message of a process whose library is of this build.");

  py::class_<VirtualClockPage, std::shared_ptr<VirtualClockPage>>(
      m, "VirtualClockPage", "The time of a run, in memory that its processes read.")
      .def(py::init<>())
      .def_property_readonly("descriptor", &VirtualClockPage::descriptor)
      .def_property("now_ps", &VirtualClockPage::now, &VirtualClockPage::set);

  py::class_<TimedProcess>(m, "TimedProcess", R"doc(A process that lives in a run's virtual time.

Its threads say in shared memory that they wait; `wake` ends a wait.)doc")
      .def(py::init<int>(), "process"_a)
      .def_property_readonly("page_descriptor", &TimedProcess::page_descriptor)
      .def_property_readonly("doorbell_descriptor", &TimedProcess::doorbell_descriptor)
      .def("take_rings", &TimedProcess::take_rings)
      .def_property_readonly("begun", &TimedProcess::begun)
      .def_property_readonly("acts", &TimedProcess::acts,
                             "How often its threads did something that others may see.")
      .def("let_ahead", &TimedProcess::let_ahead, "until_ps"_a,
           "Let it go ahead of the run up to a time before which nothing happens; 0: not at all.")
      .def_property_readonly("ahead_ps", &TimedProcess::ahead_ps, "How far it has gone.")
      .def_property_readonly("sent", &TimedProcess::sent,
                             "How often they called what may reach others through the kernel.")
      .def_property_readonly("wall_clock_uses", &uses_of,
                             "Calls that it has made whose times are the wall clock's, by name.")
      .def_property_readonly("alarm_ps", &TimedProcess::alarm_ps, "When it wants SIGALRM; 0: never.")
      .def("pass_alarm", &TimedProcess::pass_alarm)
      .def("waiting", &rows_of,
           "Place, thread, wait (time, news, memory or kernel; ended: it goes on), until when, and its loop.")
      .def("wake", &TimedProcess::wake, "place"_a)
      .def("ask", &TimedProcess::ask, "thread"_a,
           "Ask a thread that computes whether it only looks at memory; False: there is no such thread.")
      .def("computes", &TimedProcess::computes, "thread"_a,
           "How often a thread has answered that it does more than that.");
}

}  // namespace weft
