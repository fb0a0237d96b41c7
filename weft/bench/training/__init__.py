"""Tests of draft-calabria-bmwg-ai-fabric-training-bench, one file each."""
