# shellcheck shell=bash disable=SC2154
# A part of soft-roce.sh: rxe devices of two lab hosts in the first network namespace, for kernels whose rxe knows no other.
#
# A host keeps its interface and its addresses. A veth pair joins it with the first namespace, where the pair's other end,
# roce-HOST, has the host's address and MAC once more, and carries the rxe device. In the host, RoCEv2 and nothing else
# goes from its interface to the pair, and from the pair to its interface: to the P4 switch. In the first namespace both
# addresses are the machine's own, so Linux would hand packets over without a wire; therefore they leave the local table,
# and rules lead from each of the two addresses to the other by way of its own pair. All of it goes again with the pairs and rules.

# Numbers of routing tables, and of the rules that lead to them.
arriving=4790
leaving=4791

require_lab_vm() {
  local mark=${WEFT_DESTDIR:-}/etc/weft/lab-vm
  [[ -e $mark ]] ||
    lacks "--first-namespace puts addresses and routes into the machine's own network, which is for the lab VM alone; there is no $mark (docs/lab-vm.md)"
  [[ $(readlink /proc/self/ns/net) == "$(readlink /proc/1/ns/net)" ]] ||
    lacks "--first-namespace works from the first network namespace; this is another one"
}

# What a host knows, or names for it in a dry run.
of_host() { # HOST NAMES COMMAND
  if [[ $dry_run == yes ]]; then
    echo "$2"
    return
  fi
  local found names said
  found=$(on_host "$1" "$3") || found=
  read -ra names <<<"$2"
  read -ra said <<<"$found"
  ((${#said[@]} == ${#names[@]})) ||
    lacks "$1 has no interface $1-eth0 with an IPv4 address, or no way to the other host; begin its lab with 'weft lab'"
  echo "$found"
}

# The address, MAC and MTU of its interface.
interface_of() {
  of_host "$1" "ADDRESS_OF_$1 MAC_OF_$1 MTU_OF_$1" "cd /sys/class/net/$1-eth0 && \
echo \$(ip -4 -o address show dev $1-eth0 | sed -nE '1s/.* inet ([^/]+).*/\\1/p') \$(cat address mtu)"
}

# The MAC to which a host sends what is for an address: its gateway's, or the other host's own.
next_mac_of() { # HOST ADDRESS
  of_host "$1" "NEXT_MAC_OF_$1" "ping -nqc 1 -W 10 $2 >/dev/null; next=\$(ip -4 route get $2 | sed -nE '1s/.* via ([^ ]+).*/\\1/p'); \
ip neighbour show \${next:-$2} dev $1-eth0 | sed -nE 's/.* lladdr ([^ ]+).*/\\1/p'"
}

# The command by which a host gives RoCEv2 that comes in at one interface to the other.
redirect() { # FROM TO
  echo "tc qdisc add dev $1 clsact && tc filter add dev $1 ingress protocol ip flower ip_proto udp dst_port 4791 \
action mirred egress redirect dev $2"
}

take_to_first_namespace() { # HOST ADDRESS MAC MTU PEER_ADDRESS
  local host=$1 own=$2 mac=$3 mtu=$4 peer=$5 next
  next=$(next_mac_of "$host" "$peer")
  on_host "$host" "tc qdisc delete dev $host-eth0 clsact 2>/dev/null; \
ip link add soft-roce mtu $mtu type veth peer name roce-$host mtu $mtu netns 1 && ip link set soft-roce addrgenmode none up && \
$(redirect "$host-eth0" soft-roce) && $(redirect soft-roce "$host-eth0")"
  run ip link set "roce-$host" address "$mac" addrgenmode none up
  run ip address add "$own/32" dev "roce-$host"
  run ip route delete table local local "$own" dev "roce-$host"
  run ip route add table $arriving local "$own" dev "roce-$host"
  run ip rule add preference $arriving iif "roce-$host" lookup $arriving
  run ip neighbour replace "$peer" lladdr "$next" dev "roce-$host" nud permanent
  run ip route add table $leaving "$peer" dev "roce-$host"
  run ip rule add preference $leaving from "$own" to "$peer" lookup $leaving
  run rdma link add "rxe_$host" type rxe netdev "roce-$host" || lacks "the kernel refuses an rxe device on roce-$host"
}

# The devices, addresses and routes go with the pairs.
remove_pairs() { # HOST…
  local host preference
  for host in "$@"; do
    run ip link delete "roce-$host" 2>/dev/null || true
  done
  [[ $dry_run == no ]] || return 0
  for preference in $arriving $leaving; do
    while ip rule delete preference "$preference" lookup "$preference" 2>/dev/null; do :; done
  done
}

leave_first_namespace() { # HOST…
  local host
  remove_pairs "$@"
  for host in "$@"; do
    on_host "$host" "tc qdisc delete dev $host-eth0 clsact" 2>/dev/null || true
  done
}

take_both_to_first_namespace() { # SERVER CLIENT
  [[ $dry_run == yes ]] || require_lab_vm
  local found server_mac server_mtu client_mac client_mtu
  found=$(interface_of "$1")
  read -r server_address server_mac server_mtu <<<"$found"
  found=$(interface_of "$2")
  read -r client_address client_mac client_mtu <<<"$found"
  [[ $dry_run == yes ]] || remove_pairs "$1" "$2" # what a run left that was killed
  trap 'stop_listening; leave_first_namespace "$server" "$client"' EXIT
  take_to_first_namespace "$1" "$server_address" "$server_mac" "$server_mtu" "$client_address"
  take_to_first_namespace "$2" "$client_address" "$client_mac" "$client_mtu" "$server_address"
}
