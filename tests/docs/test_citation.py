"""CITATION.cff, which citation tools read."""

from pathlib import Path

import yaml

CITATION = Path(__file__).parents[2] / "CITATION.cff"


def test_every_reference_has_what_a_citation_needs():
    cited = yaml.safe_load(CITATION.read_text())
    assert cited["cff-version"] and cited["message"] and cited["authors"]
    for reference in cited["references"]:
        assert {"type", "title", "year", "authors"} <= set(reference), reference
