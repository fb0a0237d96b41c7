"""Forged and truncated packets are dropped and counted, and the collective in progress comes out exact."""

import base64
import subprocess
import sys

import numpy as np
import pytest
from scapy.packet import raw

from end_to_end_data import buffers
from weft.run.aggregation_job import JOB_ID
from weft.run.collectives import CollectiveRequest
from weft.topologies.addressing import result_group_address, result_group_mac
from weft.traffic.aggregation_format import Kind
from weft.traffic.layers import aggregation_frame

SENDER = (
    "import base64, socket, sys\n"
    "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
    "s.bind(('h1-eth0', 0))\n"
    "frames = [base64.b64decode(line) for line in sys.stdin]\n"
    "for _ in range(20):\n"
    "    for frame in frames:\n"
    "        s.send(frame)\n"
)
REPETITIONS = 20


def forged_frames(fabric):
    """Return frames by the reason for which a switch must drop them; h1, a member of the job, sends them."""
    membership = fabric.lab.controller.memberships(JOB_ID)["h1"][0]
    nic = fabric.topology.host("h1").nics[0]
    good = {
        "source_mac": nic.mac,
        "destination_mac": membership.aggregation_mac,
        "source_ip": str(nic.ipv4.ip),
        "destination_ip": str(membership.aggregation_address),
        "qkey": membership.q_key,
        "job_id": JOB_ID,
        "epoch": membership.epoch,
        "rank": membership.rank,
        "slot": 0,
        "lanes": [10**6] * 64,
    }

    def frame(**change):
        return raw(aggregation_frame(**(good | change)))

    whole = frame()
    bad_icrc = bytearray(whole)
    bad_icrc[100] ^= 0xFF
    bad_version = bytearray(whole)
    bad_version[14 + 20 + 8 + 12 + 8] = 0x10
    return {
        "aggregation_bad_icrc": bytes(bad_icrc),
        "aggregation_bad_header": bytes(bad_version),
        "aggregation_foreign_job": frame(job_id=JOB_ID + 7),
        "aggregation_wrong_qkey": frame(qkey=membership.q_key ^ 1),
        "aggregation_wrong_epoch": frame(epoch=membership.epoch + 1),
        "aggregation_wrong_rank": frame(rank=membership.rank ^ 1),
        "aggregation_slot_out_of_range": frame(slot=membership.slot_count),
        "aggregation_unexpected_result": frame(
            kind=Kind.RESULT,
            rank=membership.rank,
            destination_ip=str(result_group_address(JOB_ID)),
            destination_mac=result_group_mac(JOB_ID),
        ),
        "aggregation_not_forwarded": frame(
            destination_ip=str(fabric.topology.switch("p0s0").address), rank=0, lanes=[1] * 64
        ),
        "parser_error": whole[:200],
    }


def send_from_h1(fabric, frames):
    process = fabric.lab.network.popen(
        "h1",
        [sys.executable, "-c", SENDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    process.stdin.write("".join(base64.b64encode(frame).decode() + "\n" for frame in frames))
    process.stdin.close()
    return process


def drops_of(fabric, switch):
    counters = fabric.lab.controller.read_counters()[switch]
    return {reason: count.packets for reason, count in counters.drops.items()}


@pytest.fixture(scope="module")
def joined(small_fabric):
    assert small_fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 64, 4), "in-network")).result.ok
    return small_fabric


def test_forged_packets_are_counted_by_reason_and_harm_nothing(joined):
    frames = forged_frames(joined)
    before = drops_of(joined, "p0l0")
    process = send_from_h1(joined, list(frames.values()))
    runs = [
        joined.run(CollectiveRequest("allreduce", buffers(np.int32, 3000, 4, seed), "in-network")) for seed in range(4)
    ]
    output = process.stdout.read()
    assert process.wait(timeout=30) == 0, output
    assert all(run.result.ok for run in runs)
    # The last frames are on their way for an emulated millisecond at most; one more collective outlasts that.
    assert joined.run(CollectiveRequest("allreduce", buffers(np.int32, 30000, 4), "in-network")).result.ok
    after = drops_of(joined, "p0l0")
    counted = {reason: after.get(reason, 0) - before.get(reason, 0) for reason in frames}
    assert counted == dict.fromkeys(frames, REPETITIONS)


def test_a_contribution_of_an_old_round_is_dropped(joined):
    """h1's own contribution of an old round, replayed: it is neither stored nor answered."""
    membership = joined.lab.controller.memberships(JOB_ID)["h1"][0]
    # Twice the slots, so that every slot has gone through rounds 0, 1 and 2 at least.
    count = 64 * 2 * membership.slot_count * 2
    assert joined.run(CollectiveRequest("allreduce", buffers(np.int32, count, 4), "in-network")).result.ok
    nic = joined.topology.host("h1").nics[0]
    frame = raw(
        aggregation_frame(
            source_mac=nic.mac,
            destination_mac=membership.aggregation_mac,
            source_ip=str(nic.ipv4.ip),
            destination_ip=str(membership.aggregation_address),
            qkey=membership.q_key,
            job_id=JOB_ID,
            epoch=membership.epoch,
            rank=membership.rank,
            slot=3,
            round_number=0,
            lanes=[10**6] * 64,
        )
    )
    before = drops_of(joined, "p0l0").get("aggregation_old_round", 0)
    process = send_from_h1(joined, [frame])
    assert process.wait(timeout=30) == 0, process.stdout.read()
    assert joined.run(CollectiveRequest("allreduce", buffers(np.int32, 30000, 4), "in-network")).result.ok
    assert drops_of(joined, "p0l0")["aggregation_old_round"] - before == REPETITIONS
