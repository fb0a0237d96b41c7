"""Running: `runner` runs a scenario, `fabric` is the fabric that scripts, tests and commands use."""
