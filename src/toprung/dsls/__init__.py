"""Languages of candidates: one file each behind the contract in `base`, found by name in `table`."""
