"""One case under examination: its content, its plan, and what is known of its conditioning."""

from __future__ import annotations

from dataclasses import dataclass, field

from toprung.errors import TaskError
from toprung.judge.clock.work import count_work
from toprung.judge.wire.trees import rebuild
from toprung.model.task import FAMILIES, Family

from .comparison import Expected
from .content import Content
from .discovery import Discovery, discover
from .execution import Runner, Tensors
from .families import Dose, doses
from .needles import HEIGHTS, are_needed, has_needles
from .plants import LEVELS, Level
from .randomness import derive
from .truth import Measured, Truth, decides, declared_of, nonfinite_share, truth_of
from .values import CaseSpec

GROWTH = 64.0
"""Planted elements are too bold when they make the reference's own error this many times larger."""


@dataclass(frozen=True)
class Ready:
    """Inputs of a call and what is expected of it."""

    leaves: Tensors
    expected: tuple[Expected, ...]
    note: str | None = None


@dataclass(frozen=True)
class _Habit:
    """What the task's own values do, with elements planted as boldly as the reference bears."""

    level: Level
    truth: Truth
    plain: Truth


@dataclass(frozen=True)
class _Needled:
    """How high needles may stand, and what they make of the profile."""

    height: float
    truth: Truth


@dataclass
class Course:
    """Stages one case. `runner` is the module as both sides now have it."""

    content: Content
    discovery: Discovery
    runner: Runner
    measured: Measured
    seed: int
    _habit: _Habit | None = None
    _needled: _Needled | None = None
    _first_dose: dict[str, int] = field(default_factory=dict)
    """By family: what weaker doses were found necessary; stronger ones are not tried again."""

    @classmethod
    def first_look(cls, content: Content, runner: Runner, measured: Measured, seed: int) -> Course:
        """Call the reference once on the task's own values."""
        leaves = content.plain()
        first = derive(seed, "first") % 2**31
        with content.reference.pointing("forward"):
            discovery = discover(
                runner, content.case.name, content.tree, leaves, first, lambda: content.plain(2)
            )
        return cls(content, discovery, runner, measured, seed)

    def spec(self) -> CaseSpec:
        """The case as the judge needs it."""
        case, found = self.content.case, self.discovery
        arguments = rebuild(self.content.tree.layout, self.content.plain())
        with self.content.reference.blamed(f"the work of case {case.name!r} cannot be counted"):
            work = count_work(self.runner.model, arguments)
        return CaseSpec(
            name=case.name,
            held_out=case.held_out,
            inputs=self.content.tree,
            outputs=found.plan.outputs,
            returned=found.returned,
            aliases=found.aliases,
            overlapping=found.overlapping,
            plain_fixed=found.plain_fixed,
            reference_us=found.reference_us,
            work=work,
            labels=tuple(self._labels()),
        )

    def adopt(self, runner: Runner) -> None:
        """The module has other parameters now: what was known of conditioning is void."""
        self.runner, self._first_dose = runner, {}
        self._habit, self._needled = None, None

    def bears(self, runner: Runner) -> bool:
        """Whether a module with other parameters is as finite as the present one."""
        seed = self.call_seed("as_given", -1)
        leaves = self.content.plain()
        plan = self.discovery.plan
        try:
            new = runner.declared(plan, leaves, seed)
        except TaskError:
            return False
        old = self.runner.declared(plan, leaves, seed)
        return all(
            int(a.isfinite().sum()) >= int(b.isfinite().sum())
            for a, b in zip(new, old, strict=True)
        )

    def call_seed(self, family: Family, draw: int) -> int:
        """Seeds both sides before the call."""
        return derive(self.seed, family, draw, "call") % 2**31

    def truth(self, family: Family, draw: int) -> Ready | str:
        """Inputs with their float64 truth, or why this family cannot be asked here."""
        if family == "as_given":
            leaves = self._own(draw, truth=True)[0]
            found = self._truth_of(leaves, family, draw)
            return Ready(leaves, found.expected, found.note)
        if self.measured.tolerance.preset == "kernelbench":
            return "the kernelbench preset knows the task's own inputs only"
        reason = ""
        for index, dose in enumerate(doses(family)):
            if index < self._first_dose.get(family, 0):
                continue
            leaves = self.content.draw(family, dose, "none", draw)
            if isinstance(leaves, str):
                return leaves
            try:
                found = self._truth_of(leaves, family, draw)
            except TaskError as failed:
                reason = failed.message
                continue
            reason = self._unfit(found, family, dose) or ""
            if not reason:
                self._first_dose[family] = index
                return Ready(leaves, found.expected, found.note)
        return reason

    def declared(self, family: Family, draw: int) -> Ready | str:
        """Inputs with the declared precision's answer; the profile comes from `as_given`."""
        if family != "as_given":
            return self.truth(family, draw)
        leaves, known = self._own(draw, truth=False)
        expected = declared_of(
            self.measured,
            self.runner,
            self.discovery.plan,
            leaves,
            self.call_seed(family, draw),
            known.profiles,
        )
        return Ready(leaves, expected, known.note)

    @property
    def habit(self) -> _Habit:
        """Found at first use: how boldly elements can be planted, and the profile of the case."""
        if self._habit is None:
            with self.content.reference.pointing("forward"):
                habit = self._find_habit()
                self._habit, self._needled = habit, self._find_needled(habit)
                if not self._decides_anything(habit):
                    self._habit = None
                    raise TaskError(
                        f"rounding alone decides case {self.content.case.name!r}: a constant would "
                        f"pass on every input family",
                        hint="return values that small changes of the inputs change little",
                    )
        return self._habit

    def _find_habit(self) -> _Habit:
        plain = self._truth_of(self._as_given("none", "habit"), "as_given", -1)
        floating = [one for one in plain.expected if one.rule is not None and one.want.numel()]
        if floating and all(nonfinite_share(one) == 1.0 for one in floating):
            raise TaskError(
                "the reference returns nothing finite on its own inputs",
                hint="a kernel cannot be judged by NaN or infinity alone: mend the inputs",
            )
        for level in LEVELS[:-1]:
            try:
                bold = self._truth_of(self._as_given(level, "habit"), "as_given", -1)
            except TaskError:  # the reference was not made for it: plant milder ones, or none
                continue
            if _bears(plain, bold):
                return _Habit(level, bold, plain)
        return _Habit("none", plain, plain)

    def _decides_anything(self, habit: _Habit) -> bool:
        """Whether a constant is refuted by the task's own values, or else by any family."""
        if self.measured.tolerance.preset == "kernelbench" or decides([habit.plain]):
            return True
        other = self._truth_of(self._as_given("none", "other"), "as_given", -2)
        if decides([habit.plain, other]):
            return True
        return any(
            isinstance(self.truth(family, -1), Ready) for family in FAMILIES if family != "as_given"
        )

    def _find_needled(self, habit: _Habit) -> _Needled | None:
        """The highest needles that the reference bears, if any. KernelBench's rule knows none."""
        if self.measured.tolerance.preset == "kernelbench":
            return None
        if not any(
            one.rule and are_needed(profile.terms, one.rule.natural_floor(profile.terms))
            for one, profile in zip(habit.plain.expected, habit.plain.profiles, strict=True)
        ):
            return None
        for height in HEIGHTS:
            if height > 1 and habit.level != "strong":
                continue
            leaves = self.content.needled(height, not habit.plain.exponential, "habit")
            if leaves is None:
                return None
            try:
                found = self._truth_of(leaves, "as_given", -1)
            except TaskError:
                continue
            if found.unfit is None and _bears(habit.plain, found):
                return _Needled(height, found)
        return None

    def _own(self, draw: int, truth: bool) -> tuple[Tensors, Truth]:
        """The task's own values with some planted, or with needles; and what is known of such."""
        habit, needled = self.habit, self._needled
        if needled and has_needles(derive(self.seed, "needles"), draw, truth):
            leaves = self.content.needled(needled.height, not habit.plain.exponential, draw)
            if leaves is not None:
                return leaves, needled.truth
        return self._as_given(habit.level, draw), habit.truth

    def _as_given(self, level: Level, *labels: object) -> Tensors:
        leaves = self.content.draw("as_given", Dose(1.0), level, *labels)
        assert not isinstance(leaves, str), "the task's own values always fit"
        return leaves

    def _truth_of(self, leaves: Tensors, family: Family, draw: int) -> Truth:
        return truth_of(
            self.measured,
            self.runner,
            self.discovery.plan,
            leaves,
            self.call_seed(family, draw),
            derive(self.seed, family, draw, "truth"),
        )

    def _unfit(self, found: Truth, family: Family, dose: Dose) -> str | None:
        if family != "special_values":
            usual = self.habit.truth.expected
            for one, normal in zip(found.expected, usual, strict=True):
                share = nonfinite_share(one)
                if share > 1.5 * nonfinite_share(normal):
                    return f"the reference itself is not finite in {share:.1%} of {one.label}"
        if family == "large_offset" and not dose.alone:
            for one, profile in zip(found.expected, found.profiles, strict=True):
                floor = one.rule.natural_floor(profile.terms) if one.rule else 0.0
                if profile.flagged or profile.own > floor:
                    return f"offsets in every input leave few digits in {one.label}"
        return found.unfit

    def _labels(self) -> list[str]:
        labels = []
        fixed = all(structure.fixed for structure in self.content.structures)
        if fixed and not self.discovery.draws:
            labels.append("inputs never vary: a stored answer would pass")
        labels += [
            f"input {i}: {structure.label}"
            for i, structure in enumerate(self.content.structures)
            if structure.label
        ]
        if self.discovery.draws:
            labels.append(f"forward draws {self.discovery.draws} times at random")
        labels += [spec.label for spec in self.discovery.plan.outputs if spec.source != "return"]
        return labels


def _bears(plain: Truth, bold: Truth) -> bool:
    """Whether planted elements leave the reference finite and about as exact as it was."""
    for one, other, before, after in zip(
        plain.expected, bold.expected, plain.profiles, bold.profiles, strict=True
    ):
        if nonfinite_share(other) > nonfinite_share(one) or after.flagged > 2 * before.flagged:
            return False
        floor = 2.0**-20 if one.rule is None else one.rule.natural_floor(before.terms)
        if after.own > GROWTH * max(before.own, floor):
            return False
    return bold.note is None or plain.note is not None
