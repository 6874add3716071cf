"""DSLs: who claims what, what is seen without running anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from toprung.dsls import table
from toprung.dsls.cpp import Sidecar
from toprung.dsls.python import find_entry
from toprung.errors import CompileError, Refuted, Unavailable, UsageError
from toprung.model.candidate import Candidate

pytestmark = pytest.mark.unit

MODULE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
INLINE = 'import toprung\n\nops = toprung.inline("", ["f"])\n\n\ndef kernel(x):\n    return x\n'


def source(text: str, main: str = "kernel.py") -> Candidate:
    return Candidate.of_source(text, main=main)


@pytest.mark.parametrize("name", table.names())
def test_every_dsl_keeps_the_contract(name: str) -> None:
    dsl = table.get(name)
    here = dsl.available()
    assert dsl.name == here.name == name
    assert (here.version is None) == (here.missing is not None)
    assert here.version or here.install


@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        (source(MODULE), "torch"),
        (source(INLINE), "cpp"),
        (source("from torch.utils.cpp_extension import load_inline\nload_inline()\n"), "cpp"),
        (source("x", main="kernel.cpp"), "cpp"),
        (source("{}", main="kernel.null"), "null"),
        (source('"""toprung.inline(…) is only spoken of."""\n' + MODULE), "torch"),
    ],
)
def test_the_source_says_its_language(candidate: Candidate, name: str) -> None:
    assert table.detect(candidate).name == name


def test_a_language_that_is_not_here_is_named() -> None:
    with pytest.raises(Unavailable, match="triton"):
        table.detect(source("import triton\n" + MODULE))


def test_a_named_dsl_is_taken_at_its_word() -> None:
    named = Candidate(files={"kernel.py": MODULE}, main="kernel.py", dsl="cpp")
    assert table.detect(named).name == "cpp"
    with pytest.raises(UsageError, match="no DSL is called"):
        table.get("cobol")


@pytest.mark.parametrize(
    "text",
    [
        "class ModelNew: pass",
        "def kernel(x): return x",
        "from other import ModelNew",
        "kernel = make()",
        "try:\n    from fast import kernel\nexcept ImportError:\n    def kernel(x): return x",
        "if True:\n    class ModelNew: pass",
    ],
)
def test_an_entry_is_found_wherever_it_is_bound(text: str) -> None:
    assert find_entry(source(text)) in ("ModelNew", "kernel")


def test_no_entry_is_refuted_with_what_to_do() -> None:
    with pytest.raises(Refuted) as caught:
        find_entry(source("def other(x): return x"))
    assert "ModelNew" in (caught.value.hint or "")


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(Refuted, match="line 2") as caught:
        find_entry(source("x = 1\ndef kernel(:\n"))
    assert caught.value.details == "def kernel(:"


def test_a_sidecar_says_what_is_missing() -> None:
    plain = {"k.cpp": "void f();"}
    for files, words in (
        (plain, "no sidecar k.toml"),
        ({**plain, "k.toml": "["}, "k.toml"),
        ({**plain, "k.toml": "[candidate]\nentry = 'f'"}, "args"),
        ({**plain, "k.toml": "[candidate]\nentry = 3\nargs = []"}, "string"),
    ):
        with pytest.raises(Refuted, match=words):
            Sidecar.of(Candidate(files=files, main="k.cpp"))
    good = "[candidate]\nentry = 'f'\nargs = ['input.0']\nflags = ['-O1']"
    sidecar = Sidecar.of(Candidate(files={**plain, "k.toml": good}, main="k.cpp"))
    assert (sidecar.entry, sidecar.args, sidecar.flags) == ("f", ["input.0"], ["-O1"])


def test_null_refuses_orders_it_does_not_know() -> None:
    null = table.get("null")
    for text in ("[]", "{", '{"call": "dance"}', '{"jump": "zeros"}'):
        with pytest.raises(Refuted):
            null.precheck(source(text, main="k.null"))


def test_inline_gives_the_compilers_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from toprung.dsls.inline import inline

    monkeypatch.setenv("TOPRUNG_BUILD_DIR", str(tmp_path))
    body = "void twice(TensorView x, TensorView y) {\n  auto* a = (float*)x.data_ptr();\n"
    loop = "  for (int64_t i = 0; i < x.numel(); i++) ((float*)y.data_ptr())[i] = 2 * a[i];\n}"
    module = inline(body + loop, ["twice"])
    x, y = torch.randn(5), torch.empty(5)
    module.twice(x, y)
    assert torch.equal(y, 2 * x)
    with pytest.raises(CompileError) as caught:
        inline(body + loop.replace("a[i]", "b[i]"), "twice")
    assert "source:3" in (caught.value.details or "")
    assert "was not declared" in (caught.value.details or "")
    assert "ninja" not in (caught.value.details or "")
    with pytest.raises(UsageError):
        inline("", [])
