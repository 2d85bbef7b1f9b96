# Shared by the recipes of this folder: sets METHOD_FLAGS and SIZE_FLAGS from METHOD and SIZE.
# shellcheck shell=bash

# Every row of the paper's Table 4 is a METHOD; the first two are Table 1's.
case "${METHOD:=sal}" in
    sal) METHOD_FLAGS=(--attention sal) ;;                          # w. SAL
    plain) METHOD_FLAGS=(--attention plain) ;;                      # the Transformer baseline
    srl) METHOD_FLAGS=(--attention srl) ;;                          # w. SRL
    none) METHOD_FLAGS=(--attention plain --quantizer sovq) ;;      # None: SoVQ, plain attention
    sal-vq) METHOD_FLAGS=(--attention sal --quantizer vq) ;;        # - SoVQ
    srl-vq) METHOD_FLAGS=(--attention srl --quantizer vq) ;;
    sal-tokens) METHOD_FLAGS=(--attention sal --mmi tokens) ;;      # - Brown
    srl-tokens) METHOD_FLAGS=(--attention srl --mmi tokens) ;;
    sal-brown) METHOD_FLAGS=(--attention sal --code-classes brown) ;;  # beyond the paper
    *)
        echo "METHOD=$METHOD is none of sal, srl, plain, none, sal-vq, srl-vq, sal-tokens," \
            "srl-tokens, sal-brown" >&2
        exit 2
        ;;
esac

case "${SIZE:=tiny}" in
    # The paper's appendix B.2 and its authors' settings: a GPU's work.
    paper)
        : "${UPDATES:=100000}"
        SIZE_FLAGS=(
            --dropout 0.3 --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --max-tokens 4096
            --validate-interval-updates 1000 --save-interval-updates 1000
        )
        ;;
    # 2 + 2 layers, 64 wide: minutes on a CPU.
    tiny)
        : "${UPDATES:=9000}"
        SIZE_FLAGS=(
            --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64
            --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128
            --encoder-predictor-layers 1 --decoder-predictor-layers 1
            --dropout 0.3 --lr 3e-3 --lr-scheduler polynomial_decay --total-num-update "$UPDATES"
            --warmup-updates 300 --max-tokens 1024 --repeated-pairs spread
            --validate-interval-updates 500 --save-interval-updates 500
        )
        ;;
    *)
        echo "SIZE=$SIZE is neither tiny nor paper" >&2
        exit 2
        ;;
esac
