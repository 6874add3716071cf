"""How long calls take: the judge's own overhead, samples, baselines, confirmation by fresh pairs."""
