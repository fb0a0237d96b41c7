#include "python/python_path_choice.hpp"

#include <memory>

#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

uint16_t PythonPathChoice::entropy(TimePs now, uint64_t sequence, bool retransmission) {
  py::gil_scoped_acquire gil;
  return static_cast<uint16_t>(
      *methods_.entropy.whole_number(0, kEntropyMask, false, now, sequence, retransmission));
}

void PythonPathChoice::on_delivered(TimePs now, uint16_t entropy, TimePs round_trip_ps,
                                    bool congestion_experienced) {
  methods_.on_delivered(now, entropy, round_trip_ps, congestion_experienced);
}

void PythonPathChoice::on_lost(TimePs now, uint16_t entropy) { methods_.on_lost(now, entropy); }

void PythonPathChoice::on_congestion_notification(TimePs now) { methods_.on_congestion_notification(now); }

void bind_python_path_choice(py::module_& m) {
  m.def(
      "python_path_choice",
      [](const std::string& name, const Typed<"collections.abc.Callable[[int, int, bool], object]">& entropy,
         const Typed<"collections.abc.Callable[[int, int, int, bool], object] | None">& on_delivered,
         const Typed<"collections.abc.Callable[[int, int], object] | None">& on_lost,
         const Typed<"collections.abc.Callable[[int], object] | None">& on_congestion_notification)
          -> std::shared_ptr<PathChoice> {
        const auto method = [&name](const py::object& callable, const char* called) {
          return PythonMethod(callable, name + "." + called);
        };
        return std::make_shared<PythonPathChoice>(
            name,
            PythonPathChoice::Methods{method(entropy, "entropy"), method(on_delivered, "on_delivered"),
                                      method(on_lost, "on_lost"),
                                      method(on_congestion_notification, "on_congestion_notification")});
      },
      "name"_a, py::kw_only(), "entropy"_a, "on_delivered"_a, "on_lost"_a, "on_congestion_notification"_a,
      "A choice of path that calls these; None stands for a method that there is not.");
}

}  // namespace weft
