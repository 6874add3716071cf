"""Proposer `templates`: writes a fused C++ kernel from a reference's operators, and tunes it."""

from __future__ import annotations

import os

from toprung.model.candidate import Candidate
from toprung.model.run import Attempt, Proposal
from toprung.model.task import Task
from toprung.proposers.base import NothingToPropose
from toprung.proposers.settings import ProposerSettings

from .capturing import captured
from .choices import Choices
from .graph import Graph
from .lower import NotCovered
from .match import Plan, plan_of
from .sizes import Unreadable
from .source import choices_of, source_of
from .space import first_choices, space_of
from .tuner import Exhausted, Tried, Tuner

WHAT_NEXT = (
    "What next: write a kernel by hand and check it with `toprung verify TASK KERNEL`, or start a "
    "run from it with `toprung optimize TASK --from KERNEL`"
)


class Program:
    """A task that the templates cover: its graph, and how its loops go."""

    def __init__(self, graph: Graph, plan: Plan):
        self.graph = graph
        self.plan = plan

    @classmethod
    def of_task(cls, task: Task, target: str) -> Program:
        """Capture and match; raises `NothingToPropose`, saying what is not covered."""
        if task.grad:
            raise _nothing("no template computes gradients, and they are part of the task")
        graphs: list[Graph] = []
        for capture in captured(task, target):
            if capture.graph is None:
                raise _nothing(f"case {capture.case!r}: {capture.refused}")
            graphs.append(capture.graph)
        programs = [cls.of_graph(graph) for graph in graphs]
        for program in programs:
            if all(program.graph.accepts(graph) for graph in graphs):
                return program
        raise _nothing("the cases lead to different operators, and one kernel is wanted")

    @classmethod
    def of_graph(cls, graph: Graph) -> Program:
        """Match one graph; raises `NothingToPropose`."""
        try:
            plan = plan_of(graph)
            source_of(plan, graph, first_choices(plan))
        except (NotCovered, Unreadable) as reason:
            raise _nothing(str(reason)) from None
        return cls(graph, plan)

    def candidate(self, choices: Choices) -> Candidate:
        """The kernel with these choices."""
        return Candidate.of_source(source_of(self.plan, self.graph, choices), dsl="cpp")


class TemplateEngine:
    """Needs no model and no network. Its memory is the history: parameters stand in the source."""

    name = "templates"

    def __init__(self, *, target: str = "cpu:native", dsl: str | None = None, seed: int = 0):
        self._target = target
        self._dsl = dsl
        self._seed = seed
        self._programs: dict[str, Program] = {}

    @classmethod
    def create(cls, settings: ProposerSettings) -> TemplateEngine:
        """An engine for the target and the DSL of `settings`."""
        return cls(target=settings.target, dsl=settings.dsl, seed=settings.seed or 0)

    def propose(
        self, task: Task, history: tuple[Attempt, ...], hints: tuple[str, ...], count: int
    ) -> list[Proposal]:
        """At most `count` kernels that the history does not hold."""
        if self._dsl not in (None, "cpp"):
            raise NothingToPropose(f"the templates write cpp, not {self._dsl}. {WHAT_NEXT}")
        if not self._target.startswith("cpu"):
            raise NothingToPropose(f"the templates write for cpu, not {self._target}. {WHAT_NEXT}")
        program = self._program(task)
        first = first_choices(program.plan)
        tuner = Tuner(
            space_of(program.plan, os.cpu_count() or 1), first, _tried(history), self._seed
        )
        parent = _parent(history, tuner)
        proposals: list[Proposal] = []
        while len(proposals) < count:
            try:
                choices = tuner.next()
            except Exhausted as why:
                if proposals:
                    break
                raise NothingToPropose(f"{why}. {WHAT_NEXT}") from None
            proposals.append(
                Proposal(
                    candidate=program.candidate(choices),
                    parent=parent,
                    note=_note(program.plan, first, choices),
                    author=self.name,
                )
            )
        return proposals

    def _program(self, task: Task) -> Program:
        if task.digest not in self._programs:
            self._programs[task.digest] = Program.of_task(task, self._target)
        return self._programs[task.digest]


def _nothing(reason: str) -> NothingToPropose:
    return NothingToPropose(f"The templates do not cover this task: {reason}. {WHAT_NEXT}")


def _tried(history: tuple[Attempt, ...]) -> list[Tried]:
    """What the history says about kernels of this engine."""
    tried: list[Tried] = []
    for attempt in history:
        choices = choices_of(attempt.proposal.candidate.source)
        if choices is None:
            continue
        verdict = attempt.verdict
        if verdict is None or verdict.outcome == "errored":
            tried.append(Tried(choices, None))
        elif verdict.outcome == "passed" and verdict.measurement:
            tried.append(Tried(choices, verdict.measurement.median_us))
        else:
            tried.append(Tried(choices, None, failed=verdict.outcome == "refuted"))
    return tried


def _parent(history: tuple[Attempt, ...], tuner: Tuner) -> str | None:
    """The candidate with the best choices so far."""
    best = tuner.best
    for attempt in history:
        candidate = attempt.proposal.candidate
        if best and choices_of(candidate.source) == best.choices:
            return candidate.digest
    return None


def _note(plan: Plan, first: Choices, choices: Choices) -> str:
    own = choices.to_dict()
    changed = [f"{k} {v}" for k, v in own.items() if first.to_dict()[k] != v]
    what = ", ".join(changed) or "first choices"
    return f"{plan.loops.family} kernel: {what}"
