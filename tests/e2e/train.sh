#!/bin/bash
# train.sh - sleet-train: each of its tasks learns; a run that was killed and resumed ends with the
# same bits, files that do not fit are refused and kept, a killed trainer goes on in a job.
# Arguments: the cases to run, of tasks triggers quorums deaths resume stops refuse parts first job (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR, and dataset-fashion-mnist.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" train sleetd sleetctl sleet-train
data=${SLEET_DATA:-/usr/share/datasets/fashion-mnist}
[ -d "$data" ] || { echo "train: no data in $data (package dataset-fashion-mnist)"; exit 77; }
export OPENBLAS_NUM_THREADS=1

# train NAME OPTIONS...: in the background.
train() {
    local name=$1
    shift
    keep "$name" "$build/sleet-train" --json --data "$data" --limit 3000 "$@"
}
kill_hard() { # NAME
    kill -KILL "${pid[$1]}"
    wait "${pid[$1]}" 2>/dev/null
}
done_line() { # NAME
    sed -n 's/"seconds":[0-9.]*//; s/"backward_ms":[0-9.]*//; s/,"own_bytes.*//; /"event":"done"/p' "$work/$1.out"
}
figure() { # NAME FIELD: the last one
    sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$work/$1.out" | tail -n 1
}

# A text of its own to learn.
cat "${SLEET_SRC:-$(dirname "$0")/../..}"/lib/core/*/*.c >"$work/text"

# ---- what can be learnt -----------------------------------------------------------------

# learns WHAT FIELD RELATION BOUND OPTIONS...: two simulated nodes end with such a figure.
learns() {
    local what=$1 field=$2 relation=$3 bound=$4
    shift 4
    train t --sim 2 --loss 0.1 "$@"
    ok "tasks: $what" ended t 60
    ok "tasks: $what: exit code 0 (was $code)" [ "$code" = 0 ]
    ok "tasks: $what: $field $(figure t "$field") $relation $bound" \
        awk -v x="$(figure t "$field")" -v y="$bound" "BEGIN { exit !(x != \"\" && x $relation y) }"
}

tasks_case() {
    learns "mlp, adamw" final_accuracy '>' 0.72 --steps 60 --optimizer adamw --lr 0.01 --clip-norm 1
    learns "gradients" final_accuracy '>' 0.72 --steps 60 --average gradient --codec rot4 --estimator expected
    learns "mlp-si, loss and weights of other scales" final_accuracy '>' 0.68 --steps 60 --model mlp-si \
        --loss-scale 100 --init-scale 10 --average gradient --estimator nodes
    learns "mlp, loss" final_loss '<' 1.2 --steps 60
    ok "tasks: mlp, loss: and it is one: $(figure t final_loss)" at_least "$(figure t final_loss)" 0.1
    learns "owners" final_accuracy '>' 0.72 --steps 60 --average owner --optimizer adamw --lr 0.003 --clip-norm 1
    ok "tasks: owners: each of two has half of the moments, 2 x 4 bytes of 50,890 parameters (was $(figure t moment_bytes))" \
        [ "$(figure t moment_bytes)" = 203560 ]
    learns "charlm" final_bits_per_char '<' 5 --steps 40 --model charlm --batch 4 --warm-up 10 --data "$work/text"
    learns "cnn-bn" final_accuracy '>' 0.6 --steps 40 --limit 1000 --model cnn-bn
    learns "cnn-bn, own statistics" mean_statistics_accuracy '>' 0.6 --steps 40 --limit 1000 --model cnn-bn --bn-stats local
    local loss=() how
    for how in "" "--codec topk --ef step-ahead --ef-average 1" "--codec topk" "--codec topk --ef step-ahead"; do
        # shellcheck disable=SC2086 # words
        train t --sim 4 --steps 30 --limit 4000 --average gradient --schedule constant --lr 0.05 $how
        ok "tasks: step-ahead: ${how:-nothing left out} ends" ended t 60
        loss+=("$(sed -n 's/.*"event":"step".*"step":30,.*"loss":\([0-9.]*\).*/\1/p' "$work/t.out")")
    done
    ok "tasks: step-ahead: averaged in each step it is the run without a codec (${loss[0]}, ${loss[1]})" \
        at_most "$(awk -v a="${loss[0]}" -v b="${loss[1]}" 'BEGIN { print (a > b ? a - b : b - a) }')" 0.00001
    ok "tasks: step-ahead: and else between that and none (${loss[3]}, ${loss[2]})" at_most "${loss[3]}" "${loss[2]}"
    learns "two sites" keep_across '<' 0.1 --sim 6 --sites 2 --loss 0 --steps 15 --limit 3000 \
        --average gradient --codec topk --ef plain --keep auto
    ok "tasks: two sites: all of a gradient inside ($(figure t keep_inside))" [ "$(figure t keep_inside)" = 1.0000 ]
    train t --keep auto
    ok "tasks: a share of models" ended t 30
    ok "tasks: a share of models: is refused (code $code)" eval \
        '[ "$code" = 2 ] && said t.err "^sleet-train: --keep says how much of a gradient topk leaves"'
    train t --ef plain
    ok "tasks: feedback for models" ended t 30
    ok "tasks: feedback for models: is refused (code $code)" eval \
        '[ "$code" = 2 ] && said t.err "^sleet-train: --ef is for --average gradient"'
    train t --model charlm --data "$work/none"
    ok "tasks: no text" ended t 30
    ok "tasks: no text: the sentence says what to do (code $code)" eval \
        '[ "$code" = 1 ] && said t.err "^sleet-train: $work/none: No such file or directory; name a text file with --data$"'
    train t --codec rot1
    ok "tasks: a model in one bit" ended t 30
    ok "tasks: a model in one bit: is refused (code $code)" eval \
        '[ "$code" = 2 ] && said t.err "^sleet-train: codecs coarser than i8 .* need a payload that is added"'
    train t --model charlm --data "$work/text" --hidden 30
    ok "tasks: a width of 30" ended t 30
    ok "tasks: a width of 30: is refused (code $code)" eval \
        '[ "$code" = 1 ] && said t.err "^sleet-train: the charlm has one width, a multiple of 4"'
}

# ---- when nodes average -------------------------------------------------------------

round_steps() { # NAME: the steps with a round, up to the tenth of them
    sed -n 's/.*"event":"step".*"step":\([0-9]*\),.*"coverage".*/\1/p' "$work/$1.out" | head -n 10 | xargs
}

triggers_case() {
    learns "every 5" final_accuracy '>' 0.7 --steps 60 --every 5
    ok "triggers: every 5: rounds behind the steps $(round_steps t)" \
        [ "$(round_steps t)" = "5 10 15 20 25 30 35 40 45 50" ]
    ok "triggers: every 5: 12 rounds and the last (were $(figure t rounds))" [ "$(figure t rounds)" = 13 ]
    local loss=() how
    for how in "" "--outer nesterov --outer-lr 1 --outer-momentum 0" "--outer nesterov"; do
        # shellcheck disable=SC2086 # words
        train t --sim 4 --steps 30 --limit 4000 --momentum 0 --every 5 $how
        ok "triggers: outer: ${how:-none} ends" ended t 60
        loss+=("$(sed -n 's/.*"event":"step".*"step":30,.*"loss":\([0-9.]*\).*/\1/p' "$work/t.out")")
    done
    ok "triggers: outer: a whole step without momentum is the average (${loss[0]}, ${loss[1]})" \
        at_most "$(awk -v a="${loss[0]}" -v b="${loss[1]}" 'BEGIN { print (a > b ? a - b : b - a) }')" 0.00001
    ok "triggers: outer: and else it is not (${loss[2]})" [ "${loss[0]}" != "${loss[2]}" ]
    learns "outer steps, adamw inside" final_accuracy '>' 0.7 --steps 60 --every 5 --outer nesterov \
        --outer-momentum 0.5 --optimizer adamw --lr 0.01
    learns "batches that follow step times" spread '<=' 1.25 --steps 60 --batch-control --batch-every 8 --slow 1,3:3,1
    ok "triggers: batches: the global batch stays" \
        [ "$(figure t global_batch_least) $(figure t global_batch_most) $(figure t tables_missed)" = "128 128 0" ]
    ok "triggers: batches: the slow node has a quarter of it ($(figure t batch))" [ "$(figure t batch)" = 32 ]
    train t --sim 2 --deadband 0.2
    ok "triggers: batches: options without control are refused" eval 'ended t 10; [ "$code" = 2 ] && said t.err "need --batch-control"'
    learns "spread" final_accuracy '>' 0.7 --steps 60 --spread 8
    ok "triggers: spread: a node sent $(figure t sent_bytes) bytes; without it 30 million" \
        at_most "$(figure t sent_bytes)" 6000000
    train t --spread 64
    ok "triggers: spread: a model that is too small" ended t 30
    ok "triggers: spread: a model that is too small: is refused (code $code)" eval \
        '[ "$code" = 1 ] && said t.err "^sleet-train: the model is too small for --spread"'
    loss=()
    for how in "--estimator ratio" "--slices 2 --slice-members 4" "--slices 2"; do
        # shellcheck disable=SC2086 # words
        train t --sim 4 --steps 20 --limit 4000 --every 5 --outer nesterov --outer-lr 0.3 $how
        ok "triggers: slices: $how ends" ended t 60
        loss+=("$(sed -n 's/.*"event":"step".*"step":20,.*"loss":\([0-9.]*\).*/\1/p' "$work/t.out")" "$(figure t sent_bytes)")
    done
    ok "triggers: slices: where all train all, it is the same (${loss[0]}, ${loss[2]})" [ "${loss[0]}" = "${loss[2]}" ]
    ok "triggers: slices: half of the model to train is three quarters to send (${loss[1]}, ${loss[5]})" \
        at_most "${loss[5]}" "$(awk -v x="${loss[1]}" 'BEGIN { print 0.82 * x }')"
    for how in 1 2; do # of which one is gone, for good
        train t --sim 4 --steps 40 --limit 4000 --every 5 --step-time 1 --outer nesterov --outer-lr 0.3 --slices 4 \
            --slice-members $how --dies 12
        ok "triggers: slices: of $how nodes each, one dies: ends" ended t 60
        ok "triggers: slices: of $how nodes each, one dies: others have its slices within a round ($(figure t rounds_short))" \
            [ "$(figure t rounds_short)" = 1 ]
        ok "triggers: slices: of $how nodes each, one dies: nothing stays still for long ($(figure t rounds_still))" \
            at_most "$(figure t rounds_still)" $((2 - how))
    done
    train t --sim 4 --dies 12
    ok "triggers: slices: a death needs time to be noticed" eval 'ended t 10; [ "$code" = 2 ] && said t.err "^sleet-train: --dies needs"'
    train t --sim 8 --slices 2 --outer nesterov
    ok "triggers: slices: too few for all nodes" ended t 30
    ok "triggers: slices: too few for all nodes: is refused (code $code)" eval \
        '[ "$code" = 2 ] && said t.err "^sleet-train: --slices times --slice-members is less"'
    local every
    for how in "--every 1" "--trigger selsync --delta 0"; do
        # shellcheck disable=SC2086 # words
        train t --sim 4 --steps 30 --limit 4000 --loss 0.1 $how
        ok "triggers: selsync: $how ends" ended t 60
        every=${lines_of-}
        lines_of=$(sed -n 's/"seconds":[0-9.]*//; /"event":"step"/p' "$work/t.out")
    done
    ok "triggers: selsync: delta 0 is a round behind each step, with the same $(wc -l <<<"$every") lines" \
        [ "$every" = "$lines_of" ]
    learns "selsync" final_accuracy '>' 0.7 --sim 4 --steps 60 --limit 4000 --trigger selsync --delta 1e9
    ok "triggers: selsync: a large delta has rounds in its window only (25 and the last, were $(figure t rounds))" \
        [ "$(figure t rounds)" = 26 ]
    learns "selsync, some rounds" final_accuracy '>' 0.7 --sim 4 --steps 60 --limit 4000 --trigger selsync --delta 0.05 --window 10
    ok "triggers: selsync: more with a small one ($(figure t rounds))" at_most "$(figure t rounds)" 55
    ok "triggers: selsync: more with a small one: at least 15" at_least "$(figure t rounds)" 15
    train t --sim 4 --steps 100 --limit 4000 --every auto --step-time 0.05
    ok "triggers: auto ends" ended t 60
    ok "triggers: auto: rounds are no more than a fifth of the time ($(figure t round_s) s every $(figure t every) steps)" \
        at_most "$(awk -v r="$(figure t round_s)" -v e="$(figure t every)" 'BEGIN { print r / (0.05 * e) }')" 0.2
    train t --average gradient --every 2
    ok "triggers: every second gradient" ended t 30
    ok "triggers: every second gradient: is refused (code $code)" eval \
        '[ "$code" = 2 ] && said t.err "^sleet-train: --every and --trigger are for --average model"'
}

# Of the steps of a round one takes ten times as long: who waits for it?
quorums_case() {
    local ms=() quorum
    for quorum in all majority solo; do
        train t --sim 4 --steps 40 --hidden 8 --average gradient --estimator carry --straggle 10 --quorum "$quorum"
        ok "quorums: $quorum ends" ended t 60
        ms+=("$(figure t round_ms)")
        ok "quorums: $quorum: $(figure t contributors) of 4 contribute" \
            awk -v n="$(figure t contributors)" -v q="$quorum" 'BEGIN { exit !(n >= 1 && (q == "all") == (n >= 4)) }'
        ok "quorums: $quorum learns, to $(figure t final_accuracy)" \
            awk -v a="$(figure t final_accuracy)" 'BEGIN { exit !(a > 0.3) }'
    done
    ok "quorums: the slow one sets the pace of all only (${ms[*]} ms)" \
        awk -v a="${ms[0]}" -v m="${ms[1]}" -v s="${ms[2]}" 'BEGIN { exit !(a >= 200 && m < 0.6 * a && s < 60 && s < m) }'
    local loss=() how
    for how in carry nodes; do
        train t --sim 4 --steps 10 --hidden 8 --average gradient --straggle 10 --loss 0.3 --estimator $how
        ok "quorums: estimator $how ends" ended t 60
        loss+=("$(figure t final_loss)")
    done
    ok "quorums: estimators carry and nodes are two at a pace of their own, too (${loss[*]})" [ "${loss[0]}" != "${loss[1]}" ]
    train t --sim 4 --steps 10 --hidden 8 --average gradient --straggle 10 --sites 2 --codec topk --ef plain --keep auto
    ok "quorums: --keep auto ends" ended t 60
    ok "quorums: --keep auto counts there as well (inside: $(figure t keep_inside))" [ "$(figure t keep_inside)" = 1.0000 ]
    train t --average gradient --quorum solo
    ok "quorums: what would be lost" ended t 30
    ok "quorums: is refused (code $code)" eval '[ "$code" = 2 ] && said t.err "^sleet-train: --quorum would lose late gradients"'
}

# Simulated nodes die for 4 s each and start anew: a group goes on without at the deadline of 2 s, all-reduce over all waits.
deaths_case() {
    local seconds
    train t --sim 4 --steps 40 --hidden 8 --strategy moshpit:2,2 --step-time 0.5 --kill 5,4
    ok "deaths: a job in groups ends" ended t 60
    ok "deaths: $(figure t kills) nodes died, the longest wait is $(figure t longest_wait_s) s" \
        awk -v k="$(figure t kills)" -v w="$(figure t longest_wait_s)" 'BEGIN { exit !(k >= 3 && w <= 2.1) }'
    ok "deaths: all are back in the end, and learn to $(figure t final_accuracy)" \
        awk -v a="$(figure t final_accuracy)" 'BEGIN { exit !(a > 0.3) }'
    seconds=$(figure t virtual_s)
    train t --sim 4 --steps 40 --hidden 8 --blocking --step-time 0.5 --kill 5,4
    ok "deaths: all-reduce ends as well" ended t 60
    ok "deaths: and stalls while one is dead, in all $(figure t virtual_s) s instead of $seconds" \
        awk -v w="$(figure t longest_wait_s)" -v a="$(figure t virtual_s)" -v b="$seconds" 'BEGIN { exit !(w >= 4 && a > b + 2) }'
}

# ---- the same bits -----------------------------------------------------------------

resume_case() {
    local how what
    for how in "--average none --epochs 3" "--sim 1 --epochs 3 --every 5 --outer nesterov" \
        "--sim 1 --epochs 3 --trigger selsync --delta 0.02" "--average none --model cnn-bn --epochs 3" \
        "--average none --model charlm --data $work/text --steps 150 --batch 8"; do
        what="resume: ${how//--/}"
        what=${what/"$work/"/}
        rm -f "$work"/*.ckpt
        # shellcheck disable=SC2086 # words
        train whole $how --checkpoint "$work/whole.ckpt" --checkpoint-every 7
        ok "$what: a run to the end" ended whole 60
        # shellcheck disable=SC2086
        train half $how --checkpoint "$work/half.ckpt" --checkpoint-every 7
        ok "$what: another one is under way" until_true 60 said half.out '"step":2[0-9],'
        kill_hard half
        ok "$what: it was killed before its end" eval '! said half.out "\"event\":\"done\""'
        # shellcheck disable=SC2086
        train half $how --checkpoint "$work/half.ckpt" --checkpoint-every 7 --resume
        ok "$what: resumed, it ends" ended half 60
        ok "$what: exit code 0 (was $code)" [ "$code" = 0 ]
        ok "$what: $(sed -n 's/sleet-train: //; /^resumed/p' "$work/half.err" | sed "s|$work/||")" \
            said half.err 'resumed from .*half.ckpt at step [0-9]*[1-9][0-9]* of'
        ok "$what: with the same state, bit by bit" cmp "$work/whole.ckpt" "$work/half.ckpt"
        ok "$what: and the same figures" [ "$(done_line whole)" = "$(done_line half)" ]
        ok "$what: no temporary file is left" eval '[ -z "$(ls "$work" | grep tmp)" ]'
    done
}

# Ended on purpose, each method goes on with the state that it had.
stops_case() {
    local how what at
    for how in "--average none --steps 40 --optimizer adamw --lr 0.003 --clip-norm 1 --warm-up 20" \
        "--average none --steps 40 --model mlp-si" "--sim 1 --steps 40 --average owner --optimizer adamw --lr 0.003" \
        "--sim 1 --steps 40 --every 5 --outer nesterov --slices 2 --slice-members 1" \
        "--sim 1 --steps 40 --every auto --step-time 0.05" "--sim 1 --steps 60 --batch-control --slow 3:1" \
        "--sim 1 --epochs 2 --partition 1"; do
        what="stops: ${how//--/}" at=33
        [[ $how != *partition* ]] || at=50
        rm -f "$work"/*.ckpt
        # shellcheck disable=SC2086 # words
        train whole $how --hidden 16,16 --checkpoint "$work/whole.ckpt"
        # shellcheck disable=SC2086
        train half $how --hidden 16,16 --checkpoint "$work/half.ckpt" --stop-at $at
        ok "$what: one run to the end, and one that stops" eval 'ended whole 60 && ended half 60'
        ok "$what: it says so (code $code): $(tail -n 1 "$work/half.out")" eval \
            '[ "$code" = 0 ] && said half.out "\"event\":\"stopped\",\"step\":$at"'
        # shellcheck disable=SC2086
        train half $how --hidden 16,16 --checkpoint "$work/half.ckpt" --resume
        ok "$what: resumed, it ends" ended half 60
        ok "$what: with the same state, bit by bit" cmp "$work/whole.ckpt" "$work/half.ckpt"
        ok "$what: and the same score" [ "$(figure whole averaged_accuracy)" = "$(figure half averaged_accuracy)" ]
    done
    left_out stops
    bounded_batch stops
    within_a_phase "stops: between outer steps"
    within_a_phase "stops: with slices of a node that never came" --shard 0/2 --min-nodes 1 --slices 4 --slice-members 1 \
        --optimizer adamw --lr 0.003
}

# left_out WHAT: what a sparse codec left out of gradients among daemons goes to the file and from there to the daemon.
left_out() {
    local i what="$1: what was left out" how=(--average gradient --codec topk --ef plain --hidden 8 --steps 60)
    host=127.0.0.1
    rm -f "$work"/*.ckpt
    pair --
    for i in a b; do
        train "t$i" "${how[@]}" --control "$work/$i.sock" --shard "$([ $i = a ] && echo 0 || echo 1)/2" --min-nodes 2 \
            --checkpoint "$work/$i.ckpt" --stop-at 30
    done
    for i in a b; do ok "$what: $i stops" ended "t$i" 60; done
    # The file ends with it, 6,370 parameters of 4 bytes, and a sum of 8.
    rest() { tail -c 25488 "$work/$1" | head -c 25480; } # FILE
    ok "$what: there is some" [ "$(rest a.ckpt | tr -d '\0' | wc -c)" -gt 1000 ]
    cp "$work/a.ckpt" "$work/before"
    train ta "${how[@]}" --control "$work/a.sock" --shard 0/2 --min-nodes 1 --state-wait 0 --checkpoint "$work/a.ckpt" --stop-at 30 --resume
    ok "$what: a comes again, and stops at once" eval 'ended ta 60 && said ta.err "resumed from"'
    ok "$what: it has the same, bit by bit" cmp "$work/a.ckpt" "$work/before"
    cp "$work/b.ckpt" "$work/before"
    for i in a b; do
        train "t$i" "${how[@]}" --control "$work/$i.sock" --shard "$([ $i = a ] && echo 0 || echo 1)/2" --min-nodes 2 \
            --checkpoint "$work/$i.ckpt" --stop-at 36 --resume
    done
    for i in a b; do ok "$what: both come again, $i" ended "t$i" 60; done
    ok "$what: both have a say in the next six rounds: b has left out something else" eval \
        '[ "$(rest b.ckpt | cksum)" != "$(rest before | cksum)" ] && [ "$(rest b.ckpt | tr -d "\0" | wc -c)" -gt 1000 ]'
    stop a b
}

# A checkpoint's batch is bounded by what this run has room for.
bounded_batch() {
    local what="$1: a batch of other bounds"
    run() {
        keep job "$ctl" run -n 2 -- "$build/sleet-train" --json --data "$data" --limit 3000 --hidden 8 --steps 200 --batch-control \
            --global-batch 96 --batch-every 10 --slow 1,20 --checkpoint "$work/{i}.ckpt" --stop-at 40 "$@"
        ended job 60
    }
    rm -f "$work"/*.ckpt
    ok "$what: two nodes of unlike speed" run --min-nodes 2
    ok "$what: the fast one has more than 49 of 96" \
        at_least "$(sed -n 's/^\[0\].*"stopped".*"batch":\([0-9]*\).*/\1/p' "$work/job.out")" 50
    ok "$what: again, with less room" run --min-nodes 1 --state-wait 0 --resume --batch-max 49
    ok "$what: it has what there is room for" said job.out '^\[0\].*"stopped".*"batch":49,'
}

# state NAME: a sum of all parts of a checkpoint but the first, which has times in it, and of nothing else.
state() {
    local file=$work/$1.ckpt settings first
    settings=$(od -An -tu4 -j12 -N4 "$file") first=$(od -An -tu8 -j40 -N8 "$file")
    tail -c "+$((40 + 6 * 8 + settings + first + 1))" "$file" | head -c -8 | cksum
}

# within_a_phase WHAT OPTIONS...: stopped between two rounds of outer steps, a node among daemons keeps the local steps that
# it made since the last one.
within_a_phase() {
    local what=$1
    shift
    local how=(--steps 40 --hidden 16,16 --every 5 --outer nesterov "$@")
    # run NAME OPTIONS...: a daemon and its trainer.
    run() {
        local name=$1
        shift
        keep "$name" "$ctl" run -n 1 -- "$build/sleet-train" --data "$data" --limit 3000 "${how[@]}" --checkpoint "$work/$name.ckpt" "$@"
    }
    rm -f "$work"/*.ckpt
    run whole
    run half --stop-at 17
    ok "$what: one run to the end, and one that stops" eval 'ended whole 60 && ended half 60 && said half.out "stopped behind step 17 of 40"'
    run half --resume
    ok "$what: resumed, it ends" ended half 60
    ok "$what: with the same state, bit by bit" [ "$(state whole)" = "$(state half)" ]
}

# ---- what is refused -----------------------------------------------------------------

# not_resumed WHAT PATTERN FILE OPTIONS...: ended with a sentence that names FILE, which is kept.
not_resumed() {
    local what=$1 pattern=$2 file=$3
    shift 3
    cp "$file" "$work/copy"
    train r --average none --epochs 1 --checkpoint "$file" "$@"
    ok "refuse: $what" ended r 30
    ok "refuse: $what: exit code 1 (was $code)" [ "$code" = 1 ]
    ok "refuse: $what: one sentence names the file" eval \
        '[ "$(grep -c "^sleet-train: .*$file" "$work/r.err")" = 1 ] && said r.err "$pattern"'
    ok "refuse: $what: nothing was trained" eval '! said r.out event'
    ok "refuse: $what: the file is as it was" cmp "$file" "$work/copy"
}

# idle PATTERN OPTIONS...: one of these would do nothing: a sentence says so.
idle() {
    local pattern=$1
    shift
    train r "$@"
    ok "refuse: $* ends" ended r 30
    ok "refuse: $*: $(sed 's/sleet-train: //' "$work/r.err") (code $code)" eval '[ "$code" = 2 ] && said r.err "^sleet-train: .*$pattern"'
}

refuse_case() {
    local good=$work/good.ckpt
    rm -f "$work"/*.ckpt
    train r --average none --epochs 1 --checkpoint "$good"
    ended r 30
    not_resumed "an old file without --resume" 'add --resume' "$good"
    not_resumed "another batch" 'with batch = 64, this run has batch = 32' "$good" --resume --batch 32
    not_resumed "gradients" 'with average = none, this run has average = gradient' "$good" --resume --average gradient --sim 1
    not_resumed "another model" 'model = MLP .* this run has model = CNN' "$good" --resume --model cnn
    not_resumed "other data" 'with data = 3000 samples' "$good" --resume --limit 2900
    cp "$good" "$work/other.ckpt"
    train r --average none --epochs 1 --checkpoint "$work/other.ckpt" --resume --shard 1/2
    ok "refuse: but one of another number of nodes is taken over" ended r 30
    ok "refuse: with the step for the same samples (exit code $code)" eval \
        '[ "$code" = 0 ] && said r.err "shard 0 of 1, this node has 1 of 2: .* step 46 there is step 23 here"'
    head -c 5000 "$good" >"$work/short.ckpt"
    not_resumed "a truncated file" 'is truncated: 5000 bytes' "$work/short.ckpt" --resume
    printf 'x' | dd of="$good" bs=1 seek=9999 conv=notrunc status=none
    not_resumed "a damaged file" 'is damaged' "$good" --resume
    cp "$0" "$work/foreign.ckpt"
    not_resumed "a foreign file" 'is not a checkpoint' "$work/foreign.ckpt" --resume
    train r --average none --checkpoint "$work/none/a.ckpt"
    ok "refuse: a folder that is not there" ended r 30
    ok "refuse: at once, before a step" eval 'said r.err "none/a.ckpt: No such file" && ! said r.out event'
    printf '\001' | dd of="$work/other.ckpt" bs=1 seek=8 conv=notrunc status=none
    not_resumed "a file of an earlier build" 'has format 1, this sleet-train reads format 2' "$work/other.ckpt" --resume
    idle "stop-at need --checkpoint" --stop-at 5
    idle "--ef-alpha .* needs that" --average gradient --ef plain --ef-alpha 0.5
    idle "--momentum is for" --optimizer adamw --momentum 0.5
    idle "--beta1 and --beta2 are for" --beta2 0.9
    idle "are for a daemon" --sim 2 --min-nodes 2
    idle "are for a daemon" --average none --state-wait 1
    idle "--shard is of one node" --sim 2 --shard 0/2
    idle "are not for --average owner" --average owner --publish-every 5
    idle "say how nodes average" --average none --codec i8
    idle "--clip is what owners do" --sim 2 --strategy ring --clip 4
    idle "--burst says how --loss comes" --sim 2 --burst 4
    idle "--batch is a node's part" --batch-control --batch 32 --global-batch 64
    idle "--straggle says how long" --sim 2 --straggle 5 --slow 1,2
    idle "--kill and --blocking are for --sim" --kill 5 --step-time 1
    idle "--kill needs --step-time" --sim 2 --kill 5
    idle "is back before the next" --sim 2 --kill 5,6 --step-time 1
    idle "--kill and --blocking do without .* --dies" --sim 4 --kill 5 --step-time 1 --dies 5
    idle "--kill and --blocking do without .* --dies" --sim 4 --blocking --step-time 1 --dies 5
    idle "--blocking is all-reduce over all" --sim 4 --blocking --strategy ring
}

# ---- in a job --------------------------------------------------------------------------

# The first round has the gradients of all: of shards by label, one node's alone would lead away from the others' classes.
first_case() {
    local options=(--shards label --average gradient --steps 3 --limit 3000) loss
    train sim --sim 4 "${options[@]}"
    ok "first: a simulation" ended sim 30
    keep job env PATH="$build:$PATH" "$ctl" run -n 4 -- sleet-train --json --data "$data" --min-nodes 4 "${options[@]}"
    ok "first: a job of daemons" ended job 60
    loss=$(awk -F'"loss":' '/"step":2,/ { sum += $2 + 0; n++ } END { if (n == 4) print sum / n }' "$work/job.out")
    ok "first: the losses before the second step are the same ($loss)" awk -v a="$loss" \
        -v b="$(awk -F'"loss":' '/"step":2,/ { print $2 + 0 }' "$work/sim.out")" 'BEGIN { exit !(a > 0.9 * b && a < 1.1 * b) }'
}

# in_job WHAT OPTIONS...: two trainers, one of which is killed and resumes.
in_job() {
    local i what=$1
    shift
    host=127.0.0.1
    rm -f "$work"/*.ckpt
    pair --
    for i in a b; do
        train "t$i" --control "$work/$i.sock" --shard "$([ $i = a ] && echo 0 || echo 1)/2" \
            --checkpoint "$work/$i.ckpt" --epochs 12 --min-nodes 2 --checkpoint-every 10 "$@"
    done
    ok "$what: both train" until_true 60 eval 'said ta.out "\"step\":3[0-9]," && said tb.out "\"step\":3[0-9],"'
    kill_hard tb
    train tb --control "$work/b.sock" --shard 1/2 --checkpoint "$work/b.ckpt" --epochs 12 --min-nodes 2 \
        --checkpoint-every 10 "$@" --resume
    ok "$what: a killed trainer resumes" until_true 10 said tb.err 'resumed from .*b.ckpt at step [1-9]'
    ok "$what: and takes part again" until_true 30 said tb.out '"event":"step".*"group":2,"coverage":(1|0\.(5[1-9]|[6-9]))'
    ok "$what: it ends" ended tb 120
    ok "$what: exit code 0 (was $code)" [ "$code" = 0 ]
    ok "$what: the other one ends" ended ta 120
    ok "$what: exit code 0 (was $code)" [ "$code" = 0 ]
    ok "$what: node a took $(figure ta steps) steps for the 276 of the schedule" at_most "$(figure ta steps)" 290
    for i in a b; do
        ok "$what: node $i is done, test accuracy $(figure t$i averaged_accuracy)" \
            at_least "$(figure t$i averaged_accuracy)" 0.7
    done
    stop a b
}

# Two of three nodes: their parts are merged, and they go on with the whole.
parts_case() {
    local i
    host=127.0.0.1
    pair --
    for i in 0 1; do
        train "t$i" --control "$work/$([ $i = 0 ] && echo a || echo b).sock" --shard $i/3 --min-nodes 2 \
            --hidden 32,32 --epochs 6 --partition 3
    done
    for i in 0 1; do
        ok "parts: node $i ends" ended t$i 60
        ok "parts: exit code 0 (was $code)" [ "$code" = 0 ]
        ok "parts: two of three were merged: $(sed -n '/"merged"/p' "$work/t$i.out")" \
            said t$i.out '"event":"merged","step":45,"parts":2,"of":3,'
        ok "parts: it learnt on with the other one" said t$i.out '"event":"epoch","epoch":6,"step":90.*"group":2,'
        ok "parts: test accuracy $(figure t$i averaged_accuracy)" at_least "$(figure t$i averaged_accuracy)" 0.7
    done
    ok "parts: both have one model" [ "$(figure t0 averaged_accuracy)" = "$(figure t1 averaged_accuracy)" ]
    stop a b
}

job_case() {
    in_job "job" --model cnn-bn
    in_job "job, every 5, spread" --every 5 --spread 4 --step-time 0.01
    in_job "job, selsync" --trigger selsync --delta 0.02 --step-time 0.01
    in_job "job, gradients" --average gradient --optimizer adamw --lr 0.003 --clip-norm 1 --step-time 0.02
    in_job "job, owners" --average owner --step-time 0.02
    in_job "job, owners, carry" --average owner --estimator carry --step-time 0.02
    in_job "job, outer steps" --every 5 --outer nesterov --outer-momentum 0.5 --step-time 0.02
    in_job "job, slices" --every 5 --outer nesterov --outer-momentum 0.5 --step-time 0.02 --slices 4 --slice-members 1
}

[ $# -gt 0 ] || set -- tasks triggers quorums deaths resume stops refuse parts first job
run_cases "$@"
