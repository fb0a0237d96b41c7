"""The pages of labs: reading them, checking their form, and converting them to notebooks."""
