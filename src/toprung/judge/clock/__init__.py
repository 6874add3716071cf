"""Clocks, statistics, flop and byte counts, measured ceilings: how fast, and how sure."""
