"""Native tasks: a folder with `task.toml` beside the reference that it names."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from toprung.errors import TaskError, UsageError
from toprung.model.task import Case, Inputs, Objective, Rules, Task, Tolerance, Weights
from toprung.model.tensor import Precision
from toprung.model.value import Value

from .reference import Outline, check_arguments, check_reference
from .source import is_folder, parse_python, read_text, shown
from .toml import Key, as_json, load_toml, place_of, spelled

FILE = "task.toml"


class TaskTable(Value):
    """`[task]`: what is computed."""

    name: Annotated[str, Field(min_length=1)] | None = None
    """By default the name of the folder, or of the file when that is not `task.toml`."""
    precision: Precision | None = None
    grad: tuple[str, ...] = ()
    train: bool = False
    reference: Annotated[str, Field(min_length=1)] = "reference.py"
    """Path of the reference, seen from the folder of the file."""
    description: str = ""


class BaselineTable(Value):
    """`[baseline]`: what else is timed."""

    vendor: Annotated[str, Field(min_length=1)] | None = None
    """Path of a candidate file, seen from the folder of the file."""


class TaskFile(Value):
    """The whole file; every table and every key may be left out."""

    task: TaskTable = TaskTable()
    cases: Annotated[tuple[Case, ...], Field(min_length=1)] = (Case(),)
    tolerance: Tolerance = Tolerance()
    inputs: Inputs = Inputs()
    rules: Rules = Rules()
    objective: Objective = Objective()
    baseline: BaselineTable = BaselineTable()


# The values whose keys a message lists, by the table that is wrong.
_TABLES: dict[tuple[str, ...], type[BaseModel]] = {
    (): TaskFile,
    ("task",): TaskTable,
    ("cases",): Case,
    ("tolerance",): Tolerance,
    ("inputs",): Inputs,
    ("rules",): Rules,
    ("objective",): Objective,
    ("objective", "weights"): Weights,
    ("baseline",): BaselineTable,
}


def read(path: Path) -> Task | None:
    """The task in the folder `path`, or in the `.toml` file `path`; `None` for anything else.

    A folder without `task.toml` is `None` too. Neither the reference nor the vendor baseline is
    executed; both are read into the task.
    """
    folder = is_folder(path)
    file = path / FILE if folder else path
    if file.suffix != ".toml" or (folder and not file.exists()):
        return None
    text = _read_toml(file)
    read_in = _parse(text, file)
    reference = file.parent / read_in.task.reference
    source = _read_named(reference, file, text, ("task", "reference"))
    outline = check_reference(source, reference)
    for place, case in enumerate(read_in.cases):
        giver = f"case {case.name!r} ({place_of(file, text, ('cases', place, 'args'))})"
        _check_case(outline, case, reference, giver)
    try:
        return Task(
            name=read_in.task.name or _name_of(file),
            reference=source,
            path=shown(reference),
            precision=read_in.task.precision,
            grad=read_in.task.grad,
            train=read_in.task.train,
            description=read_in.task.description,
            cases=read_in.cases,
            tolerance=read_in.tolerance,
            inputs=read_in.inputs,
            rules=read_in.rules,
            objective=read_in.objective,
            vendor=_vendor(read_in.baseline, file, text),
        )
    except ValidationError as error:
        message = _plainly(error.errors()[0]["msg"])
        raise TaskError(f"{place_of(file, text, ('cases',))}: {message}") from None


def _read_toml(file: Path) -> str:
    # Everything in the file is optional, so an empty one is a task with every default.
    if file.is_file() and file.stat().st_size == 0:
        return ""
    return read_text(file, "the task file", TaskError)


def _name_of(file: Path) -> str:
    name = file.resolve().parent.name if file.name == FILE else file.stem
    return shown(Path(name)) if name else "task"


def _read_named(path: Path, file: Path, text: str, key: Key) -> str:
    try:
        return read_text(path, spelled(key), TaskError)
    except UsageError:
        raise TaskError(
            f"{place_of(file, text, key)}: {spelled(key)}: there is no file {shown(path)}",
            hint=f"paths are seen from the folder of {shown(Path(file.name))}",
        ) from None


def _vendor(table: BaselineTable, file: Path, text: str) -> str | None:
    if table.vendor is None:
        return None
    path = file.parent / table.vendor
    source = _read_named(path, file, text, ("baseline", "vendor"))
    if path.suffix == ".py":
        parse_python(source, path)
    return source


def _check_case(outline: Outline, case: Case, reference: Path, giver: str) -> None:
    check_arguments(outline, "get_inputs", case.args, reference, giver)
    check_arguments(outline, "get_init_inputs", (), reference, "a task")


def _parse(text: str, file: Path) -> TaskFile:
    data = load_toml(text, file, TaskError)
    try:
        # Strict: a string is no boolean. JSON, because there an array may become a tuple.
        return TaskFile.model_validate_json(as_json(data, text, file, TaskError), strict=True)
    except ValidationError as error:
        raise _complaint(error, data, text, file) from None


def _complaint(error: ValidationError, data: dict[str, Any], text: str, file: Path) -> TaskError:
    """The first thing that is wrong, told by its key, its line, and what would be allowed."""
    first = error.errors()[0]
    key = _key_in(data, first["loc"])
    if first["type"] == "extra_forbidden":
        table = tuple(part for part in key[:-1] if isinstance(part, str))
        allowed = list(_TABLES[table].model_fields)
        close = difflib.get_close_matches(str(key[-1]), allowed, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        return TaskError(
            f"{place_of(file, text, key)}: unknown key {spelled(key)}",
            hint=f"{guess}allowed {'in ' + spelled(key[:-1]) if table else 'tables'}: "
            f"{', '.join(allowed)}",
        )
    reasons = dict.fromkeys(
        _plainly(e["msg"]) for e in error.errors() if _key_in(data, e["loc"]) == key
    )
    value = repr(_at(data, key))
    return TaskError(
        f"{place_of(file, text, key)}: {spelled(key)} {', or '.join(reasons)}",
        hint=f"it is {value if len(value) <= 60 else value[:57] + '...'}",
    )


def _plainly(message: str) -> str:
    """pydantic's message in the words of TOML, to follow the name of a key."""
    for prefix in ("Value error, ", "Input ", "Tuple "):
        message = message.removeprefix(prefix)
    return message.removesuffix(" after validation, not 0").replace("an object", "a table")


def _at(data: Any, key: Key) -> Any:
    for part in key:
        data = data[part]
    return data


def _key_in(data: Any, location: Key) -> Key:
    """`location` as far as it leads into the data; pydantic adds the branches of unions to it."""
    key: list[int | str] = []
    for part in location:
        try:
            data = data[part]
        except (TypeError, LookupError):
            break
        key.append(part)
    return tuple(key)
