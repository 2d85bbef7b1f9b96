"""SST-2: its lines."""

from compgen.data import sst2


def test_read() -> None:
    assert sst2.read("f", ["sentence\tlabel", 'it "s good \t1']) == [('it "s good', None, "1")]
