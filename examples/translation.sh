# What the recipes of natural translation data share, and recipe.sh.
# shellcheck shell=bash
# shellcheck source=recipe.sh
source "$(dirname "${BASH_SOURCE[0]}")/recipe.sh"

recipe="$(basename "$(cd "$(dirname "$0")" && pwd -P)")"
if [[ $recipe == iwslt14_en_de ]]; then # the folder is binarised as de-en
    more=(--source-lang en --target-lang de "${more[@]}")
fi

index=("$data"/train.*-*.*.idx) # train.en-de.de.idx
pair="${index[0]##*/train.}"
pair="${pair%%.*}"
target="${pair#*-}"
given '@(--target-lang|-t)'
[[ ${#found[@]} -eq 0 ]] || target="${found[-1]#--target-lang=}"
words="$(<"$data/PREPARED.json")" mark='' # words are taken as they are, as in semantic parsing
if [[ $words != *'"tokenized": true'* || -e $data/code || -e $data/sentencepiece.model ]]; then
    words=''
else # or subwords of one's own
    mark="$(grep -asm 1 -oe '[^ ]@@ ' -e '^▁' "$data/raw/test.$target" | head -n 1)" || true
fi
tokenize=()
if [[ -e $data/sentencepiece.model || $mark == ▁ ]]; then
    bpe=sentencepiece detok=space plain=(--detokenize subwords)
else # Moses' tokens, in subword-nmt's BPE or whole
    bpe='@@ ' detok=moses
    plain=(--detokenize moses --lang "$target")
fi
case $target in # written without spaces; validation counts the words of the data
    zh | zh[-_]* | cmn | yue) detok=space plain=(--detokenize chinese) tokenize=(--tokenize zh) ;;
    ja) detok=space plain=(--detokenize chinese) tokenize=(--tokenize char) ;;
esac
plain+=(--reference "$data/raw/test.$target") # those of the log lack unknown words and pieces

# train_translation ARCH DROPOUT PAPER_UPDATES PAPER_STAGE1_EPOCHS: by default the checkpoint with the
# best validation BLEU (beam 5, at most 1.2 x + 10 tokens, as in SQ-Transformer's appendix B.2; label
# smoothing 0.1 and BLEU as in its authors' scripts of CoGnition). Neither gives a dropout for WMT: it
# is fairseq's for the smaller and the larger set. The updates of WMT are SQ-Transformer's, for every
# METHOD; of IWSLT and text of one's own no paper gives any. Proto-Transformer and its baseline have
# transformer_base's dropout on WMT, as in their paper; the last number is its table 7's, or a tenth
# to a quarter of all epochs, as it recommends; k is that of WMT'16 En-De, or IWSLT's.
train_translation() {
    local transformer="${1#sq_}" size_flags transformer_size=() selection flags dropout="$2" decay=0.0001
    transformer="${transformer/%_wmt_en_fr/_wmt_en_de}" # the same sizes
    if [[ $SIZE == paper ]]; then
        : "${UPDATES:=$3}" "${STAGE1_EPOCHS:=$4}"
        if [[ $1 == *_wmt_* ]] && is_transformer; then
            dropout=0.1 decay=0
            stage2+=(--prototype-restart) # as in the authors' WMT script
        fi
        size_flags=(
            --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --max-tokens 4096
            --validate-interval-updates 10000 --save-interval-updates 10000
        )
    else # 2 + 2 layers, 128 wide
        : "${UPDATES:=4000}" "${STAGE1_EPOCHS:=3}" # 16 epochs of Multi30k
        size_flags=(
            --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 128
            --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
            --encoder-attention-heads 4 --decoder-attention-heads 4
            --lr 3e-3 --lr-scheduler polynomial_decay --total-num-update "$UPDATES"
            --warmup-updates 300 --max-tokens 2048
            --validate-interval-updates 1000 --save-interval-updates 1000
        )
        transformer_size=(--decoder-embed-dim 128)
    fi
    case "${SELECT:=bleu}" in
        bleu)
            selection=(
                --eval-bleu --eval-bleu-args '{"beam": 5, "max_len_a": 1.2, "max_len_b": 10}'
                --eval-bleu-remove-bpe "$bpe" --eval-bleu-detok "$detok"
                --eval-bleu-detok-args "{\"target_lang\": \"$target\"}"
                --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
            )
            ;;
        exact_match)
            [[ -n $words ]] ||
                refuse "SELECT=exact_match: prepare with --tokenized --bpe-merges 0"
            selection=(
                --eval-exact-match ${mark:+--eval-exact-match-remove-bpe "$bpe"}
                --eval-exact-match-args '{"beam": 1, "max_len_a": 0, "max_len_b": 500}'
                --best-checkpoint-metric exact_match --maximize-best-checkpoint-metric
            )
            ;;
        loss) selection=(--best-checkpoint-metric loss) ;;
        *) refuse "SELECT=$SELECT is none of bleu, exact_match, loss" ;;
    esac
    flags=(
        --dropout "$dropout" --weight-decay "$decay" --label-smoothing 0.1 "${size_flags[@]}"
        --validate-interval 1000000 --max-tokens-valid 8192
        "${selection[@]}"
    )
    if is_transformer; then
        train_transformer "$transformer" "cat_${transformer%_wmt_en_de}" "proto_$transformer" \
            "${transformer_size[@]}" "${flags[@]}"
    else
        train_sq "$1" "${flags[@]}"
    fi
}

# evaluate_translation: test set, BLEU and chrF of the chosen and the last checkpoint, CTER where the
# data have compounds, exact match by case where they have cases, and exact match where their words
# are taken as they are, as in semantic parsing. The target is that of the data unless --target-lang
# says otherwise.
evaluate_translation() {
    local name log compared=(--metric bleu "${plain[@]}" "${tokenize[@]}")
    local search=(--beam "${BEAM:-5}" --max-len-a 1.2 --max-len-b 10)
    if [[ -n $words && -z $mark ]]; then
        compared=() search=(--beam "${BEAM:-1}" --max-len-a 0 --max-len-b 500)
    fi
    for name in best last; do
        log="$save/test.$name.log"
        generate "$name" test "${search[@]}" --max-tokens 4096 --remove-bpe "$bpe"
        codes "$name"
        compgen-score "$log" "${complete[@]}" --metric bleu "${plain[@]}" "${tokenize[@]}" \
            --json-out "$save/bleu.$name.json"
        compgen-score "$log" "${complete[@]}" --metric chrf "${plain[@]}" \
            --json-out "$save/chrf.$name.json"
        if [[ -n $words ]]; then
            compgen-score "$log" "${complete[@]}" --json-out "$save/exact_match.$name.json"
        fi
        if [[ -e $data/cases/test.case ]]; then
            compgen-score "$log" "${complete[@]}" --metric cogs --cases "$data/cases/test.case" \
                --json-out "$save/cogs.$name.json"
        fi
        if [[ $pair == *"-$target" && -e $data/cter/test.compound ]]; then
            compgen-cter --log "$log" --compound "$data/cter/test.compound" \
                --lexicon "$data/cter/lexicon" --json-out "$save/cter.$name.json"
        fi
    done
    echo "Is it better than another run? compgen-compare OTHER/test.best.log" \
        "$(printf '%q ' "$save/test.best.log" "${compared[@]}")"
}
