"""Which choices to try next: first one move at a time from the best so far, then by optuna.

The tuner has no memory of its own. It is built from what was tried and how that went, so a run that
was killed goes on, and the same history with the same seed gives the same proposal.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from .choices import Choices
from .space import Space

INSTALL = "pip install 'toprung[tune]'"
ASKS = 40
"""So often optuna is asked for a point that was not tried, before one is drawn from the rest."""


@dataclass(frozen=True)
class Tried:
    """A point of the space, and its time; `None` where it was refuted or has no time."""

    choices: Choices
    median_us: float | None
    failed: bool = False


class Exhausted(Exception):
    """No further point; the message says why."""


class Tuner:
    """Proposes points of `space`, each once."""

    def __init__(self, space: Space, first: Choices, tried: Sequence[Tried], seed: int):
        self._space = space
        self._first = first
        self._tried = list(tried)
        self._known = {self._key(each.choices) for each in tried}
        self._seed = seed

    def next(self) -> Choices:
        """The next point; raises `Exhausted`. The point counts as known from then on."""
        for choices in itertools.chain([self._first], self._moves()):
            if self._key(choices) not in self._known:
                return self._taken(choices)
        return self._taken(self._by_optuna())

    @property
    def best(self) -> Tried | None:
        """The fastest point so far."""
        timed = [each for each in self._tried if each.median_us is not None]
        return min(timed, key=lambda each: each.median_us or 0.0, default=None)

    def _taken(self, choices: Choices) -> Choices:
        self._known.add(self._key(choices))
        return choices.effective()

    def _moves(self) -> Iterator[Choices]:
        """The best point with one choice changed, to each choice's second value first."""
        start = self.best.choices if self.best else self._first
        deepest = max((len(values) for values in self._space.values()), default=0)
        for place in range(1, deepest):
            for name, values in self._space.items():
                if place < len(values) and not self._tested(name, values[place]):
                    yield start.model_copy(update={name: values[place]})

    def _tested(self, name: str, value: object) -> bool:
        """Whether any point had this value: a move that did not help is not made again."""
        return any(getattr(each.choices, name) == value for each in self._tried)

    def _key(self, choices: Choices) -> tuple[object, ...]:
        effective = choices.effective()
        return tuple(getattr(effective, name) for name in self._space)

    def _rest(self) -> list[Choices]:
        points = itertools.product(*self._space.values())
        made = (dict(zip(self._space, point, strict=True)) for point in points)
        all_ = (self._first.model_copy(update=point) for point in made)
        return [choices for choices in all_ if self._key(choices) not in self._known]

    def _by_optuna(self) -> Choices:
        rest = self._rest()
        if not rest:
            raise Exhausted("every choice of parameters has been tried")
        if find_spec("optuna") is None:
            raise Exhausted(
                "every single move has been tried; combinations are searched by optuna, which is "
                f"not here: {INSTALL}"
            )
        study = self._study()
        for _ in range(ASKS):
            trial = study.ask()
            point = {name: trial.suggest_categorical(name, v) for name, v in self._space.items()}
            choices = self._first.model_copy(update=point)
            if self._key(choices) not in self._known:
                return choices
            study.tell(trial, state=_optuna().trial.TrialState.FAIL)
        return random.Random(f"{self._seed}/{len(self._known)}").choice(rest)

    def _study(self) -> Any:
        """A study that has seen what was tried: refuted points as failed trials."""
        optuna = _optuna()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # optuna marks `multivariate` as experimental
            sampler = optuna.samplers.TPESampler(
                seed=self._seed + len(self._known), multivariate=True, n_startup_trials=1
            )
        study = optuna.create_study(sampler=sampler, direction="minimize")
        distributions = {
            name: optuna.distributions.CategoricalDistribution(values)
            for name, values in self._space.items()
        }
        states = optuna.trial.TrialState
        for each in self._tried:
            if each.median_us is None and not each.failed:
                continue
            params = {name: getattr(each.choices, name) for name in self._space}
            if any(value not in self._space[name] for name, value in params.items()):
                continue
            timed = each.median_us is not None
            study.add_trial(
                optuna.trial.create_trial(
                    params=params,
                    distributions=distributions,
                    value=each.median_us,
                    state=states.COMPLETE if timed else states.FAIL,
                )
            )
        return study


def _optuna() -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
