"""KernelBench's level 1 on this machine's CPU: does every file read, run, and pass as itself?

Each task's reference is wrapped as a candidate (`class ModelNew(Model)`) and climbs to `correct`.
It must pass: whoever refuses a reference measured against itself refuses honest kernels too. The
files are made for GPUs with tens of gigabytes, so their module-level sizes are shrunk first.

    git clone https://github.com/ScalingIntelligence/KernelBench
    python benchmarks/kernelbench_level1.py --kernelbench KernelBench --limit 40 --json out.jsonl

Writes one line per task and a summary; with `--json FILE` also one JSON object per task.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from toprung.errors import ToprungError
from toprung.tasks import read_task

MAX_BYTES = 16e6
"""Inputs, parameters and outputs together."""
MAX_FLOPS = 4e8
MAX_SECONDS = 0.1
"""For making inputs and calling the reference once."""
WRAPPED = "\n\nclass ModelNew(Model):\n    pass\n"


@dataclass
class Row:
    """What became of one file."""

    file: str
    read: bool = False
    fits: bool = False
    run: str = "not_reached"
    correct: str = "not_reached"
    reason: str = ""
    seconds: float = 0.0
    sizes: dict[str, str] = field(default_factory=dict)
    """Shrunk module-level assignments, as source."""

    @property
    def passed(self) -> bool:
        return self.run == self.correct == "passed"


class Sizes:
    """The integers of a module's top-level assignments that reach its inputs or its constructor."""

    def __init__(self, source: str):
        self._tree = ast.parse(source)
        self._before = {name: ast.unparse(node.value) for name, node in self._assignments()}
        fed = self._names_fed()
        self.constants = [
            constant
            for name, node in self._assignments()
            if name in fed
            for constant in ast.walk(node.value)
            if isinstance(constant, ast.Constant) and type(constant.value) is int
        ]

    def _assignments(self) -> Iterator[tuple[str, ast.Assign]]:
        for node in self._tree.body:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield target.id, node

    def _names_fed(self) -> set[str]:
        """Names that `get_inputs` and `get_init_inputs` use, directly or through assignments."""
        makers = ("get_inputs", "get_init_inputs")
        waiting: list[ast.AST] = [
            node
            for node in self._tree.body
            if isinstance(node, ast.FunctionDef) and node.name in makers
        ]
        values = dict(self._assignments())
        fed: set[str] = set()
        while waiting:
            for node in ast.walk(waiting.pop()):
                if isinstance(node, ast.Name) and node.id in values and node.id not in fed:
                    fed.add(node.id)
                    waiting.append(values[node.id].value)
        return fed

    def source(self) -> str:
        """The module with the sizes as they are now."""
        return ast.unparse(self._tree)

    def changed(self) -> dict[str, str]:
        """Assignments that differ from the file's."""
        after = {name: ast.unparse(node.value) for name, node in self._assignments()}
        return {name: text for name, text in after.items() if text != self._before[name]}


def load(source: str) -> ModuleType:
    """Run a reference's module. It is trusted: it comes from the folder that the user named."""
    module = ModuleType("reference")
    exec(compile(source, "reference", "exec"), module.__dict__)
    return module


def cost_on_meta(source: str) -> float:
    """The larger share of `MAX_BYTES` or `MAX_FLOPS` that a call takes, computed without data."""
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        module = load(source)
        inputs = module.get_inputs()
        model = module.Model(*module.get_init_inputs())
        outputs = model(*inputs)
    tensors = [*_tensors([inputs, outputs]), *model.parameters()]
    nbytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return max(nbytes / MAX_BYTES, counter.get_total_flops() / MAX_FLOPS)


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for inner in tree:
            yield from _tensors(inner)


def seconds_on_cpu(source: str) -> float:
    """Making inputs and calling the reference once, the second time."""
    module = load(source)
    with torch.no_grad():
        model = module.Model(*module.get_init_inputs())
        for _ in range(2):
            start = time.perf_counter()
            model(*module.get_inputs())
    return time.perf_counter() - start


def shrink(source: str) -> Sizes:
    """Halve the largest size that can be halved until the task fits; `ValueError` if it never does.

    A size whose change breaks the reference, or changes nothing, stays as it is.
    """
    sizes = Sizes(source)
    goal = 1.0
    fixed: set[int] = set()
    cost = cost_on_meta(sizes.source())
    while True:
        if cost <= goal:
            seconds = seconds_on_cpu(sizes.source())
            if seconds <= MAX_SECONDS:
                return sizes
            goal = cost * MAX_SECONDS / seconds
        cost = _halve_one(sizes, fixed, cost)


def _halve_one(sizes: Sizes, fixed: set[int], cost: float) -> float:
    """Halve one size, or all that are equal to it, and return the cost that is left."""
    values = [constant.value for constant in sizes.constants]
    free = [place for place, value in enumerate(values) if place not in fixed and value >= 2]
    while free:
        place = max(free, key=lambda place: values[place])
        for together in ([place], [p for p in free if values[p] == values[place]]):
            for one in together:
                sizes.constants[one].value = values[one] // 2
            with contextlib.suppress(RuntimeError, ValueError, TypeError, LookupError):
                less = cost_on_meta(sizes.source())
                if less < cost:
                    return less
            for one in together:
                sizes.constants[one].value = values[one]
        fixed.add(place)
        free.remove(place)
    raise ValueError(f"does not fit: {cost:.1f} times too large, and no size is left")


def climb(source: str, name: str, folder: Path, timeout_s: float) -> dict[str, Any]:
    """The verdict, as JSON, on the reference as a candidate for its own task."""
    task, candidate = folder / f"{name}.py", folder / "candidate.py"
    task.write_text(source)
    candidate.write_text(source + WRAPPED)
    toprung = Path(sys.executable).with_name("toprung")
    command = [str(toprung), "verify", str(task), str(candidate)]
    command += ["--upto", "correct", "--timeout", str(timeout_s), "--json"]
    said = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s + 60, check=False, cwd=folder
    )
    try:
        return json.loads(said.stdout)
    except json.JSONDecodeError:
        raise RuntimeError(f"exit {said.returncode}: {said.stderr.strip()[-300:]}") from None


def judge(path: Path, row: Row, timeout_s: float) -> None:
    """Fill in `row`."""
    read_task(path)
    row.read = True
    sizes = shrink(path.read_text(encoding="utf-8"))
    row.fits, row.sizes = True, sizes.changed()
    with tempfile.TemporaryDirectory() as folder:
        verdict = climb(sizes.source(), path.stem, Path(folder), timeout_s)
    rungs = {rung["name"]: rung for rung in verdict["rungs"]}
    row.run, row.correct = rungs["run"]["status"], rungs["correct"]["status"]
    failed = [rung for rung in verdict["rungs"] if rung["status"] in ("refuted", "errored")]
    row.reason = "; ".join(f"{rung['name']}: {rung['reason']}" for rung in failed)


def files_in(folder: Path) -> list[Path]:
    """Level 1's files in their own order, from a clone or from the folder of the level."""
    for level in (folder / "KernelBench" / "level1", folder / "level1", folder):
        files = [file for file in level.glob("*.py") if file.name.split("_")[0].isdigit()]
        if files:
            return sorted(files, key=lambda file: int(file.name.split("_")[0]))
    raise SystemExit(f"{folder}: no level 1 here; give a clone of KernelBench")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernelbench", type=Path, required=True, metavar="DIR")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N files")
    parser.add_argument("--match", default="", help="only files whose name contains this")
    parser.add_argument("--timeout", type=float, default=150.0, metavar="S", help="for each climb")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write JSON lines")
    options = parser.parse_args()
    files = [file for file in files_in(options.kernelbench) if options.match in file.name]
    rows = []
    for path in files[: options.limit]:
        row = Row(path.name)
        start = time.perf_counter()
        try:
            judge(path, row, options.timeout)
        except (ToprungError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
            row.reason = str(error)
        row.seconds = round(time.perf_counter() - start, 1)
        rows.append(row)
        marks = f"{row.run:>11} {row.correct:>11} {row.seconds:6.1f} s"
        print(f"{row.file[:54]:54} {marks}  {row.reason.splitlines()[0] if row.reason else ''}")
        sys.stdout.flush()
    if options.json:
        options.json.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    counts = [sum(getattr(row, name) for row in rows) for name in ("read", "fits", "passed")]
    print(
        f"{len(rows)} files: {counts[0]} read, {counts[1]} fit, {counts[2]} passed run and correct"
    )
    return 0 if counts[2] == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
