"""Jobs made from descriptions of what people run: training of transformers, and traces that were recorded."""
