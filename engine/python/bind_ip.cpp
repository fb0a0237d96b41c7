// A host's IP stack in Python; see python/bind_core.cpp about locks.
#include "python/bind_ip.hpp"

#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "hosts/ip/datagram_log.hpp"
#include "hosts/ip/ip_stack.hpp"
#include "hosts/nic.hpp"
#include "python/bind_codec.hpp"
#include "python/bindings_support.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

void bind_ip(py::module_& m) {
  declare_record<IpCounters>("IpStats");
  py::class_<IpStack, std::shared_ptr<IpStack>>(
      m, "IpStack",
      R"doc(The IP stack of a host, for all frames at its NIC that are not RoCEv2's.

It answers ARP, neighbour solicitations and ICMP echo requests, and reports closed UDP ports.)doc")
      .def(py::init([](Nic& nic) { return make_component<IpStack>(nic.engine(), nic); }), "nic"_a,
           py::keep_alive<1, 2>())
      .def("ephemeral_port", &IpStack::ephemeral_port, "number"_a,
           "The host's ephemeral port of a number: they begin at one that the NIC's entropy_seed draws.")
      .def(
          "add_interface",
          [](IpStack& stack, int port, uint32_t mtu_bytes, size_t queue_packets) {
            PythonGuard guard(stack.engine());
            stack.add_interface(port, {mtu_bytes, queue_packets});
          },
          "port"_a, py::kw_only(), "mtu_bytes"_a = IpInterfaceConfig().mtu_bytes,
          "queue_packets"_a = IpInterfaceConfig().queue_packets,
          R"doc(Make a port of the NIC an interface, with the port's addresses.

`mtu_bytes` is that of IP packets; `queue_packets` may wait in each class. Raises ValueError for a port there is
not, or that is one already.)doc")
      .def(
          "add_route",
          [](IpStack& stack, const std::string& prefix, int prefix_bits, int interface,
             const std::optional<std::string>& gateway) {
            PythonGuard guard(stack.engine());
            stack.add_route(
                {parse_ip(prefix), prefix_bits, gateway ? parse_ip(*gateway) : IpAddress(), interface});
          },
          "prefix"_a, "prefix_bits"_a, py::kw_only(), "interface"_a = 0, "gateway"_a = py::none(),
          R"doc(Reach a prefix by way of a gateway, or without one on the link itself.

The longest prefix counts, and of equal ones the first. Raises ValueError for an interface there is not, or too
many bits.)doc")
      .def(
          "add_neighbour",
          [](IpStack& stack, const std::string& address, const std::string& mac, int interface) {
            PythonGuard guard(stack.engine());
            stack.add_neighbour(interface, parse_ip(address), parse_mac(mac));
          },
          "address"_a, "mac"_a, py::kw_only(), "interface"_a = 0, "An entry that no message changes.")
      .def(
          "forget_neighbours",
          [](IpStack& stack) {
            PythonGuard guard(stack.engine());
            stack.forget_neighbours();
          },
          "Ask for all neighbours again, but for static entries.")
      .def(
          "stats",
          [](IpStack& stack) {
            PythonGuard guard(stack.engine());
            return Record<"IpStats">(statistics_dict(stack.counters()));
          },
          "What has arrived and was sent, and what was dropped, by reason.")
      .def("reset_stats", [](IpStack& stack) {
        PythonGuard guard(stack.engine());
        stack.reset_counters();
      });
  py::class_<DatagramLog, std::shared_ptr<DatagramLog>>(
      m, "DatagramLog", "Keeps the datagrams that arrive at a UDP port of a stack, as long as it exists.")
      .def(py::init([](IpStack& stack, uint16_t port, size_t most_datagrams, size_t most_bytes) {
             return make_component<DatagramLog>(stack.engine(), stack, port, most_datagrams, most_bytes);
           }),
           "stack"_a, "port"_a, py::kw_only(), "most_datagrams"_a, "most_bytes"_a, py::keep_alive<1, 2>(),
           "Raises ValueError if the port is taken or RoCEv2's.")
      .def(
          "entries",
          [](DatagramLog& log) {
            PythonGuard guard(log.engine());
            py::list found;
            size_t begin = 0;
            for (const DatagramLog::Entry& each : log.entries()) {
              const char* data = reinterpret_cast<const char*>(log.bytes().data()) + begin;
              found.append(py::make_tuple(each.time, py::bytes(data, each.end - begin)));
              begin = each.end;
            }
            return Typed<"list[tuple[int, bytes]]">(found);
          },
          "Return the time in ps and the payload of every datagram, in order of their arrival.")
      .def(
          "not_kept",
          [](DatagramLog& log) {
            PythonGuard guard(log.engine());
            return log.not_kept();
          },
          "Return how many datagrams came from the first one on that exceeded most_datagrams or most_bytes.");
}

}  // namespace weft
