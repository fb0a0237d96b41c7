"""`weft report`: a run's directory as one page that opens offline."""
