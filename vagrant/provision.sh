#!/usr/bin/env bash
# Sets a Debian or Ubuntu machine up for Weft: apt packages, the project's .venv and the native engine. `make setup`, the
# lab VM and the container run it alike. Running it again does only what is missing, also after an interruption.
#
# provision.sh [PART…]: what Weft's commands need, and these parts, each on top:
#   mpi           Open MPI, for runs over several machines
#   notebooks     JupyterLab
#   prometheus    Prometheus and promtool, its service masked
#   rdma          programs for a lab's RDMA devices: perftest, rping, UCX, libfabric, pyverbs
#   references    p4lang's p4c and BMv2, where p4lang has packages for the system
#   shell         .venv-shell with p4runtime-shell, for `weft shell`, and PTF
#   tests         what the project's own tests need: browser, mpi, prometheus, rdma, shell, valgrind, linters, all tests'
#                 packages
# WEFT_WITHOUT: parts of `tests` to leave out, as in "browser shell".
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

systems="Debian 12 and 13, Ubuntu 24.04 and 26.04"
valid_parts=(mpi notebooks prometheus rdma references shell tests)
parts_of_tests=(browser mpi prometheus rdma shell valgrind)

packages=(
  ca-certificates ethtool g++ iperf3 iproute2 iputils-ping libibverbs-dev make mininet procps python3-dev
  python3-venv tcpdump
)
packages_of_tests=(libcairo2 shellcheck tshark)
extras=(demo report)
extras_of_tests=(dev sweep test)

# choose PART…: what to set up, from the arguments; the lists above grow by it.
parts=" "
choose() {
  local part
  for part in "$@"; do
    if [[ " ${valid_parts[*]} " != *" $part "* ]]; then
      echo "provision: there is no part '$part' (valid: ${valid_parts[*]})" >&2
      exit 2
    fi
    parts+="$part "
    [[ $part != notebooks ]] || extras+=(notebook)
    if [[ $part == tests ]]; then
      packages+=("${packages_of_tests[@]}")
      extras+=("${extras_of_tests[@]}")
    fi
  done
  [[ $parts == *" tests "* ]] || return 0
  for part in "${parts_of_tests[@]}"; do
    [[ " ${WEFT_WITHOUT:-} " == *" $part "* || $parts == *" $part "* ]] || parts+="$part "
  done
}

# wanted PART: whether it was chosen.
wanted() {
  [[ $parts == *" $1 "* ]]
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "provision: '$*' needs root, and there is no sudo" >&2
    exit 4
  fi
}

# apt's lists are read anew once, and what an earlier run left half installed is completed.
lists_are_new=no
apt_install() {
  if [[ $lists_are_new == no ]]; then
    as_root dpkg --configure -a >/dev/null
    as_root apt-get update -qq
    lists_are_new=yes
  fi
  # Mininet recommends Open vSwitch, which Weft does not use. Single-user mode, in which init scripts start no services,
  # for machines without systemd.
  as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# missing PACKAGE…: those that are not installed.
missing() {
  local installed
  # shellcheck disable=SC2016  # dpkg-query's own fields
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  local package
  for package in "$@"; do
    grep -qx "$package installed" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  local needed
  mapfile -t needed < <(missing "${packages[@]}")
  ((${#needed[@]})) || return 0
  if ! command -v apt-get >/dev/null; then
    echo "provision: needs apt ($systems); missing: ${needed[*]}" >&2
    exit 4
  fi
  echo "provision: installing ${needed[*]}"
  apt_install "${needed[@]}"
}

# install_part NAME WITHOUT PACKAGE…: packages of a part. Nothing stops where they cannot be had: Weft goes on WITHOUT.
install_part() {
  local name=$1 without=$2
  shift 2
  command -v apt-get >/dev/null || return 1
  echo "provision: installing $*"
  apt_install "$@" 2>/dev/null && return 0
  echo "provision: $name could not be installed; going on without $without"
  return 1
}

make_environment() {
  if ! /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "provision: needs Python 3.11 or later ($systems have it); this is $(/usr/bin/python3 --version)" >&2
    exit 4
  fi
  # The distribution's interpreter, because that is where its Mininet can be imported. Without pip it was interrupted.
  if [[ ! -x .venv/bin/python ]] || ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    echo "provision: making .venv"
    /usr/bin/python3 -m venv --system-site-packages .venv
  fi
}

# What is installed: a sum of the files that say so, and the extras.
sum_of_declarations() {
  cat setup.cfg setup.py pyproject.toml vagrant/provision.sh | sha256sum | cut -d" " -f1
}

# lacks_packages: whether pip has something to do. Extras that are there stay, in `extras`, because another stage uses them.
lacks_packages() {
  local sum="" installed="" extra
  { read -r sum && read -r installed; } 2>/dev/null <.venv/weft-installed || true
  for extra in $installed; do
    [[ " ${extras[*]} " == *" $extra "* ]] || extras+=("$extra")
  done
  [[ $sum != "$(sum_of_declarations)" ]] && return 0
  for extra in "${extras[@]}"; do
    [[ " $installed " == *" $extra "* ]] || return 0
  done
  return 1
}

pip() {
  .venv/bin/python -m pip "$@" --quiet --disable-pip-version-check
}

install_build_tools() {
  # setuptools also stands in for distutils, which Mininet imports and Python 3.12 no longer has.
  .venv/bin/python -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["build-system"]["requires"], sep="\n")
' | pip install --upgrade --requirement /dev/stdin
}

# requirements: what setup.cfg asks for, with the extras. pip could read them itself, but builds the engine as it does.
requirements() {
  .venv/bin/python - "${extras[@]}" <<'PYTHON'
import configparser
import sys

options = configparser.ConfigParser()
options.read("setup.cfg")
extras = options["options.extras_require"]
for text in (options["options"]["install_requires"], *(extras[name] for name in sys.argv[1:])):
    print(text)
PYTHON
}

install_requirements() {
  echo "provision: installing Python packages"
  requirements | pip install --requirement /dev/stdin
  # Until it was called weft-fabric the distribution was `weft`; pytest takes no plugin twice.
  pip uninstall --yes weft 2>/dev/null || true
}

install_weft() {
  pip install --no-deps --no-build-isolation --editable . --config-settings editable_mode=compat
  printf '%s\n' "$(sum_of_declarations)" "${extras[*]}" >.venv/weft-installed.part
  mv .venv/weft-installed.part .venv/weft-installed
}

# The engine's build runs while apt and pip wait for the network.
engine_pid=

start_engine() {
  local newest
  newest=$(find engine verbs setup.py -newer .venv/weft-built -print -quit 2>/dev/null || true)
  if [[ -e .venv/weft-built && -z $newest ]] && compgen -G "weft/engine/_core*.so" >/dev/null; then
    return 0
  fi
  echo "provision: building the engine, for some minutes"
  touch .venv/weft-building # as old as what is built
  # A session of its own, so that its compilers end with it; Ctrl-C reaches only what is in the foreground.
  setsid .venv/bin/python setup.py --quiet build_ext --inplace --force &
  engine_pid=$!
  trap 'kill -TERM -- "-$engine_pid" 2>/dev/null' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

finish_engine() {
  [[ -n $engine_pid ]] || return 0
  local status=0
  wait "$engine_pid" || status=$?
  trap - EXIT INT TERM
  if ((status)); then
    echo "provision: the engine could not be built" >&2
    exit 1
  fi
  mv .venv/weft-building .venv/weft-built
}

# A browser, in which the tests open reports. Ubuntu has none as a package of its own.
install_browser() {
  local browser
  for browser in chromium chromium-browser google-chrome; do
    ! command -v "$browser" >/dev/null || return 0
  done
  install_part chromium "its tests of reports" chromium fonts-dejavu-core || true
}

# MPI, for runs over several machines.
install_mpi() {
  [[ -n $(missing openmpi-bin python3-mpi4py) ]] || return 0
  install_part MPI "runs over several machines" openmpi-bin python3-mpi4py || true
}

# Prometheus and promtool, for labs' metrics. The package's service stays masked: who watches a lab starts Prometheus with
# the lab's own configuration.
prometheus_unit=/etc/systemd/system/prometheus.service

install_prometheus() {
  command -v prometheus >/dev/null && return 0
  command -v apt-get >/dev/null || return 0
  local masked=no
  if [[ ! -e $prometheus_unit && ! -L $prometheus_unit ]]; then
    masked=yes
    as_root mkdir -p "$(dirname "$prometheus_unit")"
    as_root ln -s /dev/null "$prometheus_unit"
  fi
  install_part prometheus "its tests of metrics" prometheus && return 0
  [[ $masked == no ]] || as_root rm -f "$prometheus_unit"
}

# Programs on libibverbs and librdmacm, which find a lab's RDMA devices.
rdma_packages=(ibverbs-utils libfabric-bin perftest python3-numpy python3-pyverbs rdmacm-utils ucx-utils)

install_rdma() {
  [[ -n $(missing "${rdma_packages[@]}") ]] || return 0
  install_part "RDMA programs" "tests of RDMA devices" "${rdma_packages[@]}" || true
}

# Valgrind, which counts the engine's instructions (make bench-gate).
install_valgrind() {
  command -v valgrind >/dev/null || install_part valgrind "make bench-gate" valgrind || true
}

# p4runtime-shell pins a protobuf older than the controller's, so it lives in an environment of its own, beside PTF, whose
# tests use it. Nothing else needs them, so nothing stops where they cannot be had.
make_shell_environment() {
  [[ ! -e .venv-shell/weft-installed ]] || return 0
  echo "provision: making .venv-shell for p4runtime-shell and PTF"
  if /usr/bin/python3 -m venv .venv-shell &&
    .venv-shell/bin/python -m pip install --quiet "p4runtime-shell==0.0.6" "protobuf<3.21" setuptools ptf; then
    touch .venv-shell/weft-installed
  else
    echo "provision: p4runtime-shell and PTF could not be installed; going on without 'weft shell'"
  fi
}

# The reference compiler and switch, where p4lang's public repository answers.
install_references() {
  # shellcheck source=/dev/null
  source /etc/os-release
  [[ "$ID" == ubuntu ]] || return 0
  local url="https://download.opensuse.org/repositories/home:/p4lang/xUbuntu_${VERSION_ID}" key
  key=$(mktemp) # a name in /tmp that others know could be made theirs, and apt would trust what is in it
  if ! curl --fail --silent --max-time 20 "$url/Release.key" -o "$key"; then
    rm -f "$key"
    echo "provision: p4lang's package repository does not answer; going on without p4c and BMv2"
    return 0
  fi
  as_root install -D -m 0644 "$key" /etc/apt/keyrings/p4lang.asc
  rm -f "$key"
  echo "deb [signed-by=/etc/apt/keyrings/p4lang.asc] $url/ /" | as_root tee /etc/apt/sources.list.d/p4lang.list >/dev/null
  lists_are_new=no
  install_part "p4lang's packages" "p4c and BMv2" p4lang-p4c p4lang-bmv2 || true
}

main() {
  choose "$@"
  install_packages
  make_environment
  local lacks=no
  ! lacks_packages || lacks=yes
  [[ $lacks == no ]] || install_build_tools
  start_engine
  ! wanted browser || install_browser
  ! wanted mpi || install_mpi
  ! wanted prometheus || install_prometheus
  ! wanted rdma || install_rdma
  ! wanted valgrind || install_valgrind
  [[ $lacks == no ]] || install_requirements
  finish_engine
  [[ $lacks == no ]] || install_weft
  ! wanted shell || make_shell_environment
  ! wanted references || install_references
}

# Tests source this file for its functions.
if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  main "$@"
fi
