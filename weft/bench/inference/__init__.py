"""Tests of draft-calabria-bmwg-ai-fabric-inference-bench, one file each."""
