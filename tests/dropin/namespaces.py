"""A host as a network namespace with one link."""

from __future__ import annotations

import subprocess


class Namespace:
    """A network namespace with a veth pair: `inside` in it, `outside` in the namespace of the test."""

    def __init__(self, name: str, outside: str) -> None:
        self.name = name
        self.outside = outside
        self.inside = "eth0"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", self.inside, "netns", name)
        for command in (["link", "set", outside, "up"], ["-n", name, "link", "set", self.inside, "up"]):
            run("ip", *command)
        # Neighbour discovery would mix its own packets with the test's.
        self.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        run("sysctl", "-qw", f"net.ipv6.conf.{outside}.disable_ipv6=1")

    def run(self, *command: str) -> str:
        """What a command says in the namespace."""
        return run("ip", "netns", "exec", self.name, *command)

    def close(self) -> None:
        """Remove namespace and pair."""
        subprocess.run(["ip", "link", "delete", self.outside], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "delete", self.name], check=False, capture_output=True)


def run(*command: str) -> str:
    """What a command prints. AssertionError with what it says if it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
