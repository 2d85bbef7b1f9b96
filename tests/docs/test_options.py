"""docs/options.md is what the dataclasses say, and so is the help of fairseq-train."""

from pathlib import Path

import options
from in_process import call


def test_the_page_is_fresh():
    assert (
        Path(options.__file__).with_name("options.md").read_text(encoding="utf-8") == options.page()
    )


def test_help_lists_the_flags_of_what_the_command_names(plugin):
    names = "--arch proto_transformer --task compgen_translation"
    criterion = "--criterion structural_cross_entropy"
    out = call("fairseq-train", [*plugin, *names.split(), *criterion.split(), "--help"]).out
    for flag in ("prototype-table", "eval-exact-match", "prototypes-per-token", "max-epoch"):
        assert f" --{flag} " in out or f" --{flag}\n" in out
