"""Everything that is trusted, bottom up: wire, clock, oracle and child, sandbox, rungs, ladder."""
