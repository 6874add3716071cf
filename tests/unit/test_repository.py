"""The rules of the house, held by a machine: sizes, names, docs beside code, no paths of a machine."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "toprung"
MODULES = sorted(SRC.rglob("*.py"))
PAGES = [ROOT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))

MAX_MODULE = 420
MAX_FUNCTION = 60
VAGUE = re.compile(r"util|helper|manager|misc|common|core\d", re.IGNORECASE)

# Spelled in two parts, so that this file does not contain what it looks for.
MACHINE_PATHS = tuple("/" + folder + "/" for folder in ("work", "root"))
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked() -> list[Path]:
    """Every file that git knows, or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    return [ROOT / part for part in listed.split("\0") if part and (ROOT / part).is_file()]


def texts() -> Iterator[tuple[Path, str]]:
    for path in tracked():
        try:
            yield path, path.read_text()
        except UnicodeDecodeError:
            continue


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_and_functions_stay_small(path: Path):
    text = path.read_text()
    lines = len(text.splitlines())
    assert lines <= MAX_MODULE, f"{lines} lines: is it two things?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_nothing_in_src_is_unfinished(path: Path):
    found = [line for line in path.read_text().splitlines() if UNFINISHED.search(line)]
    assert not found


def test_names_say_what_is_inside():
    parts = {part for path in MODULES for part in path.relative_to(SRC).with_suffix("").parts}
    assert not sorted(part for part in parts if VAGUE.search(part))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_public_module_says_what_it_is(path: Path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree) or (path.name == "__init__.py" and not tree.body)


def test_no_file_names_a_place_on_a_machine():
    found = [
        f"{name(path)}:{number}: {line.strip()[:80]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if any(re.search(rf"(?<![\w.*}}]){re.escape(p)}", line) for p in MACHINE_PATHS)
    ]
    assert not found


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def commands_in(text: str) -> Iterator[str]:
    """Lines of code blocks, and inline code."""
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_make_target_in_the_docs_exists(page: Path):
    asked = {
        match[1]
        for line in commands_in(page.read_text())
        if (match := re.match(r"(?:\$ )?make ([a-z]+)", line))
    }
    assert asked <= make_targets()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_in_the_docs_parses(page: Path):
    """Each `toprung VERB --option` in a page names a verb and options that exist."""
    from typer.main import get_command

    from toprung.faces.cli.main import cli

    verbs = get_command(cli).commands  # type: ignore[attr-defined]
    for line in commands_in(page.read_text()):
        match = re.match(r"(?:\$ )?(?:\.venv/bin/)?toprung +([a-z]+)(.*)", line)
        if not match:
            continue
        assert match[1] in verbs, line
        known = {o for p in verbs[match[1]].params for o in [*p.opts, *p.secondary_opts]}
        options = re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", match[2].split(" # ")[0])
        assert set(options) <= known | {"--help", "-h"}, line


def test_every_verb_has_its_section_in_the_docs():
    from toprung.faces.cli.main import cli

    page = (ROOT / "docs" / "cli.md").read_text()
    for command in cli.registered_commands:
        assert command.callback is not None
        assert f"## `toprung {command.callback.__name__}`" in page


def test_every_page_is_in_the_table_of_contents():
    contents = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}" in contents


def test_relative_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{name(page)} -> {target}"


def test_ci_runs_the_tests_and_the_checks():
    script = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^make test", script, re.MULTILINE)
    assert re.search(r"^make check", script, re.MULTILINE)
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100
