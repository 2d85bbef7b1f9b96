# Shared by the recipes of every data set: sourced by their train.sh and evaluate.sh with the
# arguments DATA SAVE [FLAG...]. The environment chooses:
#   METHOD   sal (SCAN's default), srl (the default elsewhere), plain or an ablation, transformer, cat
#            or proto; see below
#   SEED     0, 1, ...
#   SIZE     tiny (ten minutes to two hours of a core) or paper (the published size; but for
#            Syntactic Attention a GPU's work)
#   UPDATES  the length of the training; a small Transformer's rate rises for 300 of them
#   STAGE1_EPOCHS  epochs before prototypes are extracted
#   PLAIN    for proto-two-pass: the folder of a finished run of transformer
#   BEAM     the width of evaluate.sh's beam
#   LAUNCH   what starts the processes of a distributed training, e.g.
#            "torchrun --nproc_per_node 8 --no-python" or "srun" (port MASTER_PORT, else by job);
#            fairseq uses every GPU of one machine without it
# shellcheck shell=bash

root="$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=whole.sh
source "$root/examples/whole.sh"
if [[ $# -lt 2 ]]; then usage; fi
installed "$root"
data="$1" save="$2"
shift 2
more=("$@")
# given PATTERN: the flags among them that match it, with their values, go to "found".
given() {
    local i
    found=()
    for ((i = 0; i < ${#more[@]}; i++)); do
        # shellcheck disable=SC2053 # a pattern
        if [[ ${more[i]} == $1?(=*) ]]; then
            found+=("${more[i]}")
            [[ ${more[i]} == *=* ]] || found+=("${more[i + 1]-}")
        fi
    done
}
[[ -e $data/PREPARED.json ]] ||
    refuse "$data has no PREPARED.json: it is not a prepared folder; see prepare/README.md"
# sums FOLDER: the checksums of its data; the rest of PREPARED.json may differ: with what they were made
sums() { sed -n '/"sha256": {/,$p' "$1/PREPARED.json"; }
if [[ -e $save/PREPARED.json && $(sums "$data") != "$(sums "$save")" ]]; then
    refuse "$save was trained on other data than $data; name another folder"
fi
whole 0 SEED
whole 1 UPDATES STAGE1_EPOCHS EPOCHS BATCH BEAM
plugin="$root/compgen_fairseq"
if [[ ! -d $plugin ]]; then # a copy by compgen-examples: the installed one
    plugin="$(python -c 'import importlib.util as u; print(*u.find_spec("compgen_fairseq").submodule_search_locations)')"
fi
device=(--cpu)
if python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then device=(); fi
export SEED="${SEED:-1}"
# fairseq's import warns with PyTorch 2.15, before compgen_fairseq.compat.quieten is there
export PYTHONWARNINGS="${PYTHONWARNINGS-ignore::FutureWarning:torch.jit._script}"

[[ ${SIZE:=tiny} == @(tiny|paper) ]] || refuse "SIZE=$SIZE is neither tiny nor paper"
adam=adam # fairseq's starts 13 operations a parameter, 40% of SAL's, and a GPU waits for each
if [[ $SIZE == paper ]]; then adam=fused_adam; fi

# train_sq ARCH FLAG...: trains SQ-Transformer, its baseline or an ablation, as METHOD says: the
# rows of the paper's Table 4.
train_sq() {
    local arch="$1" method=()
    shift
    case "$METHOD" in
        sal | srl | plain) method=(--attention "$METHOD") ;;       # plain: the Transformer baseline
        none) method=(--attention plain --quantizer sovq) ;;       # None: SoVQ, plain attention
        sal-vq | srl-vq) method=(--attention "${METHOD%-*}" --quantizer vq) ;;          # - SoVQ
        sal-tokens | srl-tokens) method=(--attention "${METHOD%-*}" --mmi tokens) ;;    # - Brown
        sal-brown | srl-brown | sal-substitution | srl-substitution)  # beyond the paper
            method=(--attention "${METHOD%-*}" --code-classes "${METHOD#*-}")
            ;;
        sal-meanings) method=(--attention sal --code-classes substitution --class-meanings own) ;;
        *)
            refuse "METHOD=$METHOD is none of sal, srl, plain, none, sal-vq, srl-vq, sal-tokens," \
                "srl-tokens, sal-brown, srl-brown, sal-substitution, srl-substitution," \
                "sal-meanings, $TRANSFORMERS${OTHER_METHODS:+, $OTHER_METHODS}"
            ;;
    esac
    if [[ $SIZE == tiny ]]; then
        method+=(--encoder-predictor-layers 1 --decoder-predictor-layers 1)
        # SAL's learned codes follow their words as the authors' do, whose learning rate is a sixth
        if [[ $METHOD == sal?(-vq|-tokens) ]]; then
            method+=(--code-ema-decay 0.994)
        fi
    fi
    train --arch "$arch" --optimizer "$adam" --adam-betas '(0.9,0.98)' --clip-norm 0 \
        --criterion structural_cross_entropy "${method[@]}" "$@"
}

# Models around fairseq's Transformer, for train_transformer: itself, with CAT's encoder, with
# prototypes (proto, proto-identity, proto-target-side, proto-source-and-target after STAGE1_EPOCHS
# epochs: by default, with SIZE=paper, the paper's number where it has the data set;
# proto-random from the first update, as proto-two-pass, which takes those of the finished run of
# transformer whose folder is PLAIN).
TRANSFORMERS="transformer, cat, proto, proto-identity, proto-target-side, proto-source-and-target, \
proto-random, proto-two-pass"
stage2=() # more flags of a stage 2, for a recipe to add to
is_transformer() { method_is_of "$TRANSFORMERS"; }

# method_is_of "NAME, NAME, ...": whether METHOD is one of them.
method_is_of() { [[ $METHOD != *" "* && ", $1, " == *", $METHOD, "* ]]; }

# train_transformer ARCH CAT_ARCH PROTO_ARCH FLAG...: trains one of TRANSFORMERS, as METHOD says.
train_transformer() {
    local plain=(--criterion label_smoothed_cross_entropy) method
    local states=() prototypes stages=( # with several processes, stage 1 leaves the new layer out
        --prototype-stage1-epochs "$STAGE1_EPOCHS" --find-unused-parameters "${stage2[@]}"
    )
    # the authors': all states of the types that occur 50 times; here as many as 8 GiB hold, which
    # takes a sample of WMT's (--prototype-memory)
    if [[ $SIZE == paper ]]; then
        states=(--prototype-min-count 50 --prototype-sample-size 0)
    fi
    prototypes=(--arch "$3" "${plain[@]}" "${states[@]}")
    case "$METHOD" in
        transformer) method=(--arch "$1" "${plain[@]}") ;;
        cat) method=(--arch "$2" --criterion composition_cross_entropy) ;;
        proto) method=("${prototypes[@]}" "${stages[@]}") ;;
        proto-identity) method=("${prototypes[@]}" "${stages[@]}" --prototype-identity) ;; # beyond it
        proto-random) method=("${prototypes[@]}" --prototypes random) ;;
        proto-two-pass)
            local of="${PLAIN:-}/checkpoint_best.pt"
            if [[ -e $of ]]; then
                METHOD+=" of $(cksum <"$of")"
            elif [[ -e $save/checkpoint_last.pt && -e $save/METHOD ]] && # it is needed no more
                [[ $(<"$save/METHOD") =~ ^METHOD=(proto-two-pass.*)\ SEED= ]]; then
                METHOD="${BASH_REMATCH[1]}"
            else
                refuse "PLAIN=${PLAIN:-} must be the folder of a finished run with METHOD=transformer"
            fi
            begin
            if [[ ! -e $save/checkpoint_last.pt ]]; then
                given '--prototype@(s-per-token|-min-count|-layer|-sample-size|-memory|-max-tokens)'
                compgen-prototypes extract "$of" "$data" "${device[@]}" --arch "$3" "${states[@]}" \
                    "${found[@]}" --force --output "$save/table.pt"
            fi
            method=("${prototypes[@]}" --prototypes two-pass --prototype-table "$save/table.pt")
            ;;
        *) method=("${prototypes[@]}" "${stages[@]}" --prototypes "${METHOD#proto-}") ;;
    esac
    shift 3
    train "${method[@]}" --optimizer "$adam" --adam-betas '(0.9,0.98)' --clip-norm 0 \
        --share-decoder-input-output-embed "$@"
}

# train_recurrent FLAG...: trains what METHOD names, Syntactic Attention, one of its variants or the
# recurrent net with the usual attention, on 200,000 pairs unless UPDATES says otherwise.
train_recurrent() {
    local method=(--arch syntactic_attention_scan) schedule
    if [[ $SIZE == paper ]]; then # one pair at a time, at a constant rate
        : "${UPDATES:=200000}"
        schedule=(
            --lr 1e-3 --lr-scheduler fixed --clip-norm 0 --batch-size 1 --batch-size-valid 128
            --num-workers 0 --data-buffer-size 0 # no other process or thread hands over single pairs
            # at a constant rate single pairs sway the model, so the choice has to be among many
            --validate-interval-updates 5000 --save-interval-updates 5000
        )
    else
        : "${UPDATES:=6250}"
        schedule=(
            --lr 2e-3 --lr-scheduler polynomial_decay --total-num-update "$UPDATES"
            --warmup-updates 200 --clip-norm 5 --batch-size 32
            --validate-interval-updates 1250 --save-interval-updates 1250
        )
    fi
    case "$METHOD" in
        syntactic-sequential) method+=(--sequential-semantics) ;;
        syntactic-action) method+=(--syntax-action) ;;
        syntactic-mlp) method+=(--semantic-mlp) ;;
        syntactic-classes | syntactic-meanings) # beyond the paper
            method+=(--syntactic-classes substitution --marker-meanings own)
            if [[ $METHOD == syntactic-meanings ]]; then
                method+=(--class-meanings own --scaled-attention --train-batches mixed)
            fi
            ;;
        lstm) # attention on the encoder's states; fairseq wants as many layers on both sides
            method=(
                --arch lstm --dropout 0.5
                --encoder-layers 2 --encoder-bidirectional --decoder-layers 2
                --encoder-embed-dim 120 --decoder-embed-dim 120 --decoder-out-embed-dim 120
                --encoder-hidden-size 200 --decoder-hidden-size 400
            )
            ;;
    esac
    train "${method[@]}" --criterion cross_entropy --optimizer fused_adam \
        --validate-interval 1000000 "${schedule[@]}" "$@"
}

# begin: makes SAVE this training's, or refuses; nothing changes if it is called twice.
begin() {
    local run="METHOD=$METHOD SEED=$SEED SIZE=$SIZE"
    if [[ -e $save/checkpoint_last.pt ]]; then
        local of="no recipe"
        if [[ -e $save/METHOD ]]; then of="$(<"$save/METHOD")"; fi
        [[ $of == "$run" ]] || refuse "$save holds a training with $of, not $run; name another folder"
    elif [[ -e $save/checkpoint_best.pt ]]; then
        refuse "$save has a checkpoint_best.pt, but no checkpoint_last.pt to go on from: copy one to" \
            "that name, or name another folder"
    fi
    mkdir -p "$save"
    if command -v flock >/dev/null; then # until the last process of this training has ended
        exec 9>"$save/training.lock"
        flock -n 9 || [[ $? -ne 1 ]] || refuse "$save is being trained already" # 1: it is held
    fi
    [[ -e $save/checkpoint_last.pt ]] || rm -f "$save/train.log" # it begins anew, and so do its curves
    cat "$data/PREPARED.json" >"$save/PREPARED.json.partial" # which may be read-only
    mv "$save/PREPARED.json.partial" "$save/PREPARED.json"
    echo "$run" >"$save/METHOD.partial"
    mv "$save/METHOD.partial" "$save/METHOD"
}

# train FLAG...: fairseq-train into SAVE, UPDATES long; resumes what is there.
train() {
    begin
    more=("${more[@]/#--restore-file/--continue-once}") # so that it resumes
    given --max-epoch
    if ((${#found[@]})); then set -- "$@" --validate-interval 1; fi # an epoch is the end, no update
    # glibc keeps the memory of an update for the next one instead of asking the system again
    export MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=1073741824
    if [[ -n ${LAUNCH:-} ]]; then device=(); fi # process.sh asks the machine it runs on
    # shellcheck disable=SC2086 # LAUNCH is a command with arguments
    ${LAUNCH:-} bash "$root/examples/process.sh" "$data" "${device[@]}" \
        --user-dir "$plugin" --task compgen_translation \
        --seed "$SEED" --max-update "$UPDATES" --save-dir "$save" \
        --keep-interval-updates 1 --no-epoch-checkpoints \
        --no-progress-bar --log-format simple --log-interval 100 \
        "$@" "${more[@]}" 2>&1 |
        tee -i -a "$save/train.log" | python "$root/examples/time_left.py" training
}

# generate NAME SUBSET FLAG...: decodes with checkpoint_NAME.pt into SAVE/SUBSET.NAME.log, unless
# that was done with the data, checkpoint and flags that are in the log's first line. The flags in
# "complete" have compgen-score refuse a log that lacks one of SUBSET's sentences.
generate() {
    local name="$1" checkpoint="$save/checkpoint_$1.pt" subset="$2" log="$save/$2.$1.log" begun made
    shift 2
    if [[ ! -e $checkpoint ]]; then
        local first="train.sh comes first"
        if [[ -e $save/checkpoint_last.pt ]]; then first="the training was not validated"; fi
        echo "$0: there is no $checkpoint; $first" >&2
        exit 1
    fi
    complete="$(python "$root/examples/sentences.py" "$data" "$subset")"
    complete=(--expected "$complete")
    if [[ -z ${evaluating:-} ]] && command -v flock >/dev/null; then # until this evaluation has ended
        evaluating=1
        exec 8>"$save/evaluation.lock"
        flock -n 8 || [[ $? -ne 1 ]] ||
            { echo "waits for another evaluation of $save" >&2; flock 8; }
    fi
    begun="data $(sums "$data" | cksum), checkpoint $(sha256sum <"$checkpoint" | cut -c 1-16)"
    begun+=", flags $* ${more[*]}"
    for made in "$log" "$save/$subset.best.log"; do # the last checkpoint may be the chosen one
        if [[ -e $made && $(head -n 1 "$made") == "$begun" ]]; then
            if [[ $made != "$log" ]]; then
                cp "$made" "$log.partial"
                mv "$log.partial" "$log"
            fi
            return
        fi
    done
    echo "checkpoint_$name.pt, $subset:" >&2
    echo "$begun" >"$log.partial"
    PYTHONUNBUFFERED=1 fairseq-generate "$data" "${device[@]}" --user-dir "$plugin" \
        --path "$checkpoint" --gen-subset "$subset" "$@" "${more[@]}" 2>"$save/generate.err" |
        python "$root/examples/time_left.py" decoding "${complete[1]}" >>"$log.partial" ||
        { sed '/ | INFO | /d' "$save/generate.err" | tail -n 5 >&2; rm "$log.partial"; exit 1; }
    rm "$save/generate.err"
    mv "$log.partial" "$log"
}

# codes NAME: names the checkpoint; of a model that has codes, the words of each go to
# SAVE/codes.NAME.json.
codes() {
    local file="$save/codes.$1.json" found
    echo "checkpoint_$1.pt"
    given --user-dir # a plugin of one's own
    if compgen-analyze codes "$save/checkpoint_$1.pt" "$data" "${found[@]}" --json \
        >"$file.partial" 2>"$save/codes.err"
    then
        mv "$file.partial" "$file"
    elif grep -q "has no codes" "$save/codes.err"; then
        rm "$file.partial"
    else
        cat "$save/codes.err" >&2
        rm "$file.partial" "$save/codes.err"
        exit 1
    fi
    rm "$save/codes.err"
}
