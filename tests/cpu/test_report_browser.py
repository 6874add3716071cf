"""The report in a real browser: drawn, silent, self-contained, and deaf to what strangers wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import samples
from toprung.model.candidate import Candidate
from toprung.model.run import Run
from toprung.model.task import Case
from toprung.model.value import Json
from toprung.model.verdict import Verdict
from toprung.outputs.report import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.cpu

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
WIDTHS = (360, 768, 1400)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield opened
        opened.close()


class Watched:
    """A page that writes down every request, message, error and dialog."""

    def __init__(self, browser: Browser, path: Path, html: str, *, width: int, scheme: str):
        path.write_text(html, encoding="utf-8")
        self.address = path.as_uri()
        self.requests: list[str] = []
        self.said: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.goto(self.address, wait_until="load")

    def _dismiss(self, dialog: Dialog) -> None:
        self.said.append(dialog.message)
        dialog.dismiss()

    def check_quiet(self) -> None:
        """Drawn, without a word, and without asking for anything but itself."""
        assert self.page.get_attribute("html", "data-ready") == "true"
        assert [url for url in self.requests if url not in (self.address, "data:,")] == []
        assert self.said == []

    def unfold(self) -> None:
        """Open everything that can be opened."""
        self.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


RUNS = {
    "climb": samples.a_climb(),
    "cases": samples.a_climb(samples.several_cases()),
    "empty": samples.a_run(),
    "refuted": samples.a_run(
        samples.an_attempt(0, samples.failed("correct", candidate=samples.a_candidate("0")))
    ),
    "unmeasured": samples.a_run(
        samples.an_attempt(
            0, samples.passed(candidate=samples.a_candidate("0"), measured=False), kept=True
        )
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_drawn_in_silence_and_fits(browser: Browser, tmp_path: Path, name: str) -> None:
    html = render(RUNS[name])
    for width, scheme in zip(WIDTHS, ("dark", "light", "dark"), strict=True):
        watched = Watched(browser, tmp_path / "report.html", html, width=width, scheme=scheme)
        assert watched.overflow() <= 0, f"too wide for {width} pixels"
        watched.unfold()
        assert watched.overflow() <= 0, f"unfolded, too wide for {width} pixels"
        watched.check_quiet()
        watched.page.context.close()


def test_an_attempt_unfolds_when_it_is_pressed(browser: Browser, tmp_path: Path) -> None:
    html = render(RUNS["climb"])
    page = Watched(browser, tmp_path / "report.html", html, width=1000, scheme="light").page
    attempt = page.locator("details.attempt").nth(5)
    assert not attempt.locator(".listing").is_visible()
    attempt.locator("summary").click()
    assert attempt.locator(".listing").is_visible() and attempt.get_by_text("NameError").count() > 1
    page.context.close()


def test_charts_stay_in_their_frames_and_can_be_read(browser: Browser, tmp_path: Path) -> None:
    html = render(RUNS["cases"])
    for width in (WIDTHS[0], WIDTHS[-1]):
        page = Watched(browser, tmp_path / "report.html", html, width=width, scheme="light").page
        outside = page.evaluate(
            """() => [...document.querySelectorAll('svg text')].filter(text => {
                 const box = text.getBoundingClientRect();
                 return box.width && (box.left < 0 || box.right > window.innerWidth);
               }).map(text => text.textContent)"""
        )
        assert outside == [], f"cut off at {width} pixels"
        small = page.evaluate(
            """() => [...document.querySelectorAll('svg text')].filter(text =>
                 text.getBoundingClientRect().width && text.getBoundingClientRect().height < 12
               ).length"""
        )
        assert small == 0
        assert page.locator("svg[role=img][aria-label]").count() == page.locator("svg").count() > 3
        page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """At least 4.5 to 1 between text and page, as WCAG 2.2 asks for (success criterion 1.4.3)."""
    page = Watched(
        browser, tmp_path / "report.html", render(RUNS["climb"]), width=1000, scheme=scheme
    ).page
    contrasts = page.evaluate(
        """() => {
          const light = colour => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => {
              v /= 255;
              return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const ground = element => {
            for (let e = element; e; e = e.parentElement) {
              const colour = getComputedStyle(e).backgroundColor;
              if (colour !== 'rgba(0, 0, 0, 0)') return colour;
            }
          };
          const found = {};
          for (const e of document.querySelectorAll('p, dt, dd, th, td, h1, h2, .said, code i, svg text, strong, li, span')) {
            if (!e.textContent.trim() || !e.getClientRects().length) continue;
            const style = getComputedStyle(e);
            const ink = e instanceof SVGElement ? style.fill : style.color;
            const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
            found[`${e.tagName}.${e.getAttribute('class')} ${ink}`] = (a + 0.05) / (b + 0.05);
          }
          return found;
        }"""
    )
    assert len(contrasts) > 20
    assert {what: ratio for what, ratio in contrasts.items() if ratio < 4.5} == {}
    page.context.close()


EVIL = (
    "</script></style></title></textarea><script>window.pwned = 1; alert(1)</script>"
    "<img src=x onerror=\"window.pwned = 1\"><svg onload='window.pwned = 1'>{{ 7 * 191 }}{% raw %}"
    '" onmouseover="window.pwned = 1" \' autofocus onfocus=window.pwned=1 javascript:alert(1)'
)


def hostile() -> Run:
    """A run in which everything that a stranger can write is markup."""
    task = samples.a_task(
        name=EVIL,
        reference=f"# {EVIL}",
        path=EVIL,
        description=EVIL,
        cases=(Case(name=EVIL), Case(name=EVIL + "2"), Case(name=EVIL + "3", held_out=True)),
    )
    attempts = []
    for index, verdict in enumerate(
        (
            samples.failed("correct", task, reason=EVIL, traceback=EVIL, facts={EVIL: EVIL}),
            samples.failed("bench", task, outcome="errored", blame="device", reason=EVIL),
            samples.passed(task),
        )
    ):
        candidate = Candidate.of_source(
            f"{EVIL} # {index}\n'''{EVIL}'''", main=f"{index}{EVIL}"[:90] + "k"
        )
        told = verdict.to_dict()
        told["candidate"] |= {
            "digest": candidate.digest,
            "labels": [EVIL],
            "dsl": EVIL,
            "entry": EVIL,
        }
        told["environment"] |= {"device": EVIL, "torch": EVIL}
        passed = verdict.outcome == "passed"
        told["rungs"] = [_evil_rung(rung) for rung in told["rungs"]]
        if passed:
            for measured in [told["measurement"], *(c["measurement"] for c in told["cases"][:2])]:
                measured["baselines"][EVIL] = measured["baselines"]["eager"]
                measured["speedup"][EVIL] = measured["speedup"]["eager"]
        attempts.append(
            samples.an_attempt(
                index,
                Verdict.model_validate(told),
                kept=passed,
                candidate=candidate,
                note=EVIL,
                author=EVIL,
                parent=EVIL,
            )
        )
    return samples.a_run(
        *attempts, task=task, hints=(EVIL,), message=EVIL, proposer=EVIL, strategy=EVIL, id=EVIL
    )


def _evil_rung(rung: dict[str, Json]) -> dict[str, Json]:
    if rung["status"] == "passed":
        rung["facts"] |= {
            EVIL: [EVIL, {EVIL: EVIL}],
            f"{EVIL}/as_given.{EVIL}": EVIL,
            EVIL + "bytes_per_s": 1e9,
        }
    return rung


def test_what_strangers_wrote_stays_text(browser: Browser, tmp_path: Path) -> None:
    watched = Watched(
        browser, tmp_path / "report.html", render(hostile()), width=1000, scheme="light"
    )
    page = watched.page
    watched.unfold()
    for x, y in ((100, 100), (500, 400), (300, 800)):
        page.mouse.move(x, y)
    page.keyboard.press("Tab")
    watched.check_quiet()
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.scripts.length + document.images.length") == 0
    handlers = page.evaluate(
        """() => [...document.querySelectorAll('*')].filter(element =>
             [...element.attributes].some(a => a.name.startsWith('on') || /javascript:/.test(a.value)
               && a.name !== 'aria-label')).length"""
    )
    assert handlers == 0
    words = page.inner_text("body")
    assert words.count("<script>window.pwned = 1; alert(1)</script>") > 10
    assert "{{ 7 * 191 }}" in words and "1337" not in words


def test_the_policy_of_the_page_stops_scripts_even_if_one_got_in(
    browser: Browser, tmp_path: Path
) -> None:
    smuggled = render(samples.a_run()).replace(
        "</main>", "<script>window.pwned = 1</script><img src='http://example.invalid/x'></main>"
    )
    watched = Watched(browser, tmp_path / "report.html", smuggled, width=800, scheme="light")
    assert watched.page.evaluate("window.pwned") is None
    blocked = [said for said in watched.said if "Content Security Policy" in said]
    assert len(blocked) == len(watched.said) == 2
