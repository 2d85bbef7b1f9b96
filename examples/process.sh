#!/usr/bin/env bash
# One process of a distributed training, started by LAUNCH (torchrun or srun): fairseq-train with
# the flags that follow from the launcher's variables and this machine. fairseq's own detection
# takes the processes for separate trainings where each machine, or each process, has a single GPU
# or none.
set -euo pipefail
flags=()
if [[ -z ${LAUNCH:-} ]]; then # the variables below may be another program's
    exec fairseq-train "$@"
fi
gpus="$(python -c 'import torch; n = torch.cuda.device_count(); print(n or 1); exit(not n)')" ||
    flags=(--cpu)
if [[ -n ${WORLD_SIZE:-} && -n ${RANK:-} ]]; then # torchrun
    flags+=(
        --distributed-init-method env:// --distributed-world-size "$WORLD_SIZE"
        --distributed-rank "$RANK" --device-id "${LOCAL_RANK:-0}" --distributed-no-spawn
    )
elif [[ -n ${SLURM_STEP_NODELIST:-} ]]; then # srun; a batch script has no step
    hosts="$(scontrol show hostnames "$SLURM_STEP_NODELIST")"
    host="${hosts%%$'\n'*}"
    port=$((20000 + ${SLURM_JOB_ID:-0} % 20000)) # two jobs may share a machine
    flags+=(
        --distributed-init-method "tcp://$host:${MASTER_PORT:-$port}"
        --distributed-world-size "$SLURM_NTASKS" --distributed-rank "$SLURM_PROCID"
        --device-id $((SLURM_LOCALID % ${gpus:-1})) # each may see its own GPU alone
        --distributed-no-spawn
    )
else
    echo "LAUNCH=$LAUNCH starts neither torchrun nor srun" >&2
    exit 1
fi
exec fairseq-train "$@" "${flags[@]}"
