"""Traces that record calls of a communication library, rank by rank: how calls become a job."""
