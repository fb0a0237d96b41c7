// Kinds of one thing that files of one folder register, each under its name.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

template <class Kind>
class RegisteredKinds {
 public:
  // In messages: of one, and of several.
  RegisteredKinds(std::string singular, std::string plural)
      : singular_(std::move(singular)), plural_(std::move(plural)) {}

  // `kind` must outlive this.
  void add(const Kind& kind) { kinds_.push_back(&kind); }
  // A user's: named() finds it by this key, all() does not list it.
  void add_own(std::string key, const Kind& kind) { own_.insert_or_assign(std::move(key), &kind); }

  // In alphabetical order of their names. Throws std::logic_error if two have one name.
  std::vector<const Kind*> all() const {
    std::vector<const Kind*> kinds = kinds_;
    std::ranges::sort(kinds, {}, &Kind::name);
    const auto twice = std::ranges::adjacent_find(kinds, {}, &Kind::name);
    if (twice != kinds.end())
      throw std::logic_error("two " + plural_ + " are named '" + std::string((*twice)->name) + "'");
    return kinds;
  }

  // Throws std::invalid_argument for an unknown name, naming the valid ones.
  const Kind& named(std::string_view name) const {
    if (const auto own = own_.find(name); own != own_.end()) return *own->second;
    std::string valid;
    for (const Kind* kind : all()) {
      if (kind->name == name) return *kind;
      valid += (valid.empty() ? "'" : ", '") + std::string(kind->name) + "'";
    }
    throw std::invalid_argument("unknown " + singular_ + " '" + std::string(name) + "' (valid: " + valid +
                                ")");
  }

 private:
  std::string singular_;
  std::string plural_;
  std::vector<const Kind*> kinds_;
  std::map<std::string, const Kind*, std::less<>> own_;
};

}  // namespace weft
