#!/usr/bin/env bash
# Sets a Debian 12 or Ubuntu 24.04 machine up for Weft: apt packages, the project's .venv and the native engine.
# The lab VM's provisioner and `make demo` and `make test` on any machine run this same script.
# Running it again does only what is missing.
#
# WEFT_WITHOUT: what to leave out of browser, mpi, prometheus, shell and valgrind, as in "browser shell". WEFT_NOTEBOOKS=yes: JupyterLab, too.
# WEFT_REFERENCES=yes: p4lang's p4c and BMv2, where its packages can be had.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

packages=(
  ca-certificates ethtool g++ iperf3 iproute2 iputils-ping libcairo2 make mininet procps
  python3-dev python3-venv shellcheck tcpdump tshark
)

extras=demo,sweep,test,dev
[[ "${WEFT_NOTEBOOKS:-no}" != yes ]] || extras+=,notebook

# wanted NAME: whether a part that Weft can do without was not left out.
wanted() {
  [[ " ${WEFT_WITHOUT:-} " != *" $1 "* ]]
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

install_packages() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ! command -v apt-get >/dev/null; then
    echo "provision: needs apt (Debian 12 or Ubuntu 24.04); missing: ${missing[*]}" >&2
    exit 4
  fi
  echo "provision: installing ${missing[*]}"
  as_root apt-get update -qq
  # Mininet recommends Open vSwitch, which Weft does not use.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

make_environment() {
  # The distribution's interpreter, because that is where its Mininet can be imported.
  if [[ ! -x .venv/bin/python ]]; then
    echo "provision: making .venv"
    /usr/bin/python3 -m venv --system-site-packages .venv
  fi
  local state
  state="$(cat setup.cfg setup.py pyproject.toml vagrant/provision.sh | sha256sum) $extras"
  if [[ "$(cat .venv/weft-installed 2>/dev/null)" != "$state" ]]; then
    echo "provision: installing Python packages and building the engine"
    # setuptools also stands in for distutils, which Mininet imports and Python 3.12 no longer has.
    .venv/bin/python -m pip install --quiet --upgrade "setuptools>=68" wheel "pybind11>=2.12"
    # Until it was called weft-fabric the distribution was `weft`; pytest takes no plugin twice.
    .venv/bin/python -m pip uninstall --quiet --yes weft 2>/dev/null || true
    .venv/bin/python -m pip install --quiet --no-build-isolation --editable ".[$extras]" \
      --config-settings editable_mode=compat
    echo "$state" >.venv/weft-installed
    touch .venv/weft-built # the engine was built with the rest
  fi
}

build_engine() {
  local newest
  newest=$(find engine setup.py -newer .venv/weft-built -print -quit 2>/dev/null || true)
  if [[ ! -e .venv/weft-built || -n $newest ]]; then
    echo "provision: building the engine"
    .venv/bin/python setup.py --quiet build_ext --inplace
    touch .venv/weft-built
  fi
}

# A browser, in which the tests open reports. Ubuntu has none as a package of its own; nothing stops where there is none.
install_browser() {
  command -v chromium chromium-browser google-chrome >/dev/null && return 0
  command -v apt-get >/dev/null || return 0
  echo "provision: installing chromium"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core \
    >/dev/null 2>&1 || echo "provision: chromium could not be installed; going on without its tests of reports"
}

# MPI, for runs over several machines. Nothing stops where it cannot be had.
install_mpi() {
  local package packages=(openmpi-bin python3-mpi4py)
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed && continue
    command -v apt-get >/dev/null || return 0
    echo "provision: installing ${packages[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}" \
      >/dev/null 2>&1 || echo "provision: MPI could not be installed; going on without runs over several machines"
    return 0
  done
}

# Prometheus and promtool, for labs' metrics. The package's service stays masked: who watches a lab starts Prometheus with
# the lab's own configuration. Nothing stops where it cannot be had.
prometheus_unit=/etc/systemd/system/prometheus.service

install_prometheus() {
  command -v prometheus >/dev/null && return 0
  command -v apt-get >/dev/null || return 0
  echo "provision: installing prometheus, its service masked"
  local masked=no
  if [[ ! -e $prometheus_unit && ! -L $prometheus_unit ]]; then
    masked=yes
    as_root mkdir -p "$(dirname "$prometheus_unit")"
    as_root ln -s /dev/null "$prometheus_unit"
  fi
  # Single-user mode, in which init scripts start no services either, for machines without systemd.
  as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends prometheus \
    >/dev/null 2>&1 && return 0
  [[ $masked == no ]] || as_root rm -f "$prometheus_unit"
  echo "provision: prometheus could not be installed; going on without its tests of metrics"
}

# Valgrind, which counts the engine's instructions (make bench-gate). Nothing stops where it cannot be had.
install_valgrind() {
  command -v valgrind >/dev/null && return 0
  command -v apt-get >/dev/null || return 0
  echo "provision: installing valgrind"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends valgrind \
    >/dev/null 2>&1 || echo "provision: valgrind could not be installed; going on without make bench-gate"
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

# In the lab VM the reference compiler and switch are offered too, where p4lang's public repository answers.
install_references() {
  [[ "${WEFT_REFERENCES:-no}" == yes ]] || return 0
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
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y p4lang-p4c p4lang-bmv2 >/dev/null ||
    echo "provision: p4lang's packages could not be installed; going on without p4c and BMv2"
}

main() {
  install_packages
  ! wanted browser || install_browser
  ! wanted mpi || install_mpi
  ! wanted prometheus || install_prometheus
  ! wanted valgrind || install_valgrind
  make_environment
  build_engine
  ! wanted shell || make_shell_environment
  install_references
}

# Tests source this file for its functions.
if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  main
fi
