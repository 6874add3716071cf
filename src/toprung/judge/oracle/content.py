"""What a case is fed: the task's own fresh values, as a family has them, with a few planted."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from toprung.errors import TaskError
from toprung.model.task import Case, Family
from toprung.model.tensor import Tree

from .families import Dose, bend
from .needles import stick
from .plants import Level, plant
from .randomness import derive, generator
from .reference import Reference
from .structure import Structure, observe


@dataclass(frozen=True)
class Content:
    """Inputs of one case. The same seed, family and draw give the same content, to the bit."""

    reference: Reference
    case: Case
    tree: Tree
    structures: tuple[Structure, ...]
    seed: int

    @classmethod
    def of(cls, reference: Reference, case: Case, seed: int) -> Content:
        """Draw twice and note what both draws have in common."""
        draws = [reference.draw(case, derive(seed, "observe", n)) for n in range(2)]
        (tree, first), (_, second) = draws
        content = cls(reference, case, tree, (), seed)
        for other, _ in draws:
            content.require_same_shapes(other)
        structures = tuple(observe(a, b) for a, b in zip(first, second, strict=True))
        return cls(reference, case, tree, structures, seed)

    def require_same_shapes(self, other: Tree) -> None:
        """Raise `TaskError` when a draw differs in types or shapes from the first."""
        if other.specs == self.tree.specs:
            return
        with self.reference.pointing("get_inputs"):
            raise TaskError(
                f"get_inputs() returns other shapes or types on another draw (case "
                f"{self.case.name!r}): {_listed(self.tree)}, then {_listed(other)}",
                hint="draw values at random, not shapes; give each shape a case of its own",
            )

    def plain(self, *labels: object) -> list[torch.Tensor]:
        """The task's own values, nothing planted: what the task itself must be able to bear."""
        return self._drawn("plain", *labels)

    def draw(
        self, family: Family, dose: Dose, level: Level, *labels: object
    ) -> list[torch.Tensor] | str:
        """Inputs of `family`; or why no input has room for it."""
        leaves = self._drawn(family, *labels)
        secret = [generator(self.seed, family, *labels, "map", i) for i in range(len(leaves))]
        if family == "as_given":
            return self._planted(leaves, level, secret)
        bent = [
            bend(family, leaf, structure, dose.strength, rng)
            for leaf, structure, rng in zip(leaves, self.structures, secret, strict=True)
        ]
        room = [i for i, one in enumerate(bent) if not isinstance(one, str)]
        if dose.alone and room:
            chosen = generator(self.seed, family, *labels, "input")
            only = room[int(torch.randint(len(room), (), generator=chosen))]
            bent = [one if i == only else _left(one) for i, one in enumerate(bent)]
        if all(isinstance(one, str) for one in bent):
            if not bent:
                return "there are no tensors among the inputs"
            kinds = [f"input {i} is {why}" for i, why in enumerate(bent)]
            return f"no input can take other values: {', '.join(kinds)}"
        return [
            leaf if isinstance(one, str) else one for leaf, one in zip(leaves, bent, strict=True)
        ]

    def needled(self, height: float, shrink: bool, *labels: object) -> list[torch.Tensor] | None:
        """The task's own values with needles `height` times their range; `None` without room."""
        leaves = self._drawn("needles", *labels)
        stuck = [
            stick(
                leaf, structure, height, shrink, i == 0, generator(self.seed, "needles", *labels, i)
            )
            for i, (leaf, structure) in enumerate(zip(leaves, self.structures, strict=True))
        ]
        if all(one is None for one in stuck):
            return None
        return [leaf if one is None else one for leaf, one in zip(leaves, stuck, strict=True)]

    def _drawn(self, *labels: object) -> list[torch.Tensor]:
        tree, leaves = self.reference.draw(self.case, derive(self.seed, *labels, "inputs"))
        self.require_same_shapes(tree)
        return leaves

    def _planted(
        self, leaves: list[torch.Tensor], level: Level, secret: list[torch.Generator]
    ) -> list[torch.Tensor]:
        planted = []
        for leaf, structure, rng in zip(leaves, self.structures, secret, strict=True):
            own = leaf if leaf.is_contiguous() else leaf.clone()
            plant(own, structure, level, rng)
            planted.append(own)
        return planted


def _left(bent: torch.Tensor | str) -> str:
    return bent if isinstance(bent, str) else "left as it is"


def _listed(tree: Tree) -> str:
    return ", ".join(f"{spec.dtype}{list(spec.shape)}" for spec in tree.specs)
