"""Rules, one per file; modules in this folder are found automatically (`weft.run.lint.RULES`)."""
