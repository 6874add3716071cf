"""A run as one HTML file."""

from __future__ import annotations

import functools
from importlib.resources import files

from jinja2 import Environment as Templates
from jinja2 import StrictUndefined, Template
from markupsafe import Markup

from toprung.model.budget import Budget
from toprung.model.candidate import Candidate
from toprung.model.run import VERIFY, Attempt, Goal, Proposal, Run
from toprung.model.task import Task
from toprung.model.verdict import Verdict
from toprung.outputs.text import clean, one_line

from .commands import commands
from .sections import case_rows, header_facts, history, roofline, tiles, timing_blocks, walls
from .source import source_file, source_files
from .story import main_attempt, tell
from .tables import attempt_row, error_tables, rung_rows

NAMELESS = "verdict"


def render(run: Run) -> str:
    """The page of a run. It works for any run: without attempts, without measurements, unended."""
    main = main_attempt(run)
    verdict = main.verdict if main else None
    single = run.proposer == VERIFY
    return _template().render(
        run=run,
        single=single,
        story=tell(run, single=single),
        style=Markup(_text("style.css")),
        facts=header_facts(run, verdict, single=single),
        tiles=tiles(run, verdict),
        main=main,
        rungs=rung_rows(verdict)[::-1] if verdict else (),
        blocks=timing_blocks(verdict) if verdict else (),
        measured=verdict.measurement if verdict else None,
        tables=error_tables(verdict) if verdict else (),
        cases=case_rows(verdict) if verdict else (),
        roofline=roofline(run, main),
        history=history(run) if len(run.attempts) > 1 else None,
        attempts=[attempt_row(attempt) for attempt in reversed(run.attempts)],
        sources=source_files(main.proposal.candidate) if main else (),
        reference=source_file("reference", run.task.reference),
        description=clean(run.task.description, 4000),
        environment=verdict.environment if verdict else None,
        walls=walls(verdict),
        labels=[one_line(label, 120) for label in verdict.candidate.labels] if verdict else [],
        message=one_line(run.message, 600),
        hints=[clean(hint, 1000) for hint in run.hints],
        commands=commands(run, main, single=single),
    )


def render_verdict(task: Task, candidate: Candidate, verdict: Verdict, created: str = "") -> str:
    """The page of a single verdict, such as `toprung verify` gives; `created` is UTC, ISO 8601."""
    attempt = Attempt(
        index=0,
        proposal=Proposal(candidate=candidate),
        verdict=verdict,
        kept=verdict.outcome == "passed",
        seconds=sum(rung.seconds for rung in verdict.rungs),
    )
    run = Run(
        id=NAMELESS,
        task=task,
        goal=Goal(),
        budget=Budget(),
        created=created,
        target=verdict.target,
        proposer=VERIFY,
        strategy="once",
        attempts=(attempt,),
        kept=(0,) if attempt.kept else (),
    )
    return render(run)


@functools.cache
def _template() -> Template:
    templates = Templates(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["line"] = one_line
    return templates.from_string(_text("page.html.j2"))


@functools.cache
def _text(name: str) -> str:
    return files("toprung.outputs.report").joinpath(name).read_text("utf-8")
