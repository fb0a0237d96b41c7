"""One module for each simulator, with its adapter as `KIND`."""
