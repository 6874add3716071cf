"""Where candidate code runs: a process of its own, behind walls, under limits, for one use."""
