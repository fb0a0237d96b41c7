"""Running: `runner` runs a scenario, `fabric` has the fabric that scripts, tests and commands use."""
