"""Ceilings measured for real, their cache, and what breaks it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from toprung.devices.detect import detect_cpu
from toprung.errors import HarnessError, Unavailable
from toprung.judge.clock import ceilings as module
from toprung.judge.clock.ceilings import cache_path, ceilings, measure_ceilings
from toprung.judge.clock.probes import Probe, build_native, measure, take_turns
from toprung.model.device import Ceilings, Device

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def measured() -> Ceilings:
    """One real measurement for this file."""
    return measure_ceilings()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the user's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_figures_are_of_this_world(measured: Ceilings) -> None:
    device = detect_cpu()
    assert (measured.target, measured.device) == ("cpu:native", device.digest)
    assert measured.software == f"torch {torch.__version__}"
    for level in measured.levels:
        for rate in ("read", "write", "copy", "triad"):
            assert 1e8 < getattr(level, f"{rate}_bytes_per_s") < 1e14
    assert {"fp64", "fp32", "bf16"} == set(measured.matrix_flops_per_s)
    assert all(1e8 < rate < 1e15 for rate in measured.matrix_flops_per_s.values())
    assert 0.01 < measured.launch_us < 100


def test_caches_are_faster_than_memory(measured: Ceilings) -> None:
    if len(measured.levels) == 1:
        pytest.skip("this machine shows no caches")
    assert measured.levels[0].best_bytes_per_s > measured.memory.read_bytes_per_s


def test_no_copy_beats_the_ceiling_by_much(measured: Ceilings) -> None:
    if not measured.was_quiet:
        pytest.skip("the machine was busy when it was measured")
    a = torch.ones(1 << 24)
    out = torch.empty_like(a)
    best = min(_seconds(lambda: out.copy_(a)) for _ in range(10))
    assert 2 * a.nbytes / best < 1.5 * measured.memory.best_bytes_per_s


def _seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def test_with_a_compiler_vector_rates_are_measured(measured: Ceilings) -> None:
    if build_native() is None:
        pytest.skip("no C++ compiler")
    rates = measured.vector_flops_per_s
    assert rates["fp32"] > rates["fp64"] > 1e8


def test_without_a_compiler_and_caches_torch_measures_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toprung.judge.clock.probes.shutil.which", lambda _: None)
    monkeypatch.setattr("toprung.judge.clock.probes.TURNS_SECONDS", 0.0)
    threads = torch.get_num_threads()
    device = Device(kind="cpu", name="bare", target="cpu:native", memory_bytes=128 << 20, units=1)
    try:
        found = measure(device, "torch")
    finally:
        torch.set_num_threads(threads)
    assert [level.name for level in found.levels] == ["memory"]
    assert found.vector_flops_per_s == {} and found.matrix_flops_per_s["fp32"] > 1e8


def test_the_best_turn_counts() -> None:
    turns = iter([3.0, 1.0, 2.0])
    probe = Probe(("x",), 10.0, lambda: next(turns))
    take_turns([probe], seconds=0.0)
    assert probe.best == 1.0 and probe.rate == 10.0


# --- the cache; measuring is replaced by the one real measurement


@pytest.fixture
def counted(measured: Ceilings, monkeypatch: pytest.MonkeyPatch) -> list[Ceilings]:
    """Measurements to hand out; those left over were not asked for."""
    left = [measured, measured.model_copy(update={"launch_us": measured.launch_us / 2})]
    monkeypatch.setattr(module, "measure_ceilings", lambda target: left.pop(0))
    return left


def test_what_was_measured_is_kept(cache: Path, counted: list, measured: Ceilings) -> None:
    quiet = counted[0] = measured.model_copy(update={"load": 0.0})
    assert ceilings() == quiet == ceilings()
    assert len(counted) == 1
    path = cache_path(detect_cpu())
    assert path.is_relative_to(cache / "toprung" / "ceilings")
    assert Ceilings.from_json(path.read_text()) == quiet
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # no temporary file is left


def test_refreshing_raises_and_never_lowers(cache: Path, counted: list, measured: Ceilings) -> None:
    ceilings()
    better = ceilings(refresh=True)
    assert better.launch_us == measured.launch_us / 2
    counted.append(measured)
    assert ceilings(refresh=True).launch_us == measured.launch_us / 2


def test_a_busy_measurement_is_repeated_once_the_machine_is_quiet(
    cache: Path, counted: list, measured: Ceilings, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted[:] = [measured.model_copy(update={"load": x}) for x in (9.0, 0.1, 0.0)]
    monkeypatch.setattr(module, "load", lambda device: 9.0)
    ceilings()
    ceilings()
    assert len(counted) == 2
    monkeypatch.setattr(module, "load", lambda device: 0.1)
    assert ceilings().was_quiet and ceilings().was_quiet
    assert len(counted) == 1


@pytest.mark.parametrize(
    "damage", ["", "{", "null", "[]", '{"schema": "toprung.ceilings/9"}', "\x00"]
)
def test_a_damaged_cache_is_measured_again(cache: Path, counted: list, damage: str) -> None:
    ceilings()
    path = cache_path(detect_cpu())
    path.write_text(damage)
    assert ceilings().levels and counted == []
    assert Ceilings.from_json(path.read_text()).levels


def test_another_device_s_ceilings_are_not_taken(cache: Path, counted: list) -> None:
    ceilings()
    path = cache_path(detect_cpu())
    path.write_text(json.dumps({**json.loads(path.read_text()), "device": "another"}))
    ceilings()
    assert counted == []


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, counted: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    ceilings()
    ceilings()
    assert counted == []


def test_other_targets_are_not_measured() -> None:
    with pytest.raises(Unavailable, match="cuda:sm_90a"):
        ceilings("cuda:sm_90a")


def test_a_measurement_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(HarnessError, match="exit code 1") as caught:
        measure_ceilings()
    assert caught.value.hint
