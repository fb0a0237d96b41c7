"""Benchmarks of AI fabrics as the IETF's benchmarking working group drafts them.

draft-calabria-bmwg-ai-fabric-training-bench, …-inference-bench and …-terminology define tests, KPIs and the report.
A fabric under test is a scenario without its traffic. Every test is one file of `training` or `inference`.
"""
