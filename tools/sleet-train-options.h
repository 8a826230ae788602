/* sleet-train-options.h - the options by name, and what takes the value of one. */
#ifndef SLEET_TRAIN_OPTIONS_H
#define SLEET_TRAIN_OPTIONS_H
#include "sleet-train.h"

#define STRATEGY_NAME(name, value, text, numbers) " " text
/* X(id, name, argument or NULL, help) */
#define OPTION_MAP(X)                                                                       \
    X(O_RECIPE, "recipe", "NAME", "options of a recipe; those given beside it win; list: what there is") \
    X(O_DATA, "data", "PATH", "images: folder of IDX files (/usr/share/datasets/fashion-mnist); charlm: text file (the program bible)") \
    X(O_LIMIT, "limit", "N", "use only the first N samples (all)")                          \
    X(O_SHARDS, "shards", "KIND", "iid, dirichlet:A or label (iid)")                        \
    X(O_SHARD, "shard", "I/N", "this node's shard, I from 0 (SLEET_NODE/SLEET_NODES)") \
    X(O_EPOCHS, "epochs", "N", "passes over the training samples, all nodes together (2)")  \
    X(O_PARTITION, "partition", "N", "mlp: the first N epochs in parts of the model, a node each, without a network (0)") \
    X(O_ABSENT, "absent", "N", "simulation: the last N nodes miss the merge of the parts (0)") \
    X(O_STEPS, "steps", "N", "a node's steps in all, instead of --epochs")                  \
    X(O_BATCH, "batch", "N", "samples of a node's step (64; charlm 16)")                    \
    X(O_MODEL, "model", "M", "mlp, mlp-si (scale-invariant), cnn, cnn-bn (with BatchNorm), or charlm, which learns a text (mlp)") \
    X(O_STATISTICS, "bn-stats", "S", "cnn-bn: running statistics are of all nodes (average) or each its own (local) (average)") \
    X(O_HIDDEN, "hidden", "N,...", "widths of the dense hidden layers, 0 for none (64; charlm: its width, 96)") \
    X(O_OPTIMIZER, "optimizer", "O", "sgd, nesterov, sgd-si (for mlp-si) or adamw (sgd; mlp-si sgd-si; charlm adamw)") \
    X(O_LR, "lr", "X", "peak learning rate (sgd 0.1, sgd-si 1000, adamw 0.001; charlm 0.003)") \
    X(O_MOMENTUM, "momentum", "X", "sgd, nesterov (0.9)")                                             \
    X(O_BETA1, "beta1", "X", "adamw: decay of the first moment (0.9)")                      \
    X(O_BETA2, "beta2", "X", "adamw: decay of the second moment (0.999)")                   \
    X(O_REFRESH, "refresh-momentum", NULL, "average a sixteenth of the moments each round, not all") \
    X(O_LOCAL_MOMENTS, "local-momentum", NULL, "model: the moments stay with their node")    \
    X(O_DECAY, "weight-decay", "X", "(0; sgd-si 0.000003)")                                \
    X(O_CLIP_NORM, "clip-norm", "X", "shorten gradients that are longer than X; 0: none (0; charlm 1)") \
    X(O_LOSS_SCALE, "loss-scale", "X", "multiply the loss that is learnt from by X (1)")    \
    X(O_INIT_SCALE, "init-scale", "X", "multiply the parameters at the start by X (1)")     \
    X(O_SCHEDULE, "schedule", "S", "cosine or linear, to 0 at the last step, or constant (cosine)")      \
    X(O_WARMUP, "warm-up", "N", "steps in which the rate rises (0; charlm 100)")            \
    X(O_SEED, "seed", "N", "of weights, shards and order (1)")                              \
    X(O_EVALUATE, "evaluate", "N", "test every N steps (once an epoch)")                    \
    X(O_AVERAGE, "average", "WHAT", "model, gradient, owner or none (model)")                      \
    X(O_EVERY, "every", "N", "model: average behind every N-th step, or auto: as often as takes a tenth of the time (1)") \
    X(O_TRIGGER, "trigger", "T", "model: average behind steps that --every says, or (selsync) whose gradient changes (every)") \
    X(O_DELTA, "delta", "X", "selsync: the relative change of the gradient's norm (0.3)")   \
    X(O_WINDOW, "window", "N", "selsync: over so many steps, 1 to 100 (25)")                \
    X(O_MAX_LOCAL, "max-local", "N", "selsync: local steps in a row at most; 0: any number (500)") \
    X(O_SPREAD, "spread", "K", "model: each round averages one part in K, in turn, 1 to 64 (1)") \
    X(O_OUTER, "outer", "O", "model: take the average as it is (none), or a step of nesterov towards it, as DiLoCo does (none)") \
    X(O_OUTER_LR, "outer-lr", "X", "(0.7; with --slices less may be better)")                                                 \
    X(O_OUTER_MOMENTUM, "outer-momentum", "X", "(0.9)")                                     \
    X(O_SLICES, "slices", "S", "outer: a node trains some of S slices of the model only (1)") \
    X(O_SLICE_MEMBERS, "slice-members", "M", "nodes that train a slice (2)")                \
    X(O_BATCH_CONTROL, "batch-control", NULL, "batches follow measured step times, their sum stays (OmniLearn)") \
    X(O_GLOBAL_BATCH, "global-batch", "N", "batch-control: samples of a step of all nodes (batch times nodes)") \
    X(O_BATCH_MIN, "batch-min", "N", "batch-control: of a node at least (1)")               \
    X(O_BATCH_MAX, "batch-max", "N", "batch-control: of a node at most (4 parts)")          \
    X(O_BATCH_EVERY, "batch-every", "N", "batch-control: steps from table to table (20)")   \
    X(O_DEADBAND, "deadband", "X", "batch-control: step times that near their mean stay (0.1)") \
    X(O_ON_RESIZE, "on-resize", "R", "batch-control, when nodes come or go: constant-batch, linear-lr or keep (constant-batch)") \
    X(O_SLOW, "slow", "F,...", "steps last F times longer, for each node; :F,... in the second half (1)") \
    X(O_ESTIMATOR, "estimator", "E", "gradient: ratio, expected, carry or nodes: what comes over their number (ratio)") \
    X(O_TWICE, "twice", "X", "gradient: send the share X of the fragments twice, those of most energy (0)") \
    X(O_STRATEGY, "strategy", "NAME[:A[,B]]", "who averages with whom, or graph:FILE, its edges (rps):" SLEET_STRATEGY_MAP(STRATEGY_NAME)) \
    X(O_CODEC, "codec", "C", "how gradient or model travels: f32, bf16, i8, rot1 ... (f32)") \
    X(O_KEEP, "keep", "P", "topk: share of the elements that travel, or auto[:P]: all over fast links, P at least (0.01)")                \
    X(O_EF, "ef", "E", "gradient: error feedback, none, plain or step-ahead (none)")        \
    X(O_EF_ALPHA, "ef-alpha", "A", "how far step-ahead goes, 0 to 1 (1)")                   \
    X(O_EF_AVERAGE, "ef-average", "Q", "average what was left out every Q steps; 0: never (0)") \
    X(O_CONTROL, "control", "PATH", "socket of the local sleetd (SLEET_CONTROL)")           \
    X(O_MIN_NODES, "min-nodes", "N", "wait for N trainers before the first step (SLEET_NODES, or 1)")       \
    X(O_MIN_WAIT, "min-wait", "S", "for at most S seconds (30)")                            \
    X(O_STEP_TIME, "step-time", "S", "let a step take S seconds at least, as on a slower machine (0)") \
    X(O_DEADLINE, "deadline", "S", "longest wait of a round in seconds (2)")                \
    X(O_QUORUM, "quorum", "Q", "rounds wait for: all, majority (one drawn node), solo (the first) or N nodes (all)") \
    X(O_MAX_ASYNC, "max-async", "N", "--quorum: after N rounds one waits for all (64)")      \
    X(O_SIM, "sim", "N", "simulate N nodes in this process instead")                        \
    X(O_LOSS, "loss", "P", "simulation: fraction of datagrams lost (0)")                    \
    X(O_BURST, "burst", "L", "simulation: lose in bursts of mean length L (independent)")   \
    X(O_SITES, "sites", "K[,M[,D]]", "simulation: K sites of nodes, 100 Mbit/s inside, links of M Mbit/s and D ms between them (M 2, D 40)") \
    X(O_NO_REPAIR, "no-repair", NULL, "simulation: do not repair lost results")             \
    X(O_CLIP, "clip", "C", "simulation: bound what lies C times further off than usual (0: no)") \
    X(O_STRAGGLE, "straggle", "F", "simulation: each node at its own pace, of each round's steps one takes F times --step-time (0.02); uniform: each 0 to 10 times") \
    X(O_KILL, "kill", "S[,D]", "simulation: every S seconds a node dies, and starts anew D seconds later (D 5)") \
    X(O_BLOCKING, "blocking", NULL, "simulation: a step waits until a round has all nodes, exactly (plain all-reduce)") \
    X(O_DIES, "dies", "N", "simulation: the last node is killed behind step N (never)")     \
    X(O_LIE, "lie", "X", "simulation: the last node sends its values times X (1)")          \
    X(O_CHECKPOINT, "checkpoint", "FILE", "keep the run's state in FILE, one a node")       \
    X(O_CHECKPOINT_EVERY, "checkpoint-every", "STEPS", "how often (once an epoch)")         \
    X(O_RESUME, "resume", NULL, "go on from the checkpoint")                                \
    X(O_STOP_AT, "stop-at", "STEP", "end behind that step, with a checkpoint to go on from") \
    X(O_PUBLISH_EVERY, "publish-every", "STEPS", "let nodes that join fetch the state of every so many steps; 0: no (20)") \
    X(O_STATE_WAIT, "state-wait", "S", "fetch the job's state at the start, in at most S seconds; 0: no (30)") \
    X(O_JSON, "json", NULL, "one JSON object a line: step, epoch, done")                    \
    X(O_HELP, "help", NULL, "show this")

enum option_id {
    O_FIRST = 256,
#define OPTION_X(id, name, argument, help) id,
    OPTION_MAP(OPTION_X)
#undef OPTION_X
};

/* Take one option; false when its value is out of range. */
bool train_option_take(struct train_options *, enum option_id, const char *value);
#endif
