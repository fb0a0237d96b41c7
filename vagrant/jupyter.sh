#!/usr/bin/env bash
# JupyterLab with a notebook for each lab, as a service of the lab VM. It listens on loopback and asks for a token, which
# is drawn once and printed here and at every login. Running this again keeps the notebooks and the token.
#
# WEFT_JUPYTER_PORT: where the port arrives on the machine that the browser runs on (Vagrantfile; default 8888).
# WEFT_DESTDIR: write the files below this folder, and start nothing (tests).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
destination=${WEFT_DESTDIR:-}
port=${WEFT_JUPYTER_PORT:-8888}
labs=$HOME/labs
settings=$HOME/.config/weft
user=$(id -un)

[[ $port =~ ^[1-9][0-9]{0,4}$ && $port -le 65535 ]] || {
  echo "jupyter: WEFT_JUPYTER_PORT is a port, not '$port' (valid: 1 to 65535)" >&2
  exit 2
}

# write PATH MODE: a file of root's with what comes in; through sudo only where it is not a test's.
write() {
  local target=$destination$1
  if [[ -n $destination ]]; then
    install -D -m "$2" /dev/stdin "$target"
  else
    sudo install -D -m "$2" /dev/stdin "$target"
  fi
}

# Under another name until all of them are there: what was interrupted would be kept for ever.
make_notebooks() {
  if [[ -e $labs ]]; then
    echo "jupyter: keeping $labs"
  else
    rm -rf "$labs.part"
    "$root/.venv/bin/weft" labs notebooks "$labs.part" >/dev/null
    mv "$labs.part" "$labs"
    echo "jupyter: made the notebooks in $labs"
  fi
}

# The token stands in a file that only its user reads: a command line would show it to every user of the machine.
make_token() {
  install -d -m 0700 "$settings"
  if [[ ! -s $settings/jupyter-token ]]; then
    (umask 077 && "$root/.venv/bin/python" -c 'import secrets; print(secrets.token_hex(24))' >"$settings/jupyter-token")
  fi
  chmod 0600 "$settings/jupyter-token"
}

write_configuration() {
  cat >"$settings/jupyter_server_config.py" <<CONFIGURATION
from pathlib import Path

c = get_config()  # noqa: F821
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port = 8888
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.root_dir = "$labs"
c.IdentityProvider.token = Path("$settings/jupyter-token").read_text().strip()
CONFIGURATION
}

write_service() {
  write /etc/systemd/system/weft-jupyter.service 0644 <<UNIT
[Unit]
Description=JupyterLab with Weft's labs
After=network.target

[Service]
User=$user
WorkingDirectory=$labs
ExecStart=$root/.venv/bin/jupyter lab --config=$settings/jupyter_server_config.py
Restart=on-failure

[Install]
WantedBy=multi-user.target
UNIT
}

write_greeting() {
  write /etc/profile.d/weft.sh 0644 <<GREETING
# Where JupyterLab is, for the user whose token this is.
if [ -n "\${PS1:-}" ] && [ -r "$settings/jupyter-token" ]; then
  echo "Labs: http://127.0.0.1:$port/lab?token=\$(cat "$settings/jupyter-token") (while this session is open)"
fi
GREETING
}

start_service() {
  sudo systemctl daemon-reload
  sudo systemctl enable --quiet weft-jupyter.service
  sudo systemctl restart weft-jupyter.service
}

make_notebooks
make_token
write_configuration
write_service
write_greeting
if [[ -z $destination ]]; then
  start_service
fi
echo "jupyter: run 'vagrant ssh' and, while it is open, go to http://127.0.0.1:$port/lab?token=$(cat "$settings/jupyter-token")"
