"""From the checked tree to what BMv2 executes."""
