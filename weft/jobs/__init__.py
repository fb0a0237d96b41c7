"""Builds jobs from workload descriptions: transformer training, inference, storage, and recorded traces."""
