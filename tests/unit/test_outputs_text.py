"""Text from strangers and figures for people: clean, bounded, true to their digits."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprung.model.measurement import Speedup, Timing
from toprung.outputs import figures
from toprung.outputs.text import clean, cut, one_line
from toprung.outputs.traces import trimmed

pytestmark = pytest.mark.unit

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
HOSTILE = st.lists(
    ANY_TEXT
    | st.sampled_from(
        [
            "\x1b[31m",
            "\x1b]0;title\x07",
            "\x1b]8;;http://x\x1b\\",
            "\x9b2J",
            "\x1bP",
            "\r",
            "\u202e",
            "\ud800",
            "\x1b",
        ]
    ),
    max_size=8,
).map("".join)


@given(text=HOSTILE)
def test_nothing_unseen_is_left(text: str) -> None:
    cleaned = clean(text)
    bad = [c for c in cleaned if c not in "\n\t" and unicodedata.category(c)[0] == "C"]
    assert not bad and clean(cleaned) == cleaned
    cleaned.encode()
    # No other character may begin a new line either.
    assert cleaned.splitlines() == cleaned.split("\n")[: len(cleaned.splitlines())]


@given(text=st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=200))
def test_what_can_be_seen_is_kept(text: str) -> None:
    assert clean(f"{text}\n\t{text}") == f"{text}\n\t{text}"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;your shell\x07plain", "plain"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("a\x08b\x00c\x7f", "abc"),
        ("50%\r100%\r\ndone", "50%\n100%\ndone"),
        ("abc\u202edef\u200b", "abcdef"),
        ("naïve µs × 10⁻⁷ 界 🚀", "naïve µs × 10⁻⁷ 界 🚀"),
        ("\ud83d lone", "\ufffd lone"),
        ("\x1b]endless" + "x" * 50, "x" * 50),
    ],
)
def test_terminal_sequences_are_gone(text: str, seen: str) -> None:
    assert clean(text) == seen or clean(text).endswith(seen)


@given(text=ANY_TEXT, limit=st.integers(1, 250), keep=st.sampled_from(["head", "tail"]))
def test_text_is_bounded(text: str, limit: int, keep: str) -> None:
    short = cut(text, limit, keep)  # type: ignore[arg-type]
    assert len(short) <= limit
    assert short == text or len(text) > limit
    assert len(one_line(text, limit)) <= limit and "\n" not in one_line(text)


def test_what_was_left_out_is_counted() -> None:
    text = "0123456789" * 20
    assert cut(text, 60) == text[:31] + " […169 characters left out…] "
    assert cut(text, 60, "tail") == " […169 characters left out…] " + text[-31:]


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (0, "0 µs"),
        (0.0123, "12.3 ns"),
        (0.86, "860 ns"),
        (1.0, "1.00 µs"),
        (11.55, "11.6 µs"),
        (999.6, "1000 µs"),
        (4760, "4.76 ms"),
        (97.6e6, "97.6 s"),
    ],
)
def test_times(us: float, said: str) -> None:
    assert figures.time_us(us) == said


@given(value=st.floats(1e-12, 1e12), count=st.integers(2, 5))
def test_digits_are_the_leading_ones(value: float, count: int) -> None:
    read = float(figures.digits(value, count))
    assert math.isclose(read, value, rel_tol=0.51 * 10 ** (1 - count))
    assert figures.digits(-value, count) == f"-{figures.digits(value, count)}"


def test_intervals_share_the_unit_of_their_median() -> None:
    assert figures.interval_us(Timing(median_us=1010, ci_us=(990, 1030))) == "0.990–1.03 ms"
    assert figures.times_interval(Speedup(ratio=2.0, ci=(1.8, 2.25))) == "1.80–2.25×"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("median_us", 1400.0, "1.40 ms"),
        ("bytes_per_s", 33e9, "33.0 GB/s"),
        ("flops_per_s", 3.23e11, "323 GFLOP/s"),
        ("spill_bytes", 512, "512 B"),
        ("peak_bytes", 8 << 20, "8.00 MiB"),
        ("seconds", 1.414, "1.41 s"),
        ("registers", 12345, "12,345"),
        ("as_given.cosine", 0.9999999, "1 − 1.0e-7"),
        ("as_given.max_abs", 2.8e-3, "2.80e-3"),
        ("as_given.psnr", "inf", "inf"),
        ("shape", [512, 4096], "512, 4,096"),
        ("ok", True, "yes"),
        ("limits", {"rtol": 0.5, "none": None}, "rtol 0.500, none none"),
    ],
)
def test_facts_take_their_unit_from_their_name(name: str, value: object, said: str) -> None:
    assert figures.fact(name, value) == said


def test_spans_and_counts() -> None:
    assert [figures.seconds(s) for s in (2.54, 61, 3720)] == ["2.5 s", "1 min 1 s", "1 h 2 min"]
    assert [figures.plural(n, "attempt") for n in (0, 1, 2)] == [
        "0 attempts",
        "1 attempt",
        "2 attempts",
    ]
    assert [figures.percent(f) for f in (0, 0.0123, 0.854, 1.2)] == ["0%", "1.2%", "85%", "120%"]


PYTHON = """\
Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/toprung/judge/child/program.py", line 118, in call
    returned = self.entry(*inputs)
  File "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1775, in _call_impl
    return forward_call(*args, **kwargs)
           ^^^^^^^^^^^^^
  File "/scratch/1f/kernel.py", line 31, in forward
    module.softmax(x, z)
                      ^
  File "/home/me/src/toprung/dsls/inline.py", line 60, in _load
    raise CompileError()
NameError: name 'z' is not defined
  did you mean: 'x'?
"""


def test_the_candidates_own_frames_are_kept() -> None:
    assert trimmed(PYTHON, 20) == [
        "Traceback (most recent call last):",
        '  File "kernel.py", line 31, in forward',
        "    module.softmax(x, z)",
        "                      ^",
        "NameError: name 'z' is not defined",
        "  did you mean: 'x'?",
    ]


def test_a_traceback_of_foreign_frames_keeps_the_last() -> None:
    lines = [
        line for line in PYTHON.splitlines() if "kernel.py" not in line and "(x, z)" not in line
    ]
    assert '  File "inline.py", line 60, in _load' in trimmed("\n".join(lines), 20)


def test_compilers_are_cut_down_to_their_complaints() -> None:
    noise = [f"note: instantiated from line {i}" for i in range(50)]
    text = "\n".join([*noise, "k.cpp:7:3: error: 'x' was not declared", "  x = 1;", "  ^", *noise])
    found = trimmed(text, 8)
    assert "k.cpp:7:3: error: 'x' was not declared" in found and "  ^" in found and len(found) == 4


@given(text=HOSTILE, lines=st.integers(4, 30))
def test_trimmed_text_is_bounded(text: str, lines: int) -> None:
    for given_text in (text, PYTHON + text * 3, f"error: {text}\n" * 40, text.join("a\n" * 90)):
        found = trimmed(given_text, lines)
        assert len(found) <= lines and all("\n" not in line for line in found)


def test_many_lines_lose_their_middle() -> None:
    found = trimmed("\n".join(f"row {i}" for i in range(100)), 9)
    assert found[0] == "row 0" and found[-1] == "row 99" and "92 lines left out" in found[3]
