"""One question per file: `check(subject)` returns facts, or raises what refutes."""
