"""The real clock: a fabric in Mininet's namespaces, its switches and hosts in processes of their own."""
