"""docs/options.md is what the dataclasses say, and so is the help of fairseq-train."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("options", DOCS / "options.py")
options = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(options)


def test_the_page_is_fresh():
    assert (DOCS / "options.md").read_text(encoding="utf-8") == options.page()


def test_help_lists_the_flags_of_what_the_command_names(run, plugin):
    names = "--arch proto_transformer --task compgen_translation"
    criterion = "--criterion structural_cross_entropy"
    out = run("fairseq_cli.train", *plugin, *names.split(), *criterion.split(), "--help")
    for flag in (
        "--prototype-table",
        "--eval-exact-match",
        "--prototypes-per-token",
        "--max-epoch",
    ):
        assert f" {flag} " in out or f" {flag}\n" in out
