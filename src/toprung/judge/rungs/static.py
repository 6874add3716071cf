"""Does it parse, has it an entry, which DSL is it really, does the DSL's precheck pass?"""

from __future__ import annotations

from toprung.dsls import table
from toprung.dsls.python import calls_and_imports
from toprung.errors import Refuted, Unavailable

from .base import Facts
from .subject import Subject

QUESTION = "Does it parse, has it an entry, which DSL is it really?"
REFUTES = (
    "a syntax error, no entry, a failed precheck of the DSL, plain PyTorch where a task forbids it"
)
FACTS = "DSL, lines, labels"

SUSPICIOUS = {
    "ctypes": "calls native code by address",
    "gc": "walks the heap",
    "inspect": "looks at frames",
    "_getframe": "looks at frames",
    "threading": "starts threads",
    "multiprocessing": "starts processes",
    "subprocess": "starts processes",
    "fork": "starts processes",
    "socket": "opens sockets",
    "data_ptr": "reads addresses in Python",
    "perf_counter": "reads the clock",
    "perf_counter_ns": "reads the clock",
    "eval": "runs text as code",
    "exec": "runs text as code",
    "b64decode": "decodes hidden text",
}
"""Names whose use is worth a label. A label is never a verdict: scans are evaded and misfire."""


def check(subject: Subject) -> Facts:
    """Choose the DSL, ask it for its precheck, label what looks odd."""
    candidate = subject.candidate
    dsl = table.detect(candidate)
    here = dsl.available()
    if here.version is None:
        raise Unavailable(f"DSL {dsl.name} is not here: {here.missing}", hint=here.install)
    dsl.precheck(candidate)
    subject.dsl = dsl.name
    forbidden = subject.task.rules.library_calls == "forbid"
    if forbidden and dsl.name == "torch":
        raise Refuted(
            "it is written in plain PyTorch, and this task forbids library calls",
            hint="write the kernel itself, in C++ for example",
        )
    if candidate.main.endswith(".py"):
        names = calls_and_imports(candidate) & set(SUSPICIOUS)
        subject.labels = sorted({SUSPICIOUS[name] for name in names})
    if forbidden:
        subject.labels.append("whether library calls were made is not decided by this version")
    return {
        "dsl": dsl.name,
        "version": here.version,
        "lines": sum(text.count("\n") + 1 for text in candidate.files.values()),
        "labels": list(subject.labels),
    }
