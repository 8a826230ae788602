/* What did not get through goes with the next contribution (estimator carry).
 *
 *     contribution = weight * value + residual, sent as that over the weight, with its weight
 *
 * When a round closes each fragment's contribution has one of three fates.  The commit's mask shows it in:
 * the residual is what its codec lost.  The commit is there and does not show it, or it was never sent: it is the residual.
 * The commit was not seen: what the codec lost is the residual, the rest is frozen, neither sent nor dropped, until a late commit,
 * or where commits stay with their owners a receipt, decides; when the
 * round leaves the window it returns, counted, for it may have been in.
 *
 * Invariant: of everything that was contributed each part is in commits, in the residual, frozen, or in `shed`.
 * The residual is the trainer's memory, which the engine reads and writes while a round is open only; what
 * is decided in between waits for the next start.  It lives as long as the trainer, whoever comes and goes.
 *
 * What the codec of a commit loses is in the residual of its owner, times the weight of the commit.
 *
 * Bounds (no residual may outgrow what it is added to): after CARRY_PATIENCE rounds without being in a commit
 * it decays, and its norm is at most CARRY_MOST times the running norm of the fragment's contributions, with a
 * codec that keeps a part of the elements as many times more as it keeps fewer.  Where a quorum leaves contributions
 * out on purpose both are twice the rounds that may pass so, max_async.
 * Error feedback: Seide et al. 2014, Karimireddy et al. (arXiv 1901.09847). */
#ifndef ROUND_CARRY_H
#define ROUND_CARRY_H
#include "base/stats.h"
#include "tensor/layout.h"

#define CARRY_PATIENCE 8 /* rounds */
#define CARRY_DECAY 0.95 /* a round from then on */
#define CARRY_MOST 4.0
#define CARRY_FROZEN 2
#define CARRY_MEMORY 16 /* rounds that the running norm is a mean of */

struct kept { /* of a fragment, in one round */
    struct kept *next;
    uint64_t round;
    bool back; /* it returns with the next start */
    float x[FRAGMENT_ELEMENTS];
};

struct carried { /* of a fragment */
    struct kept *kept;
    float usual, norm; /* of contributions without the residual; of the residual */
    uint32_t unserved; /* rounds in a row */
};

/* Zero-filled: nothing is carried. */
struct carry {
    struct carried *of; /* by fragment, made with the first round */
    uint64_t frozen;    /* of struct kept, at most CARRY_FROZEN a fragment on the average */
    engine_residual sum;
};

void carry_drop(struct carry *, uint32_t fragments);
uint64_t carry_bytes_bound(const struct layout *);
#endif
