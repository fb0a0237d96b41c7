"""The drafts' KPIs and the tests that measure them: Appendix A of each, "KPI-to-Test Mapping Summary"."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kpi:
    """A KPI as its draft names it; `sections` are the tests that measure it, `method` how."""

    name: str
    sections: tuple[str, ...]
    unit: str
    method: str


TRAINING_KPIS = (
    Kpi("Throughput Rate", ("5.1",), "Tbps", "binary search, zero loss"),
    Kpi("Latency (P99)", ("5.2",), "us", "tagged messages, loaded and unloaded"),
    Kpi("Burst Absorption", ("5.3",), "bytes", "longest burst without loss"),
    Kpi("ECN Accuracy", ("7.1",), "threshold deviation %", "queue depth against marks"),
    Kpi("PFC Behavior", ("7.2",), "PAUSE events/sec", "incast sweep"),
    Kpi("DCQCN Convergence", ("7.3",), "us", "rate stabilisation after onset"),
    Kpi("PFC Deadlock", ("7.4",), "deadlocks", "cyclic adversarial traffic"),
    Kpi("ECMP Imbalance", ("8.1",), "MMR", "MMR and JFI by queue pairs"),
    Kpi("DLB Efficacy", ("8.2",), "% of ECMP throughput", "throughput against ECMP"),
    Kpi("Spray Efficacy", ("8.3",), "JFI", "JFI and retransmissions"),
    Kpi("AllReduce BusBW", ("9.1",), "Gbps per accelerator", "collective benchmark"),
    Kpi("AlltoAll JCT", ("9.2",), "seconds per iteration", "collective benchmark"),
    Kpi("AllGather BusBW", ("9.3",), "Gbps per accelerator", "collective benchmark"),
    Kpi("Synthetic JCT Ratio", ("10.1",), "ratio", "measured over roofline"),
    Kpi("MLPerf JCT", ("10.2",), "tokens/sec", "training steps of a model's shape"),
    Kpi("Multi-Tenant Impact", ("10.3",), "interference factor", "contention JCT over baseline JCT"),
    Kpi("Scale Limit", ("11.1",), "accelerators", "largest N with its JCT ratio"),
    Kpi("Failover Time", ("11.2", "11.3"), "us", "duration of loss on a link failure"),
    Kpi("24h Stability", ("12.1",), "JCT ratio std deviation", "repeated collectives"),
    Kpi("UET Throughput (RUD)", ("6.1",), "Gbps", "binary search by transport service"),
    Kpi("UET First-Packet Latency", ("6.2",), "us", "PDC established with the first data"),
    Kpi("UET Spray Efficacy", ("6.3",), "JFI", "JFI and MMR under RUD and spray"),
    Kpi("UET PFC-Free Loss Rate", ("6.4",), "%", "incast without PFC"),
    Kpi("LLR Retry Latency", ("6.5",), "ns", "time of a recovery on one hop"),
    Kpi("Packet Trimming Savings", ("6.5",), "% bandwidth", "bytes not carried in vain"),
    Kpi("CBFC vs PFC HOL Blocking", ("6.5",), "us", "delay of flows that are not congested"),
    Kpi("UET Collective BusBW", ("6.6",), "Gbps per accelerator", "AllReduce over UET"),
    Kpi("PDC Establishment Rate", ("6.7",), "PDCs/second", "PDCs of one host to many"),
    Kpi("Max Concurrent PDCs", ("6.7",), "PDCs", "scale until a PDC gets less than 90 % of its share"),
)
INFERENCE_KPIS = (
    Kpi("TTFT", ("6.1", "6.2", "10.1", "10.3"), "ms", "time to first token, P99"),
    Kpi("ITL", ("10.2", "10.3", "10.4"), "ms", "inter-token latency, P99"),
    Kpi("TPS_output", ("6.2", "11.1", "11.2", "11.3"), "tokens/s", "output tokens of all workers"),
    Kpi("TPS_input", ("11.1",), "tokens/s", "prompt tokens of all workers"),
    Kpi("Inference_Goodput", ("11.1", "11.3"), "requests/s", "requests within their objectives"),
    Kpi("KV_xfer_latency", ("5.2", "5.3", "6.1", "6.4"), "us", "completion of one KV cache block, P99"),
    Kpi("KV_xfer_bandwidth", ("5.1", "5.3", "5.4"), "GB/s", "payload of KV caches"),
    Kpi("EP_alltoall_latency", ("7.1", "7.2", "7.3", "7.4"), "us", "one expert dispatch, P99"),
    Kpi("EP_alltoall_bandwidth", ("7.1", "7.3"), "GB/s", "payload of an expert dispatch, of all ranks"),
    Kpi("Fabric_FCT", ("5.2", "5.3"), "us", "flow completion time, median"),
    Kpi("Buffer_utilization", ("8.1", "8.2"), "%", "largest share of a switch's buffer"),
    Kpi("ECN_marking_rate", ("8.1", "8.3"), "%", "share of packets marked CE"),
    Kpi("PFC_frame_count", ("8.2", "8.4"), "frames", "PAUSE frames"),
    Kpi("Link_utilization", ("5.3", "9.3", "12.1"), "%", "busiest link between switches"),
    Kpi("Packet_drop_rate", ("8.1", "8.2", "12.3"), "ppm", "packets dropped"),
    Kpi("Request_Rate", ("11.1",), "req/s", "largest rate within the objectives"),
    Kpi("Prefix Cache Hit Rate", ("9.2",), "%", "requests that found their prefix"),
    Kpi("JFI (Decode Worker)", ("9.4",), "JFI", "KV bytes received by decode worker"),
)
