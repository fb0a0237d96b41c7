"""Jobs made from descriptions of what people run: training of transformers."""
