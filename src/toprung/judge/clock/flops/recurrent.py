"""Recurrent layers as torch computes them: per step two matrix products and the gates.

The counts per hidden element are those of torch's own decomposition, which other devices run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .call import Flops

# Per hidden element: the gates' own arithmetic, and how many gates have two projections to add up.
CELLS = {
    "lstm": (18, 4),  # three sigmoids (12), two tanh, three multiplies, one add
    "gru": (14, 2),  # two sigmoids (8), tanh; r * h: multiply, add; mix: subtract, multiply, add
    "rnn_tanh": (1, 1),
    "rnn_relu": (1, 1),
}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclass(frozen=True)
class Recurrent:
    """One call of `torch.lstm`, `gru`, `rnn_tanh` or `rnn_relu` on a padded batch."""

    cell: str
    x: torch.Tensor
    states: tuple[torch.Tensor, ...]
    """Initial hidden state and, for an LSTM, cell state: (layers x directions, batch, size)."""
    weights: Sequence[torch.Tensor]
    """Per layer and direction: both matrices, both biases if any, an LSTM's projection if any."""
    has_biases: bool
    layers: int
    directions: int
    dropout: float = 0.0
    """Between layers, in training."""

    @property
    def places(self) -> int:
        """Steps times batch."""
        return self.x.shape[0] * self.x.shape[1]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the results: outputs of the last layer, and the last states."""
        outputs = (*self.x.shape[:2], self.directions * self.states[0].shape[-1])
        return [outputs, *(tuple(state.shape) for state in self.states)]

    @property
    def flops(self) -> Flops:
        """All layers, directions and steps."""
        stacks = self.layers * self.directions
        matrices = [w for w in self.weights if w.dim() == 2]
        hidden = matrices[0].shape[0] // GATES[self.cell]
        own, joined = CELLS[self.cell]
        biases = 2 * GATES[self.cell] * self.has_biases
        other = stacks * self.places * hidden * (own + joined + biases)
        if self.dropout > 0:
            width = self.directions * self.states[0].shape[-1]
            other += 2 * (self.layers - 1) * self.places * width
        return Flops(product=2 * self.places * sum(w.numel() for w in matrices), other=other)
