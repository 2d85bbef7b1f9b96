"""Which flags a score may depend on."""

from compgen.reporting.flags import decoding, flags


def test_results_of_one_method_have_the_same_flags():
    one = flags("fairseq-train a --seed 1 --lr 0.1 --adam-betas '(0.9, 0.98)' --lr 0.2 --cpu")
    other = flags("fairseq-train b --lr=0.2 --save-dir b --adam-betas '(0.9, 0.98)' --seed 2")
    assert one == other == {"lr": ["0.2"], "adam-betas": ["(0.9, 0.98)"]}
    assert flags("fairseq-train --prototype-table a.1/table.pt --continue-once=b.1/x.pt") == {
        "prototype-table": ["table.pt"],
        "continue-once": ["x.pt"],
    }
    on_two = "--distributed-init-method tcp://n1:29500 --distributed-rank 0 --device-id 0"
    assert flags(f"fairseq-train {on_two} --distributed-world-size 2 --find-unused-parameters") == {
        "distributed-world-size": ["2"]
    }


def test_a_decoding_with_a_plugin_on_other_devices_is_the_same():
    texts = ("--cpu --beam 5", "--beam 5 --user-dir my own", "--beam 5 --num-workers=2 --cpu")
    assert decoding(texts) == "--beam 5"
    assert decoding(["--user-dir=own --beam 1", "--beam 5", ""]) == "--beam 1; --beam 5; "
