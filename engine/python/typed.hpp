// Python objects that signatures, and so the generated stub (`make stubs`), show with the type that they
// have: Typed<"list[int]", py::list>. Nothing checks the text at run time; mypy checks the code that uses the
// module against it.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace weft {

template <size_t Size>
struct TypeText {
  constexpr TypeText(const char (&text)[Size]) { std::copy_n(text, Size, chars); }
  char chars[Size];
};

// `Text` in Python's notation. Names of dictionaries' types are those of declare_record() and of
// weft/engine/records.py.
template <TypeText Text, class Base = pybind11::object>
class Typed : public Base {
 public:
  using Base::Base;
  Typed(Base object) : Base(std::move(object)) {}

  static bool check_(pybind11::handle object) {
    if constexpr (requires { Base::check_(object); }) return Base::check_(object);
    return object.ptr() != nullptr;
  }
};

template <TypeText Name>
using Record = Typed<Name, pybind11::dict>;

using Callback = Typed<"collections.abc.Callable[[], object]", pybind11::function>;

}  // namespace weft

namespace pybind11::detail {

template <weft::TypeText Text, class Base>
struct handle_type_name<weft::Typed<Text, Base>> {
  static constexpr auto name = const_name(Text.chars);
};

}  // namespace pybind11::detail
