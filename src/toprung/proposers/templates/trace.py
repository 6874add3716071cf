"""From a module and its inputs to a graph as plain JSON, by torch.export. Imports torch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

DROPPED = (
    "aten.sym_size",
    "aten.sym_stride",
    "aten._assert_tensor_metadata",
    "aten._assert_scalar",
)
"""Operators that compute no tensor: sizes are written out as expressions where they are used."""

PLAIN = (bool, int, float, str)


class Unexportable(Exception):
    """The reference runs, but no graph of this kind says what it does; the message says why."""


Build = Callable[[], torch.nn.Module]


def graph_of(build: Build, inputs: list[Any], *, symbolic: bool) -> dict[str, Any]:
    """The decomposed graph of `build()(*inputs)`; with `symbolic`, sizes stay open where they can.

    `build` is called again where it must be known what the constructor draws at random. Raises `Unexportable`, or whatever torch.export raises.
    """
    for index, value in enumerate(inputs):
        if not (value is None or isinstance(value, torch.Tensor | bool | int | float | str)):
            raise Unexportable(f"input {index} is a {type(value).__name__}")
    model = build()
    shapes = tuple(_open_sizes(value) for value in inputs) if symbolic else None
    with torch.no_grad():
        program = torch.export.export(model, tuple(inputs), dynamic_shapes=shapes)
        program = program.run_decompositions()
    return _Writer(model, build, inputs, program).graph() | {"exact": not symbolic}


def _open_sizes(value: Any) -> dict[int, Any] | None:
    if not isinstance(value, torch.Tensor):
        return None
    return dict.fromkeys(range(value.dim()), Dim.AUTO)


class _Writer:
    """Writes one exported program."""

    def __init__(
        self, model: torch.nn.Module, another: Build, inputs: list[Any], program: ExportedProgram
    ):
        self.model = model
        self.another = another
        self.inputs = inputs
        self.program = program
        self.nodes = list(program.graph.nodes)
        self.sizes: dict[sympy.Symbol, int] = {}
        self.symbols: dict[str, tuple[int, int]] = {}
        self.constants: dict[str, Any] = {}

    def graph(self) -> dict[str, Any]:
        """The graph as JSON."""
        self._check_effects()
        sources, inputs = self._sources()
        self._check_constants()
        state = [_state(n, "parameter", t) for n, t in self.model.named_parameters()]
        state += [_state(n, "buffer", t) for n, t in self.model.named_buffers()]
        return {
            "symbols": self.symbols,
            "guards": self._guards(),
            "inputs": inputs,
            "state": state,
            "sources": sources,
            "nodes": [self._node(node) for node in self.nodes if self._computes(node)],
            "outputs": self._outputs(),
        }

    def _check_effects(self) -> None:
        kinds = {spec.kind for spec in self.program.graph_signature.output_specs}
        if OutputKind.USER_INPUT_MUTATION in kinds:
            raise Unexportable("it changes its inputs in place")
        if OutputKind.BUFFER_MUTATION in kinds:
            raise Unexportable("it changes its buffers, such as running statistics")
        if kinds - {OutputKind.USER_OUTPUT}:
            raise Unexportable("it does more than return its outputs")

    def _sources(self) -> tuple[list[dict[str, Any]], list[Any]]:
        owners = {id(t): n for n, t in self.model.named_parameters()}
        owners |= {id(t): n for n, t in self.model.named_buffers()}
        values = {node.name: node.meta.get("val") for node in self.nodes}
        sources: list[dict[str, Any]] = []
        inputs: list[Any] = []
        for spec in self.program.graph_signature.input_specs:
            name = spec.arg.name
            if spec.kind == InputKind.USER_INPUT:
                index = len(inputs)
                given = self.inputs[index]
                if isinstance(given, torch.Tensor):
                    self._bind(index, values[name], given)
                    inputs.append(self._meta(values[name]))
                else:
                    inputs.append({"constant": _plain(given)})
                sources.append({"name": name, "input": index})
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                tensor = _attribute(self.model, str(spec.target))
                sources.append({"name": name, "state": owners[id(tensor)]})
            else:
                sources.append({"name": name, "constant": self._constant(str(spec.target))})
        return sources, inputs

    def _constant(self, target: str) -> Any:
        tensor = self.program.constants.get(target)
        if not isinstance(tensor, torch.Tensor) or tensor.dim() > 0:
            raise Unexportable(
                f"it uses {target}, which is neither a parameter nor a buffer: register it as one"
            )
        self.constants[target] = tensor.item()
        return _plain(tensor.item())

    def _check_constants(self) -> None:
        """A number that the constructor drew at random is another one in the judge's process."""
        again = self.another() if self.constants else None
        for target, value in self.constants.items():
            tensor = _attribute(again, target)
            if isinstance(tensor, torch.Tensor) and tensor.item() != value:
                raise Unexportable(f"it draws {target} at random: register it as a parameter")

    def _bind(self, index: int, fake: Any, given: torch.Tensor) -> None:
        for dim, (size, hint) in enumerate(zip(fake.shape, given.shape, strict=True)):
            expr = _expr(size)
            if isinstance(expr, sympy.Symbol) and expr not in self.sizes:
                self.sizes[expr] = hint
                self.symbols[str(expr)] = (index, dim)

    def _guards(self) -> list[str]:
        """What must hold for this graph beyond the kinds of sizes that the inputs show."""
        env = next((_env(n.meta.get("val")) for n in self.nodes if _env(n.meta.get("val"))), None)
        if env is None:
            return []
        found: dict[str, None] = {}
        for guard in env.guards:
            expr = env.simplify(guard.expr)
            if expr is sympy.true or not expr.free_symbols <= self.sizes.keys():
                continue
            found[str(expr)] = None
        return list(found)

    def _computes(self, node: Any) -> bool:
        if node.op != "call_function" or node.target is operator.getitem:
            return False
        if _name(node.target).rpartition(".")[0] in DROPPED or _name(node.target) in DROPPED:
            return False
        return not isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool)

    def _node(self, node: Any) -> dict[str, Any]:
        value = node.meta.get("val")
        outs = value if isinstance(value, list | tuple) else [value]
        return {
            "name": node.name,
            "op": _name(node.target),
            "args": [self._arg(arg) for arg in node.args],
            "kwargs": {key: self._arg(arg) for key, arg in node.kwargs.items()},
            "outs": [self._meta(out) for out in outs if isinstance(out, torch.Tensor)],
        }

    def _meta(self, value: Any) -> dict[str, Any]:
        exprs = [_expr(size) for size in value.shape]
        return {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": [str(expr) for expr in exprs],
            "hint": [int(expr.subs(list(self.sizes.items()))) for expr in exprs],
        }

    def _arg(self, arg: Any) -> Any:
        if isinstance(arg, torch.fx.Node):
            value = arg.meta.get("val")
            if isinstance(value, torch.SymInt | torch.SymFloat):
                return {"size": str(_expr(value))}
            if arg.target is operator.getitem:
                return {"n": arg.args[0].name, "i": arg.args[1]}  # type: ignore[union-attr]
            return {"n": arg.name, "i": 0}
        if isinstance(arg, list | tuple):
            return [self._arg(item) for item in arg]
        if isinstance(arg, torch.dtype):
            return {"dtype": str(arg).removeprefix("torch.")}
        return _plain(arg)

    def _outputs(self) -> Any:
        (output,) = (node for node in self.nodes if node.op == "output")
        leaves = [_Leaf(self._arg(arg)) for arg in output.args[0]]
        spec = self.program.call_spec.out_spec
        assert spec is not None
        return _layout(pytree.tree_unflatten(leaves, spec))


class _Leaf:
    def __init__(self, content: Any):
        self.content = content


def _layout(tree: Any) -> Any:
    if isinstance(tree, _Leaf):
        found = tree.content
        return found if isinstance(found, dict) and "float" not in found else {"v": found}
    if isinstance(tree, dict):
        return {"dict": [[key, _layout(value)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        kind = "tuple" if isinstance(tree, tuple) else "list"
        return {kind: [_layout(item) for item in tree]}
    raise Unexportable(f"it returns a {type(tree).__name__}")


def _state(name: str, kind: str, tensor: torch.Tensor) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"name": name, "kind": kind, "dtype": dtype, "shape": list(tensor.shape)}


def _attribute(owner: Any, path: str) -> Any:
    """What `owner.path` is; `None` for a constant that only the exported program knows."""
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner


def _name(target: Any) -> str:
    """`aten.add` for `aten.add.Tensor`; what is no operator of torch keeps its own name."""
    if isinstance(target, torch._ops.OpOverload):
        return f"{target.namespace}.{target._schema.name.split('::')[-1]}"
    return getattr(target, "__name__", str(target))


def _expr(size: Any) -> sympy.Expr:
    if isinstance(size, torch.SymInt | torch.SymFloat):
        return sympy.sympify(size.node.expr)
    return sympy.sympify(size)


def _env(value: Any) -> Any:
    mode = getattr(value, "fake_mode", None)
    return getattr(mode, "shape_env", None)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, PLAIN):
        return value
    return {"other": str(value)}
