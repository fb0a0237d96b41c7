"""Frames per second through the engine, veth to veth, beside a bare C++ forwarder over the same receive ring.

    sudo .venv/bin/python benchmarks/bench_forwarder.py [--bytes 128 1024] [--seconds 1]

The load is stepped up; the figure is the highest rate that arrives with under 1 % loss. Sender and forwarder get a
core each. Needs root (network namespaces) and a C++ compiler.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parent / "forwarder" / "bare_forwarder.cpp"
ENGINE_SOURCES = Path(__file__).parent.parent / "engine" / "src"
MAX_LOSS = 0.01
STEP = 1.2
FIRST_RATE = 40_000
NAMESPACES = source, sink = f"bench-source{os.getpid()}", f"bench-sink{os.getpid()}"
IN, OUT = f"bin{os.getpid()}", f"bout{os.getpid()}"

ENGINE_FORWARDER = f"""
import sys
from engine import Collector, Engine, Link, PacketSocket, TransmitPort
engine = Engine.real_clock()
out = PacketSocket(engine, "{OUT}")
link = Link(engine)
link.connect(out)
PacketSocket(engine, "{IN}").connect(TransmitPort(engine, link))
engine.start()
print("ready", flush=True)
sys.stdin.read()
engine.stop()
"""


def run(*command: str) -> str:
    """Standard output of the command, which must succeed."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(folder: Path) -> str:
    """Compile the bare forwarder; its path."""
    binary = str(folder / "bare_forwarder")
    ring = str(ENGINE_SOURCES / "packet_ring.cpp")
    run("g++", "-std=c++20", "-O3", f"-I{ENGINE_SOURCES}", "-o", binary, str(SOURCES), ring)
    return binary


@contextmanager
def wires() -> Iterator[None]:
    """Source namespace - IN, OUT - sink namespace."""
    try:
        for namespace, interface in zip(NAMESPACES, (IN, OUT), strict=True):
            run("ip", "netns", "add", namespace)
            run(*f"ip link add {interface} type veth peer name e0 netns {namespace}".split())
            run("ip", "link", "set", interface, "addrgenmode", "none", "up")
            run("ip", "-n", namespace, "link", "set", "e0", "addrgenmode", "none", "up")
        yield
    finally:
        for namespace in NAMESPACES:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)


def received_frames() -> int:
    """Frames that have reached the sink."""
    return int(run("ip", "netns", "exec", sink, "cat", "/sys/class/net/e0/statistics/rx_packets"))


def highest_rate(forwarder: list[str], binary: str, size_bytes: int, seconds: float) -> float:
    """Frames per second forwarded at the highest step of the load that loses less than MAX_LOSS."""
    process = subprocess.Popen(
        ["taskset", "-c", "1", *forwarder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    best, offered = 0.0, float(FIRST_RATE)
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{forwarder[0]} did not start")
        while True:
            before = received_frames()
            sender = ["taskset", "-c", "0", "ip", "netns", "exec", source, binary, "send", "e0"]
            sent = int(run(*sender, str(offered), str(size_bytes), str(seconds)))
            received = received_frames() - before
            if received < sent * (1 - MAX_LOSS):
                return best
            best = max(best, received / seconds)
            if sent < 0.95 * offered * seconds:  # the sender itself can do no more
                return best
            offered *= STEP
    finally:
        process.stdin.close()
        process.wait()


def main() -> None:
    """Print one line per frame size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    print(f"{'bytes':>6} {'bare':>10} {'engine':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder, wires():
        binary = build(Path(folder))
        for size_bytes in options.bytes:
            bare = highest_rate([binary, "forward", IN, OUT], binary, size_bytes, options.seconds)
            engine = highest_rate(
                [sys.executable, "-c", ENGINE_FORWARDER], binary, size_bytes, options.seconds
            )
            ratio = engine / bare if bare else float("nan")
            print(f"{size_bytes:>6} {bare:>10.0f} {engine:>10.0f} {ratio:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
