"""What a run came to, in plain words."""

from __future__ import annotations

from toprung.model.run import Run

from .policy import BASELINE, confirmed, faster


def in_words(run: Run, why: str) -> str:
    """Why the run ended, and what is known of its best kernel."""
    return f"{why.rstrip('.')}. {_of_best(run)}" if why else _of_best(run)


def _of_best(run: Run) -> str:
    best = run.best
    if best is None or best.verdict is None:
        return "No candidate passed." if run.attempts else "Nothing was tried."
    measurement = best.verdict.measurement
    if measurement is None:
        return f"Attempt {best.index} passed up to {best.verdict.height}; it was not timed."
    speedup = measurement.speedup.get(BASELINE)
    if speedup is None:
        return f"Attempt {best.index} takes {measurement.median_us:.4g} us."
    figures = f"{speedup.ratio:.2f} times as fast as {BASELINE}"
    interval = f"{speedup.ci[0]:.2f} to {speedup.ci[1]:.2f}"
    if faster(best.verdict):
        return f"Attempt {best.index} is confirmed faster: {figures} ({interval})."
    if confirmed(best.verdict):
        return (
            f"Attempt {best.index} is not confirmed faster than {BASELINE}: {figures} ({interval})."
        )
    return f"Attempt {best.index} was measured at {figures}; that is not confirmed."
