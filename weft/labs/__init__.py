"""The pages of labs: read, checked for their form, and made into notebooks."""
