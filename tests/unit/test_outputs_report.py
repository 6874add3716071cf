"""The report: a page for any run, that says no more than was shown and lets nobody in."""

from __future__ import annotations

import itertools
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samples
from strategies import ANY_TEXT, runs
from toprung.model.budget import Budget
from toprung.model.candidate import Candidate
from toprung.model.run import VERIFY, Run
from toprung.model.value import Json
from toprung.model.verdict import CaseResult, Verdict
from toprung.outputs.report import render, render_verdict
from toprung.outputs.report.axes import Axis, columns, covering, from_zero, rows
from toprung.outputs.report.commands import commands
from toprung.outputs.report.roofline import Point, Roofs, roofline_chart
from toprung.outputs.report.source import source_file, source_files
from toprung.outputs.report.story import main_attempt, tell
from toprung.outputs.report.tables import error_tables

pytestmark = pytest.mark.unit

VOID = {"meta", "link"}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, in order; keeps elements and text."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text += " "
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data

    def words(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())


def check_inert(page: Page) -> None:
    """Nothing runs, nothing is loaded, and the policy forbids both."""
    tags = {tag for tag, _ in page.elements}
    assert not tags & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "foreignobject",
    }
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        links = [attributes.get(name) for name in ("href", "src", "srcset", "xlink:href", "action")]
        assert [link for link in links if link is not None] in ([], ["data:,"]), tag
    policy = next(a["content"] or "" for t, a in page.elements if a.get("http-equiv"))
    assert "default-src 'none'" in policy and "script-src" not in policy
    assert dict(page.elements)["html"]["data-ready"] == "true"


RUNS = {
    "a whole climb": samples.a_climb(),
    "no attempts": samples.a_run(),
    "one in flight": samples.a_run(samples.an_attempt(0)),
    "only refuted": samples.a_run(
        samples.an_attempt(0, samples.failed("compile", candidate=samples.a_candidate("0"))),
        samples.an_attempt(1, samples.failed("correct", candidate=samples.a_candidate("1"))),
    ),
    "only errored": samples.a_run(
        samples.an_attempt(
            0,
            samples.failed(
                "bench",
                candidate=samples.a_candidate("0"),
                outcome="errored",
                blame="device",
                reason="gone",
            ),
        )
    ),
    "no measurement": samples.a_run(
        samples.an_attempt(
            0, samples.passed(candidate=samples.a_candidate("0"), measured=False), kept=True
        ),
        samples.an_attempt(1, samples.passed(candidate=samples.a_candidate("1"), measured=False)),
    ),
    "several cases": samples.a_climb(samples.several_cases()),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_every_run_has_a_whole_and_inert_page(run: Run) -> None:
    page = Page(render(run))
    check_inert(page)
    assert tell(run).headline in page.words()
    assert run.id in page.words()


@given(run=runs())
@settings(max_examples=60, deadline=None)
def test_whatever_is_in_a_run_the_page_is_whole_and_inert(run: Run) -> None:
    check_inert(Page(render(run)))


def test_a_page_is_self_contained() -> None:
    html = render(samples.a_climb())
    assert "http" not in html.replace("http-equiv", "")
    assert "url(" not in html and "@import" not in html
    assert len(html) < 200_000


def headline(run: Run) -> tuple[str, str, str]:
    story = tell(run)
    return story.badge, story.headline, " ".join(story.sure)


def test_what_was_verified_is_said_in_one_sentence_and_how_sure_it_is() -> None:
    badge, said, sure = headline(samples.a_climb())
    assert badge == "Verified and faster"
    assert said == "A verified kernel computes softmax 2.37× as fast as PyTorch eager."
    assert sure.startswith(
        "It gives right results on secret inputs, it computes them afresh in every call, "
        "and every timed call was checked."
    )
    assert (
        "between 2.28 and 2.49 times" in sure and "86% of the roofline, which memory sets" in sure
    )
    assert "Not asked: sanitize, profile." in sure


def with_speedup(ratio: float, ci: tuple[float, float], confirmed: bool) -> Run:
    told = samples.passed(candidate=samples.a_candidate("0")).to_dict()
    told["measurement"]["speedup"] = {"eager": {"ratio": ratio, "ci": ci, "confirmed": confirmed}}
    told["measurement"]["confirmed"] = confirmed
    return samples.a_run(samples.an_attempt(0, Verdict.model_validate(told), kept=True))


@pytest.mark.parametrize(
    ("ratio", "ci", "confirmed", "badge", "says"),
    [
        (2.0, (1.9, 2.1), True, "Verified and faster", "computes softmax 2.00× as fast as"),
        (2.0, (1.9, 2.1), False, "Verified, speed unconfirmed", "at first sight 2.00× as fast as"),
        (
            1.05,
            (0.9, 1.2),
            True,
            "Verified",
            "Whether it is faster than PyTorch eager is not known",
        ),
        (0.5, (0.4, 0.6), True, "Verified", "but more slowly than PyTorch eager"),
    ],
)
def test_faster_is_said_no_louder_than_it_is_known(
    ratio: float, ci: tuple[float, float], confirmed: bool, badge: str, says: str
) -> None:
    run = with_speedup(ratio, ci, confirmed)
    found, said, sure = headline(run)
    assert (found, says in said) == (badge, True)
    assert ("screening alone" in sure) == (not confirmed)


def test_what_did_not_pass_is_not_called_verified() -> None:
    for name in ("no attempts", "one in flight", "only refuted", "only errored"):
        badge, said, _ = headline(RUNS[name])
        assert "erified" not in badge + said
    assert headline(RUNS["only refuted"])[1] == "None of 2 candidates for softmax passed."
    assert "got to correct" in headline(RUNS["only refuted"])[2]
    assert "device failed at bench" in headline(RUNS["only errored"])[1]
    assert "its speed is not known" in headline(RUNS["no measurement"])[1]
    assert "no CUDA device" in headline(RUNS["no measurement"])[2]


def test_what_was_only_compiled_is_not_called_right() -> None:
    told = samples.passed(measured=False, candidate=samples.a_candidate("0")).to_dict()
    told["rungs"] = [
        rung | {"status": "not_reached", "facts": {}, "seconds": 0, "reason": None}
        if place > 1
        else rung
        for place, rung in enumerate(told["rungs"])
    ]
    run = samples.a_run(samples.an_attempt(0, Verdict.model_validate(told), kept=True))
    badge, said, sure = headline(run)
    assert badge == "Not verified" and "passed up to compile; its results are not checked" in said
    assert "right" not in sure and sure.startswith("Not asked: run, correct, honest")


def test_fixed_secrets_are_said_loudly() -> None:
    verdict = samples.passed(candidate=samples.a_candidate("0"), seed=7)
    run = samples.a_run(samples.an_attempt(0, verdict, kept=True))
    page = Page(render(run))
    assert "proves nothing to others" in page.words()
    assert any(attributes.get("role") == "alert" for _, attributes in page.elements)
    assert tell(run).tone == "mixed"


def test_held_out_cases_show_their_outcome_alone() -> None:
    told = samples.passed(samples.several_cases()).to_dict()
    for rung in told["rungs"]:
        if rung["status"] == "passed":
            rung["facts"] = {"odd/as_given.max_abs": 0.777, "odd.shapes": [[37, 1009]], "calls": 3}
    task = samples.several_cases()
    words = Page(render_verdict(task, samples.a_candidate(), Verdict.model_validate(told))).words()
    assert "odd held out passed" in words
    assert not any(secret in words for secret in ("0.777", "1,009", "1009"))


def test_a_single_verdict_has_no_history_and_no_budget() -> None:
    task, candidate = samples.a_task(), samples.a_candidate()
    words = Page(
        render_verdict(task, candidate, samples.failed(), "2026-03-01T12:00:00+00:00")
    ).words()
    assert "The kernel for softmax is refuted at run." in words and "Reason: NameError" in words
    assert "attempt" not in words.lower() and "budget" not in words
    assert "begun 2026-03-01 12:00 UTC" in words
    assert "toprung verify examples/softmax.py kernel.py --target cpu:native" in words
    assert "toprung optimize" not in words


def test_a_run_that_verified_one_candidate_reads_like_a_verdict() -> None:
    attempt = samples.an_attempt(0, samples.passed(candidate=samples.a_candidate("0")))
    words = Page(render(samples.a_run(attempt, proposer=VERIFY, budget=Budget()))).words()
    assert "A verified kernel computes softmax" in words and "toprung optimize" not in words


def test_a_run_that_has_ended_says_why() -> None:
    run = samples.a_climb().model_copy(update={"reason": "goal", "message": "the goal is reached"})
    words = Page(render(run)).words()
    assert "ended goal" in words and "It ended: the goal is reached" in words
    assert "judged in 2.5 s" in words and "by templates: row_softmax" in words


def test_the_page_is_about_the_best_or_the_one_that_got_furthest() -> None:
    best, furthest = main_attempt(samples.a_climb()), main_attempt(RUNS["only refuted"])
    assert best is not None and best.index == 7
    assert furthest is not None and furthest.index == 1
    assert main_attempt(RUNS["no attempts"]) is main_attempt(RUNS["one in flight"]) is None


def test_errors_are_laid_out_by_case_and_family() -> None:
    facts: dict[str, Json] = {
        "preset": "strict",
        "wide/as_given.max_abs": 1.25e-7,
        "wide/as_given.psnr": "inf",
        "wide/as_given.reference_error": 1e-8,
        "wide/as_given.strict": 1.23,
        "wide/heavy_tails.max_abs": 2.5e-7,
        "wide/heavy_tails.novelty": 3,
        "wide/heavy_tails.strict": 95309.4,
        "a/b/large_offset.skipped": "ill-conditioned",
        "as_given.rmse": 5e-9,
    }
    wide, other, plain = error_tables(samples.failed("correct", facts=facts))
    assert (wide.case, other.case, plain.case) == ("wide", "a/b", "")
    allowed = "of what strict allows"
    assert wide.columns == (allowed, "max abs", "the reference's RMSE", "PSNR, dB", "novelty")
    assert wide.rows == (
        ("as given", ("123%", "1.2e-7", "1.0e-8", "inf", "–")),
        ("heavy tails", ("95300×", "2.5e-7", "–", "–", "3")),
    )
    assert other.rows == () and other.notes == (("large offset", "ill-conditioned"),)
    assert plain.rows == (("as given", ("5.0e-9",)),)


def test_commands_are_quoted_for_a_shell() -> None:
    task = samples.a_task(path="my tasks/$(rm -rf ~).py")
    run = samples.a_run(
        samples.an_attempt(0, samples.passed(task, samples.a_candidate("0")), kept=True), task=task
    )
    found = [command for _, command in commands(run, run.best, single=False)]
    assert found == [
        "toprung verify 'my tasks/$(rm -rf ~).py' kernel.py --target cpu:native",
        "toprung optimize 'my tasks/$(rm -rf ~).py' --target cpu:native --proposer templates "
        "--strategy best_of_n --goal 0.9 --attempts 20 --minutes 5",
        "toprung optimize --resume 20260301-softmax-k3f9q",
    ]
    ended = run.model_copy(update={"reason": "goal"})
    assert len(commands(ended, ended.best, single=False)) == 2


@given(source=ANY_TEXT)
def test_source_is_shown_whole_and_escaped(source: str) -> None:
    for line in source_file("x.py", f"a{source}b").lines:
        bare = re.sub(r"</?i[^>]*>", "", str(line))
        assert "<" not in bare and ">" not in bare


def test_source_is_coloured_through_strings_that_hold_code() -> None:
    text = "\n".join(map(str, source_file("k.py", samples.SOURCE).lines))
    assert '<i class="word">import</i> torch' in text
    assert '<i class="note"># at most 2 roundings an element</i>' in text
    assert '<i class="word">const</i> <i class="word">float</i>* <i class="word">in</i>' in text
    assert '<i class="note">#include &lt;cmath&gt;</i>' in text


def test_prose_in_long_strings_is_not_coloured_as_code() -> None:
    prose, code = '"""Not for\nthe while; it\nis in"""', 'CPP = """\nfor (;;) {}\n"""'
    lines = source_file("k.py", f"{prose}\n{code}").lines
    assert [str(line) for line in lines[:3]] == [
        '<i class="text">&#34;&#34;&#34;Not for</i>',
        '<i class="text">the while; it</i>',
        '<i class="text">is in&#34;&#34;&#34;</i>',
    ]
    assert str(lines[4]) == '<i class="word">for</i> (;;) {}'


def test_the_main_file_comes_first_and_long_files_are_cut() -> None:
    candidate = Candidate(files={"a.cpp": "int a;", "z.py": "x\n" * 4000}, main="z.py")
    first, second = source_files(candidate)
    assert (first.name, second.name) == ("z.py", "a.cpp")
    assert len(first.lines) == 3000 and first.left_out == 1000


FIGURES = st.floats(1e-6, 1e9)


@given(values=st.lists(FIGURES, min_size=1, max_size=6), most=st.integers(2, 8))
def test_axes_cover_their_figures_with_few_round_ticks(values: list[float], most: int) -> None:
    for axis in (covering(values), from_zero(max(values))):
        places = [axis.at(value) for value in sorted(values)]
        assert places == sorted(places) and places[0] >= 0 and places[-1] <= 1
        assert axis.at(axis.low) == 0 and math.isclose(axis.at(axis.high), 1)
        ticks = axis.ticks(most)
        assert len(ticks) <= most and all(
            axis.low * (1 - 1e-6) <= tick <= axis.high * (1 + 1e-6) for tick in ticks
        )


def test_ticks_are_round_and_short() -> None:
    assert Axis(0, 1484).ticks(5) == [0, 500, 1000]
    assert Axis(0.3, 4e4, log=True).ticks(6) == [1, 10, 100, 1000, 10000]
    assert Axis(3, 8, log=True).ticks(6) == [5]
    said = str(columns(Axis(0, 2000), 0, 10, lambda value: f"{value / 1000:.2f} ms", most=5))
    assert ">1 ms<" in said and ">1.5 ms<" in said and ">0 ms<" in said
    assert str(rows(Axis(0, 40), 100, lambda value: f"{value:.0f} µs")).count("<line") == 5


def place(svg: str, pattern: str) -> tuple[float, float]:
    """Centre of the circle that `pattern` finds."""
    found = re.search(rf'<circle cx="([\d.]+)%" cy="([\d.]+)"[^>]*class="{pattern}"', svg)
    assert found, svg
    return float(found[1]), float(found[2])


def test_a_kernel_on_the_roof_lies_on_the_roof() -> None:
    roofs = Roofs((("", 100e9),), (("", 1e12),))
    below = Point(1.0, 25e9, 100e9, "25%", "", best=True)
    svg = str(roofline_chart([below], roofs))
    x, y = place(svg, "point best")
    bound_x, bound_y = place(svg, "bound")
    slope = re.search(
        r'<line x1="([\d.]+)%" y1="([\d.]+)" x2="([\d.]+)%" y2="([\d.]+)" class="roof"', svg
    )
    assert slope
    x1, y1, x2, y2 = map(float, slope.groups())
    assert bound_x == x and y > bound_y
    assert math.isclose(y1 + (x - x1) / (x2 - x1) * (y2 - y1), bound_y, abs_tol=0.5)


def test_labels_of_near_kernels_do_not_cover_each_other() -> None:
    points = [Point(1.0, 25e9 + n, 100e9, f"{n}%", "", best=True) for n in range(3)]
    svg = str(roofline_chart(points, Roofs()))
    heights = [float(y) for y in re.findall(r'y="([\d.]+)" dx="12"', svg)]
    assert len(heights) == 3 and all(b - a >= 15 for a, b in itertools.pairwise(heights))


def test_a_roofline_without_known_ceilings_still_shows_the_bound() -> None:
    svg = str(roofline_chart([Point(1.0, 25e9, 100e9, "25%", "", best=True)], Roofs()))
    assert 'class="roof' not in svg and place(svg, "bound")[1] < place(svg, "point best")[1]


def test_roofs_that_nobody_told_follow_from_the_bounds() -> None:
    verdict = samples.passed(samples.several_cases(), samples.a_candidate("0")).to_dict()
    for rung in verdict["rungs"]:
        rung["facts"] = {}
    verdict["cases"][1]["roofline"] |= {"limiter": "compute", "bound_us": 10.0}
    task = samples.several_cases()
    run = samples.a_run(
        samples.an_attempt(0, Verdict.model_validate(verdict), kept=True), task=task
    )
    words = Page(render(run)).words()
    assert "33.0 GB/s" in words and "1.05 TFLOP/s" in words
    assert "As geometric means over 2 cases: no less than 508 µs" in words
    assert "wide passed 600 µs 2.33× 10.0 µs 85%" in words


def test_a_task_without_flops_has_a_sentence_instead_of_a_plot() -> None:
    told = samples.passed(candidate=samples.a_candidate("0")).to_dict()
    told["roofline"]["flops"] = 0
    told["cases"] = []
    run = samples.a_run(samples.an_attempt(0, Verdict.model_validate(told), kept=True))
    page = Page(render(run))
    assert "takes 0 floating-point operations" in page.words()
    assert not any("Roofline:" in (a.get("aria-label") or "") for _, a in page.elements)


def test_the_history_marks_what_became_of_every_attempt() -> None:
    html = render(samples.a_climb())
    chart = html[html.index('aria-label="Attempts in order') :]
    chart = chart[: chart.index("</svg>")]
    assert chart.count('class="try kept"') == 3 and chart.count('class="try passed"') == 1
    assert chart.count('class="sign refuted"') == 3 and chart.count('class="sign errored"') == 1
    lanes = re.findall(r'dx="-12"[^>]*>([a-z ]+)<', chart)
    assert lanes == ["bench", "correct", "run", "compile", "no verdict"]
    assert "attempt 7: 590 µs" in chart


def test_a_case_that_was_not_asked_is_not_shown_as_passed() -> None:
    told = samples.failed("run", samples.several_cases()).to_dict()
    told["cases"] = [CaseResult(name="square", outcome="refuted").to_dict(), {"name": "wide"}]
    page = Page(
        render_verdict(samples.several_cases(), samples.a_candidate(), Verdict.model_validate(told))
    )
    assert "wide not asked" in page.words() and "square refuted" in page.words()
