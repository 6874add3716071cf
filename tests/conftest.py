"""What every test may rely on: tests that need a GPU are skipped without one, and counted."""

from __future__ import annotations

import functools

import pytest

NO_GPU = "needs a CUDA device, and there is none here"


@functools.cache
def has_cuda() -> bool:
    """Whether torch sees a CUDA device; torch is loaded only when a GPU test was collected."""
    import torch

    return torch.cuda.is_available()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs hardware that is not here, with the reason."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and not has_cuda():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=NO_GPU))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many GPU tests were not run: a skipped test has shown nothing."""
    skipped = [r for r in terminalreporter.getreports("skipped") if NO_GPU in str(r.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} GPU tests were skipped: no CUDA device here")
