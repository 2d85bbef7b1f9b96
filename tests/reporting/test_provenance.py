"""The command and the machine of a training in its log."""

import logging
import os
import sys

from compgen_fairseq.reporting import provenance

GPU = (
    "2026-11-21 19:17:05 | INFO | fairseq.utils | rank   {}: capabilities =  9.0  ; "
    "total memory = 79.109 GB ; name = NVIDIA H100 80GB HBM3                   \n"
)


def test_what_is_logged_is_read(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train", "my data", "--betas", "(0.9,0.98)"])
    provenance.log_start.cache_clear()
    with caplog.at_level(logging.INFO):
        provenance.log_start()
        provenance.log_start()
    assert len(caplog.records) == 2  # once per process
    log = "".join(f"19:17:05 | INFO | x | {record.getMessage()}\n" for record in caplog.records)
    assert provenance.commands(log) == "fairseq-train 'my data' --betas '(0.9,0.98)'"
    cores = len(os.sched_getaffinity(0))
    assert provenance.machines(log).startswith(f"{cores} cores of ")


def test_gpus_are_those_that_fairseq_lists():
    log = (
        GPU.format(0) + GPU.format(1) + "| INFO | x | machine | 8 cores of a CPU\n" + GPU.format(0)
    )
    assert provenance.machines(log) == "2 x NVIDIA H100 80GB HBM3, 8 cores of a CPU"


def test_each_command_of_a_resumed_run_counts_once():
    log = "".join(f"| command | fairseq-train --max-update {n}\n" for n in (9, 9, 12))
    assert (
        provenance.commands(log)
        == "fairseq-train --max-update 9; then fairseq-train --max-update 12"
    )


def test_what_is_not_there_is_not_recorded():
    assert provenance.commands("| INFO | x |") == provenance.machines("") == "not recorded"
