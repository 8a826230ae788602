/* round.h - the life of one round of one set on one node.
 *
 * Two roles in one object.  As owner the node adds contributions to the runs
 * it owns, commits each fragment once and serves the commits (gather).  As
 * member, once its trainer has joined, it sends its own fragments to their
 * owners (scatter) and takes their commits.  The group is pinned when the
 * round is created and never changes.
 *
 * Invariants: a contributor is added to a fragment at most once (mask); a
 * fragment is committed at most once; nothing is written to the result after
 * `closed`, nothing read from the send buffers after `closed`. */
#ifndef ROUND_H
#define ROUND_H
#include "round/set.h"

static inline bool round_scatters(const struct round *r)
{
    return r->exchange != SLEET_ALL_GATHER;
}

static inline bool round_gathers(const struct round *r)
{
    return r->exchange != SLEET_REDUCE_SCATTER;
}

static inline bool round_untouched(const struct round *r, const struct env *e)
{
    return r->quiet_until.ns != 0 && r->quiet_view == e->view->generation;
}

static inline uint32_t group_contributors(const struct group *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++)
        n += g->members[i].contributes;
    return n;
}

/* ---- set.c: the rounds of a set, their window and timers */
/* The rounds of the others that hold the same model. */
struct member_rounds set_others(const struct set *, const struct env *);
uint64_t set_job_round(const struct set *, const struct env *);
/* Is the round that a start would join under way at another's? */
bool set_wanted(const struct set *, const struct env *);
/* Does a round that is kept name that slot of the view? */
bool set_refers_to(const struct set *, int slot);
struct round *set_find(const struct set *, uint64_t number);
/* The round `number` with its group pinned, made if it is new; NULL where it cannot be. */
struct round *set_pin(struct set *, const struct env *, uint64_t number, sleet_time now);
/* The same for a round that a datagram names; NULL outside the window. */
struct round *set_round(struct set *, const struct env *, uint64_t number, sleet_time now);
void set_retire(struct set *, const struct env *, uint32_t slot);
void set_expire(struct set *, const struct env *, sleet_time now);
sleet_time set_deadline(const struct set *, const struct env *, sleet_time now);
void set_fini(struct set *);

/* ---- start.c: which round to join, with whom, or alone */
/* The tables hold one array a tensor and are copied; see engine_start(). */
int set_start(struct set *, const struct env *, const engine_start_args *, sleet_time now);
/* Pin a group and join, or answer at once where there is nobody. */
void set_retry_start(struct set *, const struct env *, sleet_time now);
/* A joiner that waits takes the round whose commits it is sent. */
void set_join_served(struct set *, struct round *, const struct env *, sleet_time now);
void set_withdraw(struct set *, const struct env *, sleet_time now);
void set_drop_pending(struct set *);
sleet_time set_pending_deadline(const struct set *);

/* ---- collect.c: a joiner's model, brought by more than one round */
/* Count in what a round has brought, `whole` or not.  True when nothing of the model is
 * missing any more; *news: there was more than in the round before. */
bool collect_round(struct set *, const struct round *, const struct env *, bool whole, bool *news);
void collect_drop(struct collect *);

/* ---- apart.c: members cut apart, and lineages that meet */
/* See who is there and draw the conclusions; cheap where nothing has changed. */
void set_look(struct set *, const struct env *, sleet_time now);
sleet_time set_look_deadline(const struct set *);
/* Cut off: starts are answered without progress. */
bool set_parked(const struct set *, const struct env *);
/* The node said good-bye, or was put out. */
void set_forget(struct set *, uint64_t node_id);
/* The operator's word: those who are here are all there are.  True when that changes something. */
bool set_resume(struct set *, const struct env *, sleet_time now);
/* A member has told its state, `before` is what it said last. */
void set_meet(struct set *, const struct env *, const struct member_set *before,
              const struct member_set *, sleet_time now);
/* A round with others, or among those that are left, has covered little or enough. */
void set_note_coverage(struct set *, const struct env *, bool low);
void set_isolated_joins(struct set *, const struct env *);
/* To another lineage, where that has been decided: with no round open, before the number of the next
 * one is chosen. */
void set_change_over(struct set *, const struct env *);

/* ---- close.c: the result made whole, the report */
void set_close(struct set *, struct round *, const struct env *, int error, sleet_time now);
void set_report(struct set *, int error, const sleet_report *);
/* Bits of the runs that this node owns, all of them where there is no round; how many are new. */
uint32_t set_tell_owned(const struct set *, uint64_t *owned, const struct round *);
/* What a fragment without a commit is: the node's own values; but 0 of what is added to something, unless
 * it is `alone` in the job. */
void set_fill_fragment(const struct set *, uint32_t fragment, bool alone, const void *const *send,
                       void *const *result);
/* Be one of those; `more`: contributions that they have averaged since they said so. */
void set_take_lineage(struct set *, const struct member_set *, uint64_t more);
/* When to begin with the end of a round that nothing else ends: its deadline, less what the
 * filling of a large set may take. */
sleet_time set_last_call(const struct set *, const struct round *);
sleet_time set_fill_by(sleet_time started, sleet_time deadline, uint32_t fragments);

/* ---- group.c: who averages with whom */
/* The heaviest lineage of the established members; false when there is none. */
bool set_heaviest_lineage(const struct set *, const struct env *, uint64_t *lineage);
bool set_may_found(const struct set *, const struct env *, sleet_time now);
bool set_group(const struct set *, const struct env *, uint64_t number, struct plan *);
/* More trainers than a group has, of a set whose replicas must all take the same step. */
bool set_too_many(const struct set *, const struct env *);

uint32_t set_expected(const struct set *, const struct env *, const struct group *, uint64_t number,
                      sleet_time now);
/* Its trainer took part in one of the last K rounds before `number`, as far as one knows. */
/* Is a round of a part of the view still to be held with those that it has: with one of them, or, of owners, with all? */
bool set_still_met(const struct set *, const struct env *, const struct group *, bool edges, uint64_t round);
/* By the strategy of that round most members are not met in it. */
bool set_parts(const struct set *, uint64_t number);
bool set_takes_part_lately(const struct set *, const struct env *, const struct member *,
                           uint64_t number);

/* ---- switch.c: see switch.h */
/* The operator's word, "NAME[:A[,B]]".  EINVAL, ELIMIT: *why says it in a sentence. */
int set_switch(struct set *, const struct env *, const char *word, const char **why);
/* What a member has told. */
void set_hear_switch(struct set *, const struct env *, const struct wire_switch *);

/* ---- round.c */
struct round *round_new(const struct layout *, const struct plan *, int self, uint64_t number,
                        sleet_time now);
void round_free(struct round *);
uint64_t round_bytes_bound(const struct layout *, uint32_t members);

/* ---- owner.c */
enum fate { FATE_ACCEPTED, FATE_STALE, FATE_FOREIGN, FATE_CORRUPT, FATE_UNKNOWN_GROUP };
/* Fragment of one of the numbers of this node as owner. */
uint32_t owner_fragment(const struct round *, uint32_t number);
enum fate owner_recv(struct set *, struct round *, const struct env *, uint32_t rank,
                     const struct wire_data *, const struct part *, sleet_time now);
/* The bytes of what was committed under a number. */
const uint8_t *owner_coded(const struct set *, const struct round *, uint32_t number, uint32_t *bytes);
void owner_check(struct set *, struct round *, const struct env *, sleet_time now);
/* Add a member's n values to the sums of a number, to count as the estimator has it. */
void owner_add(const struct set *, struct round *, const struct env *, uint32_t number, uint32_t rank,
               const float *x, double weight, uint32_t n);
bool gather_sent(const struct round *, const struct env *, uint32_t rank);
/* The trainer's buffers go: take the commit of a fragment of the own share, or else add the
 * node's values to its sums. */
void owner_wind_up(struct set *, struct round *, const struct env *, uint32_t fragment);
/* Serve this round's commits no longer. */
void owner_drop_commits(struct round *);
/* Numbers there may be, foreign ones included. */
uint32_t owner_numbers(const struct round *);
/* True while commits wait to be made or taken over into the result. */
bool owner_busy(const struct round *);
sleet_time owner_deadline(const struct set *, const struct round *);

/* ---- edge.c: see edge.h; of rounds with edges */
bool edge_new(struct round *, const struct layout *, const struct plan *); /* false: out of memory */
void edge_free(struct round *);
uint64_t edge_bytes_bound(const struct layout *, uint32_t members);
/* Nodes whose values make up a fragment's result when nothing is missing. */
uint32_t edge_expected(const struct round *);
void edge_join(struct set *, struct round *, const struct env *, sleet_time now);
enum fate edge_recv(struct set *, struct round *, const struct env *, uint32_t rank, const struct wire_data *,
                    const struct part *, sleet_time now);
bool edge_has_data(const struct round *, uint32_t rank);
size_t edge_fill(struct set *, struct round *, const struct env *, uint32_t rank, uint8_t *out, sleet_time now);
void edge_told(struct set *, struct round *, const struct env *, uint32_t rank, const struct wire_summary *,
               sleet_time now);
bool edge_wants(const struct round *, uint32_t rank);
/* Only its word is missing: that it has ours. */
bool edge_wants_word(const struct round *, uint32_t rank);
void edge_tell(const struct set *, struct round *, uint32_t rank, struct wire_summary *, uint8_t *bits);
bool edge_done_with(const struct set *, const struct round *, const struct env *, uint32_t rank);
void edge_check(struct set *, struct round *, const struct env *, sleet_time now);
sleet_time edge_deadline(const struct set *, const struct round *);
bool edge_complete(const struct round *);
/* The round closes: make the result, a slice a call, true when all is done. */
bool edge_finish(struct set *, struct round *);
/* It closes without a result. */
void edge_withdraw(struct set *, struct round *);
/* The word of a neighbour has come after the round had closed: what that decides goes into the next result. */
void edge_decide(struct set *, struct round *, uint32_t rank);
void edge_retire(struct set *, struct round *);
void edge_late_drop(struct set *);

/* ---- low.c: see low.h; of rounds whose edges are of low rank */
/* NULL: out of memory.  The map gets one more user. */
struct low_lane *low_lane_new(struct power_map *);
void low_lanes_free(struct low_lane *);
uint32_t low_fragments(const struct power_map *);
uint32_t low_elements(const struct low_lane *, uint32_t number);
/* The trainer is here: know the own sides, unless an older round's vector is undecided.  True: there is
 * something to send now. */
bool low_open(struct set *, struct round *, uint32_t rank);
const float *low_own(const struct round *, struct low_lane *, uint32_t number);
/* A fragment of the other's vector; false: it is of no use. */
bool low_take(struct set *, struct round *, uint32_t rank, uint32_t number, uint32_t tag, const float *x);
/* Something new is known of who has what.  `shut`: the other has closed the round. */
void low_settle(struct set *, struct round *, uint32_t rank, bool shut);
bool low_pending(const struct edge_lane *);
/* The result is about to be made; where edges are one-sided what is here counts. */
void low_last_call(struct set *, struct round *, uint32_t rank);
/* The result is made, there is to be none, or the round leaves the window. */
void low_close(struct set *, struct round *, uint32_t rank);
void low_withdraw(struct set *, struct round *, uint32_t rank);
void low_retire(struct set *, struct round *, uint32_t rank);
/* Add the step of one that counts to n elements of a tensor. */
void low_apply(const struct low_lane *, uint32_t tensor, uint64_t offset, uint32_t n, double *sum);
void low_drop(struct set *);
uint64_t low_round_bytes_bound(const struct layout *, uint32_t edges); /* of a round's edges, so many */
uint64_t low_bytes_bound(const struct layout *);                       /* what a set keeps of them */

/* ---- wait.c */
/* How long at most, from the first contribution on; of exact rounds the deadline. */
sleet_duration wait_budget(const struct set *, const struct round *);
/* False: there is still something to wait for from those that are missing; own.until says how long. */
bool wait_is_over(struct set *, struct round *, const struct env *, uint64_t missing, sleet_time now);
/* They are waited for no longer, */
void wait_note_cut(struct set *, const struct round *, const struct env *, uint64_t missing);
/* and when they come, the budget learns how long it would have taken. */
void wait_learn(struct set *, const struct round *, const struct env *, sleet_time now);

/* ---- quorum.c: when an owner starts closing */
/* May contributions be left out on purpose? */
bool quorum_leaves_out(const struct set *);
/* Rounds in a row that may close without a member's. */
uint32_t quorum_max_async(const struct set *);
/* Is it a round that waits for all in spite of the quorum? */
bool quorum_is_synchronous(const struct set *, const struct round *);
/* Such a one waits for a member whose trainer was last in round `newest`, as long ago as that may be; */
bool quorum_calls(const struct set *, const struct round *, const struct member_set *, uint64_t newest);
/* but not for those, any longer or again. */
void quorum_give_up(const struct set *, const struct round *, const struct env *, uint64_t missing);
/* Those that the round waits for before it closes are in `over`, the ranks that have nothing more to give;
 * own.turn_at says when time alone may make it so. */
bool quorum_is_in(const struct set *, struct round *, uint64_t over, sleet_time now);
/* How long they are waited for at most. */
sleet_duration quorum_wait(const struct set *, const struct round *);

/* ---- clip.c: see clip.h */
/* Judge a contribution of n finite elements.  True: it is held back, and is not to be added. */
bool clip_suspects(struct set *, struct round *, const struct env *, uint32_t number, uint32_t rank,
                   const float *x, uint32_t n, float weight);
/* The number is about to be committed: add what was held back. */
void clip_settle(struct set *, struct round *, const struct env *, uint32_t number);
/* A commit of n elements is known. */
void clip_committed(struct set *, const struct env *, uint32_t fragment, const float *x, uint32_t n);
/* How many times a commit goes beyond what is allowed: above 1 it is not to be taken. */
double clip_excess(const struct set *, const struct round *, const struct env *, uint32_t fragment,
                   const struct held *, const float *x);
void clip_drop_suspects(struct owner_side *, uint32_t numbers);
void clip_fini(struct clip *);
uint64_t clip_bytes_bound(const struct layout *);
uint64_t clip_round_bytes_bound(const struct layout *, uint32_t members);

/* ---- drift.c */
/* The round is joined: sketch the values that the node comes with. */
void drift_begin(const struct set *, struct round *);
/* The round is over and its result still at hand: keep a sketch of it. */
void drift_note(struct set *, const struct round *);
/* How far the others' values are from the node's, see drift.h. */
struct drift_distance drift_distance(const struct set *, const struct env *);
/* The one to tell, NULL: none yet. */
const struct wire_sketch *drift_told(const struct set *);
/* What a member has told. */
void drift_recv(struct set *, const struct env *, struct member *, const struct wire_sketch *);

/* ---- witness.c */
void witness_note(struct round *, const struct env *, uint32_t owner, uint32_t fragment,
                  float weight, uint64_t mask, const void *values, size_t bytes);
void witness_choose(struct round *, const struct env *);
void witness_fill(const struct round *, uint32_t rank, struct wire_summary *);
void witness_recv(struct round *, uint32_t rank, const struct wire_summary *);
void witness_judge(struct set *, const struct round *, const struct env *);

/* ---- rotated.c: tensors whose codec takes rotated values */
/* Rounds of one turn have one rotation. */
uint64_t rotated_turn(uint64_t round);
bool rotated_tensor(const struct layout *, uint32_t tensor);
/* Rotate the send buffers of a round that was joined, so that they are as they are sent, and the result back; a slice a call, true when
 * all is done. */
bool rotated_forward(const struct set *, struct round *);
bool rotated_back(const struct set *, struct round *);

/* ---- gather.c */
/* `rank` is -1 for a member that is not in the own group. */
enum fate gather_recv(struct set *, struct round *, const struct env *, const struct member *, int rank,
                      const struct wire_data *, const struct part *);
void gather_own(struct set *, struct round *, const struct env *, uint32_t number);
bool gather_done_from(const struct set *, const struct round *, const struct env *, uint32_t rank,
                      sleet_time now);
bool gather_complete(const struct set *, const struct round *, const struct env *, sleet_time now);
/* When time alone may make it complete. */
sleet_time gather_deadline(const struct set *, const struct round *, const struct env *, sleet_time now);

/* ---- known.c: groups that others pinned */
/* NULL when the hash is not known. */
const struct group *set_known_group(const struct set *, const struct round *, uint32_t hash);
void set_learn_group(struct set *, const struct group *);
/* A group that this node pinned itself. */
const struct group *set_pinned_group(const struct set *, uint32_t hash);
/* The member uses that group in this round; true the first time it differs from the own one. */
bool round_note_group(struct round *, uint32_t rank, uint32_t hash);
bool round_disagrees(const struct round *, uint32_t rank);

/* ---- carry.c: see carry.h */
/* The round is joined: what has returned is in the residual. */
void carry_begin(struct set *, struct round *);
/* The node's contribution to a fragment: `x`, or in `sum` with the residual. */
const float *carry_add(const struct set *, const struct round *, uint32_t fragment, const float *x,
                       float sum[static FRAGMENT_ELEMENTS]);
/* The round closes: note the fate of all that was contributed, a slice a call, true when all is done.
 * `withdrawn`: the trainer takes back what has not been sent; in one go. */
bool carry_settle(struct set *, struct round *, bool withdrawn);
/* As its owner the node has committed `x` where the mean was `mean`, of weight `weight`. */
void carry_coded(struct set *, const struct round *, uint32_t fragment, const float *mean, const float *x,
                 uint32_t n, double weight);
/* A commit has come late, with the node's contribution or without. */
void carry_decide(struct set *, const struct round *, uint32_t fragment, bool in);
/* The round leaves the window: what it has not decided returns. */
void carry_retire(struct set *, const struct round *);
/* Ahead of all others, in no round: the values go into the residual. */
void carry_keep(struct set *, float *const *residual, uint32_t fragment, double weight,
                const void *const *send);
/* Alone in the job: the residual goes into the result, which holds the node's own values. */
void carry_alone(struct set *, float *const *residual, uint32_t fragment, double weight,
                 void *const *result);
void carry_tell(const struct set *, engine_residual *);

/* ---- receipt.c: what of a contribution is in the result of an owner whose commits stay with it */
/* Does this node as an owner tell the member? */
bool receipt_gives(const struct set *, const struct round *, uint32_t rank);
/* The trainer has gone past rounds that it did not join: who contributed there is told. */
void receipt_skip(struct set *);
/* The next window of what is not in it, into a SUMMARY whose bitmap is zero. */
void receipt_fill(const struct set *, struct round *, uint32_t rank, struct wire_summary *, uint8_t *bits);
bool receipt_is(const struct wire_summary *);
/* Has the member not told all of what is still in doubt? */
bool receipt_wanted(const struct round *, const struct env *, uint32_t rank);
void receipt_recv(struct set *, struct round *, uint32_t rank, const struct wire_summary *);

/* ---- late.c: see late.h */
/* The round closes without that fragment. */
void late_note_hole(const struct set *, struct round *, uint32_t fragment);
/* The node joins round `next`: what was decided in those between its last one and that is late for it. */
void late_skip(struct set *, const struct env *, uint64_t next, sleet_time now);
/* The trainer computes: so with the rounds that it will not join any more. */
void late_follow(struct set *, const struct env *, sleet_time now);
/* How much the node's values of a tensor count: next to nothing where they are parameters, to which it has yet to add
 * what it skipped. */
double late_weight(const struct set *, const struct round *, uint32_t tensor);
/* Does the weight of a contribution to the fragment say what its node's is? */
bool late_tells_weight(const struct set *, uint32_t fragment);
/* The newest round of which the node has joined or skipped all. */
uint64_t late_known(const struct set *);
/* Is the member still to be asked for commits of the closed round, and for which? */
bool late_wants(const struct set *, const struct round *, const struct env *, uint32_t rank);
bool late_is_hole(const struct set *, const struct round *, uint32_t fragment);
/* A commit of the closed round from the fragment's owner. */
enum fate late_recv(struct set *, struct round *, const struct env *, uint32_t rank,
                    const struct held *, const struct part *);
/* The node has committed, as an owner, what its own result misses. */
void late_own(struct set *, struct round *);
/* Add what is there to a result, a slice a call; true when all is added.  Counts fragments. */
bool late_fold(struct set *, void *const *result, const struct round *, uint32_t *folded);

/* ---- backup.c: see backup.h */
/* A commit has come from its owner: keep it where this node is the backup. */
void backup_keep(const struct set *, struct round *, uint32_t owner, const struct wire_data *, const struct part *);
const uint8_t *backup_coded(const struct set *, const struct round *, uint32_t slot);
void backup_drop(struct round *);
/* The next slot that the member asked for, of which there is one; take it, false: it was not asked for. */
uint32_t backup_next(struct round *, struct lane *);
bool backup_take(const struct round *, struct lane *, uint32_t slot, sleet_time now);
/* True when nothing more of an owner that is gone can be had for the open round; */
bool backup_done(const struct set *, const struct round *, const struct env *, uint32_t owner, sleet_time now);
/* the instant at which time alone makes it so. */
sleet_time backup_wait(const struct set *, const struct round *, const struct env *, uint32_t owner, sleet_time now);
/* When something is to be said because of that member, or to it. */
sleet_time backup_deadline(const struct set *, const struct round *, const struct env *, uint32_t rank, sleet_time now);
/* The next summary that is due, encoded into `out`, and to whom; 0 if none. */
size_t backup_fill(const struct set *, struct round *, const struct env *, uint32_t *to, uint8_t *out, size_t cap,
                   sleet_time now);
/* A summary that speaks of another owner has come. */
void backup_told(struct round *, const struct env *, uint32_t rank, const struct wire_summary *, sleet_time now);
/* The owner whose commit of the fragment that member may bring, because it was asked to; -1: it may not. */
int backup_speaks_for(const struct round *, int rank, uint32_t fragment);
void backup_healed(struct lane *owner, const struct env *);

/* ---- held.c: the commits in the result */
/* A mask of the group as bits into round.people; false when it cannot be. */
bool held_who(struct round *, const struct group *, uint64_t mask, uint64_t *who);
/* False when the commit does not count: it overlaps a heavier one, or there is no room. */
bool held_put(struct set *, struct round *, const struct env *, uint32_t fragment, const struct held *,
              const float *x);
void held_merge(struct set *, struct round *);

/* ---- feedback.c */
/* A commit has come from that member. */
void feedback_count(struct round *, uint32_t rank);
void feedback_recv(struct set *, struct round *, const struct env *, uint32_t rank,
                   const struct wire_summary *, sleet_time now);
/* What every summary of a round says to a member. */
struct wire_summary feedback_begin(const struct set *, const struct round *, const struct env *, const struct member *,
                                   sleet_time now);
/* The next summary due to `rank`, encoded into `out`; 0 if none. */
size_t feedback_fill(struct set *, struct round *, const struct env *, uint32_t rank, uint8_t *out,
                     size_t cap, sleet_time now);
/* A SUMMARY to a member that takes this node for a neighbour in a round in which it is none by its own list. */
size_t feedback_stranger(const struct set *, const struct round *, const struct env *, const struct member *,
                         uint8_t *out, size_t cap, sleet_time now);
/* How long a datagram from the member may be under way behind others. */
sleet_duration feedback_settle(const struct member *);
/* When the next one is due; keeps quiet_until and idle. */
sleet_time feedback_deadline(const struct set *, struct round *, const struct env *, sleet_time now);

/* ---- send.c */
/* Body of the next data datagram to `rank`; 0 if none.  `counter` is the one it will leave with. */
size_t round_fill(struct set *, struct round *, const struct env *, uint32_t rank, uint8_t *out,
                  uint64_t counter, sleet_time now);
bool round_has_data(const struct round *, uint32_t rank);
/* Are there commits that the member is the backup of? */
bool round_goes_ahead(struct round *, uint32_t rank);
/* How the node's contribution to a fragment is encoded in this round, each time that it is. */
struct codec_args scatter_args(const struct round *, uint32_t fragment);

/* ---- twice.c */
/* Choose what of the contribution is sent twice, a slice a call; true when that is done. */
bool twice_choose(const struct set *, struct round *);
/* All has gone to an owner once: queue what is to go again. */
void twice_queue(struct round *, struct lane *);
/* Is there something to go once more? */
bool twice_waits(const struct lane *);

/* ---- links.c */
/* What of the node's contribution goes to each owner, as the options have it; r->lane[].keep. */
void links_choose(struct round *, const struct env *, const sleet_round_options *);
/* codec_args.keep for that share of a fragment. */
uint32_t links_kept(double keep);

/* ---- parity.c */
struct wire_parity;
/* Whether to protect what goes to the member that way; once a round. */
void parity_decide(struct round *, const struct env *, uint32_t rank, enum parity_way, sleet_time now);
/* A datagram with fragments from number `fragment` on leaves: where it is protected its place goes into the frame. */
void parity_cover(struct round *, uint32_t rank, struct wire_data *, uint32_t fragment, const uint8_t *payload,
                  size_t len, uint64_t counter);
/* Parity is to leave before anything else that way. */
bool parity_due(const struct round *, uint32_t rank, enum parity_way);
size_t parity_fill(const struct set *, struct round *, const struct env *, uint32_t rank, enum parity_way,
                   uint8_t *out, uint64_t counter, sleet_time now);
/* May parity still bring the commit that left with that counter? */
bool parity_pending(const struct lane *, uint32_t sent_at, uint32_t counter_seen);
/* A protected datagram has come; true where its group, *group, may be rebuilt for it. */
bool parity_note(struct round *, uint32_t rank, const struct wire_data *, uint32_t fragment, uint32_t *group);
/* A row has come; false: it is malformed. */
bool parity_take(struct round *, uint32_t rank, const struct wire_parity *);
/* Hand over what a group lacks, if it can be had by now: blocks, see parity_decoder_rebuild(). */
uint32_t parity_rebuild(struct round *, uint32_t rank, enum parity_way, uint32_t group,
                        void (*take)(void *arg, const uint8_t *block, size_t len), void *arg);
/* Nothing more is of use that way. */
void parity_stop(struct round *, enum parity_way);
void parity_free(struct round *);
uint64_t parity_room(const struct layout *, uint32_t members);
uint64_t parity_bytes_bound(const struct layout *, uint32_t members);

/* ---- ledger.c */
void ledger_finish(struct set *, struct round *, const struct env *, bool final);
void ledger_gather(const struct round *, ledger_side *);
/* One member's part of the two sides. */
void ledger_lane(const struct round *, uint32_t rank, ledger_side *scatter, ledger_side *gather);

/* ---- explain.c */
/* False when the round has left the window. */
bool set_explain(const struct set *, const struct env *, uint64_t number, engine_explanation *);
#endif
