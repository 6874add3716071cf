"""`toprung`: the verbs, and the one place where a failure becomes an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from io import TextIOWrapper
from typing import Annotated

import typer

from toprung import __version__
from toprung.errors import Exit

from .doctor import doctor
from .failures import Failure, Interrupted, Manner, tell
from .optimize import optimize
from .pipe import BROKEN_PIPE, ReaderGone, silence, write
from .report import report
from .runs import runs
from .verify import verify

EPILOG = "Exit codes: 0 passed · 1 refuted · 2 the command or the task is wrong · 3 toprung or the machine failed, or cannot ask what was asked."

cli = typer.Typer(
    name="toprung",
    help="Take a slow reference and a kernel, and climb it rung by rung: it compiles, it is right, "
    "it is honest, it is fast, it is near the roofline.",
    epilog=EPILOG,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _interruptible(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb`, its Ctrl-C as an exception of ours: typer would turn it into a bare exit code."""

    @wraps(verb)
    def interruptible(*arguments: object, **options: object) -> None:
        try:
            verb(*arguments, **options)
        except KeyboardInterrupt:
            raise Interrupted from None

    return interruptible


for verb in (verify, optimize, runs, report, doctor):
    cli.command()(_interruptible(verb))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"toprung {__version__}")
        raise typer.Exit


@cli.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Options before the verb are handled by their callbacks."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit code."""
    try:
        return _run(arguments)
    except ReaderGone:
        silence()
        return BROKEN_PIPE


def _run(arguments: Sequence[str]) -> int:
    manner = Manner.of(arguments)
    verb = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    command = f"toprung {verb}".rstrip()
    try:
        code = cli(list(arguments) or ["--help"], prog_name="toprung", standalone_mode=False)
        write("")  # whatever is still buffered
    except ReaderGone:
        raise
    except Exception as error:
        return tell(Failure.of(error), manner, command)
    return code if isinstance(code, int) else Exit.PASSED


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # question marks where there is no UTF-8
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
