"""Write the parts of the documentation that are taken from the code, or check that they are equal.

    python docs/generate.py            write
    python docs/generate.py --check    change nothing; end with 1 and a diff where a part is stale

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def row(cells: list[str]) -> str:
    """A row of a Markdown table; a bar inside a cell is escaped, line ends become spaces."""
    return "| " + " | ".join(" ".join(c.split()).replace("|", "\\|") for c in cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, rows)])


def ladder() -> str:
    """The rungs in order, as the ladder asks them."""
    from toprung.judge.ladder import RUNG_TABLE

    return table(
        ["rung", "the question", "refutes when", "facts it leaves"],
        [[f"`{r.name}`", r.question, r.refutes, r.facts] for r in RUNG_TABLE],
    )


def tolerance() -> str:
    """The presets, as the module that decides states them; its underlined titles become headings."""
    module = ROOT / "src" / "toprung" / "judge" / "oracle" / "tolerance.py"
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    return re.sub(
        r"^(.+)\n-{4,}$", r"### \1\n", text.partition("\n")[2].strip(), flags=re.MULTILINE
    )


def peaks() -> str:
    """Data-sheet peaks, with their sources."""
    import tomllib

    from toprung import devices

    file = Path(inspect.getfile(devices)).parent / "peaks.toml"
    return "\n".join(f"- `{name}`" for name in tomllib.loads(file.read_text()))


def commands() -> str:
    """Every verb with its arguments and options."""
    from typer.main import get_command

    from toprung.faces.cli.main import cli

    verbs = get_command(cli).commands  # type: ignore[attr-defined]
    return "\n\n".join(_command(name, verb) for name, verb in verbs.items())


def _command(name: str, verb: Any) -> str:  # typer keeps the class of its commands private
    arguments = [p for p in verb.params if p.param_type_name == "argument"]
    options = [p for p in verb.params if p.param_type_name == "option"]
    usage = " ".join(["toprung", name, *map(_place, arguments), "[OPTIONS]"])
    rows = [[f"`{a.metavar}`", a.help or "", _default(a)] for a in arguments]
    rows += [[_spelled(o), o.help or "", _default(o)] for o in options]
    said = inspect.cleandoc(verb.help or "")
    return f"## `toprung {name}`\n\n{said}\n\n```\n{usage}\n```\n\n" + table(
        ["argument or option", "what it is for", "default"], rows
    )


def _place(argument: Any) -> str:
    return argument.metavar if argument.required else f"[{argument.metavar}]"


def _spelled(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
    names = ", ".join([*option.opts, *option.secondary_opts])
    return f"`{names}{value}`"


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    if option.default is None or (option.is_flag and not option.secondary_opts):
        return ""
    return f"`{option.default}`"


def support() -> str:
    """What works where: written once, in docs/support.md."""
    text = (ROOT / "docs" / "support.md").read_text()
    return text.split("<!-- table -->")[1].strip()


PARTS: dict[str, Callable[[], str]] = {
    "ladder": ladder,
    "tolerance": tolerance,
    "peaks": peaks,
    "commands": commands,
    "support": support,
}


def pages() -> Iterator[Path]:
    """Every page that may hold a generated part."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))


def filled(text: str) -> str:
    """`text` with every part written anew; a part of an unknown name raises `KeyError`."""
    return PART.sub(lambda m: f"{m[1]}{PARTS[m[2]]()}\n{m[4]}", text)


def main(arguments: list[str]) -> int:
    """Write, or with `--check` compare."""
    check = arguments == ["--check"]
    if arguments and not check:
        print(__doc__, file=sys.stderr)
        return 2
    stale = 0
    for page in pages():
        old = page.read_text()
        new = filled(old)
        if new == old:
            continue
        stale += 1
        name = str(page.relative_to(ROOT))
        if check:
            sys.stderr.writelines(
                unified_diff(old.splitlines(True), new.splitlines(True), name, f"{name} (code)")
            )
        else:
            page.write_text(new)
            print(f"wrote {name}")
    if check and stale:
        print(f"{stale} pages differ from the code: run `make docs`", file=sys.stderr)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
