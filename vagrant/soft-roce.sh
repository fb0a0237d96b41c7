#!/usr/bin/env bash
# Soft-RoCE on two hosts of a running lab: the kernel's own RoCEv2 (rdma_rxe) across the P4 fabric.
#
#   sudo vagrant/soft-roce.sh [--dry-run] [--first-namespace] [--pyverbs] [SERVER [CLIENT]]        by default h0 and h1
#   sudo vagrant/soft-roce.sh [--dry-run] --install
#
# Each host gets an rxe device on its first interface; rping, ib_send_bw and ib_write_bw (perftest) run between the two, or
# with --pyverbs lab 21's parameter server; the devices are removed again. Most kernels' rxe works in the first network
# namespace alone: --first-namespace, in the lab VM only, puts the devices there, and what they send takes the hosts' links.
# --install installs the distribution's packages that this needs. --dry-run prints the commands and runs none.
# Exit codes: 2 usage, 4 something is missing here.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$root/.venv/bin/weft}
dry_run=no
pyverbs=no
install=no
first_namespace=no
listening=
messages=200
made=()
packages=(kmod iproute2 rdma-core rdmacm-utils ibverbs-providers ibverbs-utils perftest python3-pyverbs python3-numpy)

# shellcheck source=vagrant/soft-roce-first-namespace.sh
source "${BASH_SOURCE[0]%/*}/soft-roce-first-namespace.sh"

usage() {
  sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

lacks() {
  echo "soft-roce: $1" >&2
  exit 4
}

# Runs a command, or prints it.
run() {
  if [[ $dry_run == yes ]]; then
    printf '%s\n' "${*@Q}"
  else
    "$@"
  fi
}

on_host() {
  run "$weft" exec --kernel-devices "$1" "$2"
}

check_tools() {
  local tool
  for tool in modprobe:kmod rdma:iproute2 rping:rdmacm-utils ib_write_bw:perftest ss:iproute2 tc:iproute2; do
    command -v "${tool%%:*}" >/dev/null || lacks "there is no ${tool%%:*}: apt install ${tool##*:}"
  done
  [[ $pyverbs == no ]] || /usr/bin/python3 -c 'import numpy, pyverbs.enums' 2>/dev/null ||
    lacks "there is no pyverbs: apt install python3-pyverbs python3-numpy"
  [[ $(id -u) -eq 0 ]] || lacks "this needs root: sudo $0"
}

load_module() {
  run modprobe rdma_rxe || lacks "kernel $(uname -r) has no module rdma_rxe (CONFIG_RDMA_RXE); on Ubuntu it is in linux-modules-extra-$(uname -r)"
  run modprobe rdma_ucm || lacks "kernel $(uname -r) has no module rdma_ucm (CONFIG_INFINIBAND_USER_ACCESS), which rping needs"
}

# Port 4791 must be the kernel's. Weft's endpoints hold it while their traffic runs.
check_port_is_free() {
  [[ $dry_run == yes ]] && return
  [[ -z $(on_host "$1" "ss -Hlun 'sport = :4791'") ]] ||
    lacks "a program on $1 holds UDP port 4791; use 'weft lab', whose hosts run no traffic of Weft's"
}

# Most kernels let rxe listen in the first network namespace alone, where a lab has no host.
check_kernel_listens() {
  [[ $dry_run == yes ]] && return
  [[ -n $(on_host "$1" "ss -Hlun 'sport = :4791'") ]] ||
    lacks "rdma_rxe of kernel $(uname -r) does not listen in the network namespace of $1: it supports the first one only; in the lab VM, try --first-namespace (docs/lab-vm.md)"
}

check_lab_is_up() {
  [[ $dry_run == yes ]] && return
  on_host "$1" true || lacks "$1 is no host of a running lab; begin one with 'weft lab'"
}

add_device() {
  check_lab_is_up "$1"
  check_port_is_free "$1"
  on_host "$1" "rdma link add rxe_$1 type rxe netdev $1-eth0" || lacks "the kernel refuses an rxe device on $1-eth0"
  made+=("$1")
  check_kernel_listens "$1"
}

remove_devices() {
  local host
  for host in "${made[@]}"; do
    on_host "$host" "rdma link delete rxe_$host" || true
  done
}

stop_listening() {
  [[ -z $listening ]] || kill "$listening" 2>/dev/null || true
}

# Starts the server's side in the background, waits until COMMAND shows that it listens, and runs the client's; on their
# hosts, or here: where the devices are, for librdmacm looks for addresses in its program's own namespace.
both_sides() { # hosts|here COMMAND SERVER_PROGRAM CLIENT_PROGRAM
  local serving=("$weft" exec --kernel-devices "$server") working=("$weft" exec --kernel-devices "$client")
  [[ $1 == hosts ]] || { serving=(sh -c) && working=(sh -c); }
  if [[ $dry_run == yes ]]; then
    echo "$(run "${serving[@]}" "$3") &"
    run "${working[@]}" "$4"
    return
  fi
  # No shell stays between this one and the program, so that the program is what `listening` names.
  "${serving[@]}" "exec timeout --foreground 600 $3" &
  listening=$!
  until [[ -n $("${serving[@]}" "$2") ]]; do
    kill -0 "$listening" 2>/dev/null || lacks "the server's side has ended before it listened: $3"
    sleep 0.2
  done
  "${working[@]}" "exec timeout --foreground 600 $4"
  wait "$listening"
  listening=
}

# What shows that a program waits for connections: on TCP, or of librdmacm.
on_tcp="ss -Hltn 'sport = :18515'"
on_rdmacm="rdma resource show cm_id | grep 'state LISTEN.*comm rping'"

while [[ ${1:-} == -* ]]; do
  case $1 in
    --dry-run) dry_run=yes ;;
    --pyverbs) pyverbs=yes ;;
    --first-namespace) first_namespace=yes ;;
    --install) install=yes ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "soft-roce: unknown option '$1' (valid: --dry-run, --first-namespace, --pyverbs, --install, --help)" >&2
      exit 2
      ;;
  esac
  shift
done
if [[ $install == yes ]]; then
  run apt-get update -qq
  run env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}"
  exit
fi
server=${1:-h0}
client=${2:-h1}
for host in "$server" "$client"; do
  [[ $host =~ ^h[0-9]+$ ]] || {
    echo "soft-roce: '$host' is no host (valid: h0, h1, …)" >&2
    exit 2
  }
done
[[ $server != "$client" ]] || {
  echo "soft-roce: $server cannot be server and client" >&2
  exit 2
}

[[ $dry_run == yes ]] || check_tools
load_module
if [[ $first_namespace == yes ]]; then
  take_both_to_first_namespace "$server" "$client"
else
  trap 'stop_listening; remove_devices' EXIT
  add_device "$server"
  add_device "$client"
fi
if [[ $pyverbs == yes ]]; then
  program="/usr/bin/python3 -u ${root@Q}/labs/21-rdma-programming/pyverbs_server.py"
  both_sides hosts "$on_tcp" "$program serve --device rxe_$server" "$program work $server --device rxe_$client"
  exit
fi
if [[ $first_namespace == yes ]]; then
  both_sides here "$on_rdmacm" "rping -s -a $server_address -C 10 -v" \
    "rping -c -a $server_address -I $client_address -C 10 -v"
else
  both_sides hosts "$on_rdmacm" "rping -s -C 10 -v" "rping -c -C 10 -v -a $server"
fi
for program in "ib_send_bw" "ib_write_bw"; do
  program+=" -F -m 1024 -s 65536 -n $messages --report_gbits"
  both_sides hosts "$on_tcp" "$program -d rxe_$server" "$program -d rxe_$client $server"
done
