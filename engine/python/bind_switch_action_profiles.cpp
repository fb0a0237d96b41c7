// Action profiles of a switch for Python: members and groups.
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bind_switch.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace weft {

namespace {

ActionMember& member_of(Switch& self, uint32_t profile, uint32_t id) {
  ActionMember* member = self.objects().action_profile(profile).member(id);
  if (member == nullptr) throw py::key_error("no member " + std::to_string(id));
  return *member;
}

ActionGroup& group_of(Switch& self, uint32_t profile, uint32_t id) {
  ActionGroup* group = self.objects().action_profile(profile).group(id);
  if (group == nullptr) throw py::key_error("no group " + std::to_string(id));
  return *group;
}

std::vector<GroupMember> group_members(Switch& self, uint32_t profile,
                                       const std::vector<std::tuple<uint32_t, int32_t, int32_t>>& members) {
  std::vector<GroupMember> result;
  for (const auto& [id, weight, watch_port] : members) {
    member_of(self, profile, id);
    result.push_back(GroupMember{id, weight, watch_port});
  }
  return result;
}

}  // namespace

void bind_switch_action_profiles(SwitchClass& cls) {
  using Members = std::vector<std::tuple<uint32_t, int32_t, int32_t>>;
  cls.def(
         "member_insert",
         [](Switch& self, uint32_t profile, uint32_t id, uint32_t action, const py::bytes& data) {
           PythonGuard guard(self.engine());
           if (self.objects().action_profile(profile).member(id) != nullptr) return false;
           self.objects().add_member(profile, id, action, view_of(data));
           return true;
         },
         "profile"_a, "id"_a, "action"_a, "data"_a)
      .def(
          "member_modify",
          [](Switch& self, uint32_t profile, uint32_t id, uint32_t action, const py::bytes& data) {
            PythonGuard guard(self.engine());
            self.objects().modify_member(profile, member_of(self, profile, id), action, view_of(data));
          },
          "profile"_a, "id"_a, "action"_a, "data"_a)
      .def(
          "member_delete",
          [](Switch& self, uint32_t profile, uint32_t id) {
            PythonGuard guard(self.engine());
            if (member_of(self, profile, id).references != 0) return false;
            self.objects().action_profile(profile).remove_member(id);
            return true;
          },
          "profile"_a, "id"_a)
      .def(
          "group_insert",
          [](Switch& self, uint32_t profile, uint32_t id, const Members& members, bool is_random) {
            PythonGuard guard(self.engine());
            ActionProfile& target = self.objects().action_profile(profile);
            if (target.group(id) != nullptr) return false;
            auto checked = group_members(self, profile, members);
            ActionGroup& group = target.add_group(id);
            group.is_random = is_random;
            target.set_group_members(group, std::move(checked));
            return true;
          },
          "profile"_a, "id"_a, "members"_a, "is_random"_a)
      .def(
          "group_modify",
          [](Switch& self, uint32_t profile, uint32_t id, const Members& members) {
            PythonGuard guard(self.engine());
            ActionGroup& group = group_of(self, profile, id);
            self.objects().action_profile(profile).set_group_members(group,
                                                                     group_members(self, profile, members));
          },
          "profile"_a, "id"_a, "members"_a)
      .def(
          "group_delete",
          [](Switch& self, uint32_t profile, uint32_t id) {
            PythonGuard guard(self.engine());
            if (group_of(self, profile, id).references != 0) return false;
            self.objects().action_profile(profile).remove_group(id);
            return true;
          },
          "profile"_a, "id"_a)
      .def(
          "profile_sizes",
          [](Switch& self, uint32_t profile) {
            PythonGuard guard(self.engine());
            ActionProfile& target = self.objects().action_profile(profile);
            return std::pair(target.members().size(), target.groups().size());
          },
          "profile"_a)
      .def(
          "set_watch_port_up",
          [](Switch& self, uint32_t profile, int32_t port, bool up) {
            PythonGuard guard(self.engine());
            self.objects().action_profile(profile).set_port_up(port, up);
          },
          "profile"_a, "port"_a, "up"_a);
}

}  // namespace weft
