/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/shared.h"

#include "base/stats.h"
#include "lane/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REFUSALS 3
#define MOST     4 /* times what is configured: the queue is made for so many */
#define LOW      4 /* a quarter is left: time for more */

static int64_t bytes(const struct uct_ha_lanes *lanes, uint32_t buffers)
{
    return (int64_t)(buffers * lanes->pool.seg_size);
}

static struct uct_ha_room *room_of(const struct uct_ha_shared *shared)
{
    return &shared->lanes->room[shared->slot];
}

struct ha_recv uct_ha_place_is_held;

/* ---- the queue ---- */

/* As many as the completion queue could have places for. */
static int open_queue(struct uct_ha_shared *shared, struct ha_rail *rail, uint32_t len)
{
    uint32_t most = ucs_min(ha_rail_limits(rail)->max_srq_wr, uct_ha_room_could_spare(room_of(shared)));

    if (most < HA_DEPTHS_WR_MIN) {
        return -ENOTSUP;
    }
    shared->most   = ucs_min(MOST * len, most);
    shared->soft   = ucs_min(len, shared->most);
    shared->places = calloc(shared->most, sizeof(*shared->places)); /* memory comes when they are used */
    if (shared->places == NULL || uct_ha_number_open(shared) != 0) {
        return -ENOMEM;
    }
    return ha_srq_create(rail, shared->most, &shared->srq);
}

void uct_ha_shared_open(struct uct_ha_lanes *lanes, int slot)
{
    struct uct_ha_shared *shared = &lanes->shared[slot];
    uint32_t              len    = lanes->config->srq_len;
    int                   status;

    shared->lanes = lanes;
    shared->slot  = (unsigned)slot;
    uct_ha_chain_init(&shared->chain);
    if (len == 0 || lanes->proof[slot] != HA_PROOF_PSN) {
        return;
    }
    status = open_queue(shared, lanes->rail[slot], len);
    if (status != 0) {
        ucs_debug("ha_rc: %s: no shared receive queue (%s): each connection has one of its own",
                  ha_rail_name(lanes->rail[slot]), strerror(-status));
        free(shared->places);
        shared->places = NULL;
        shared->srq    = NULL;
        uct_ha_number_close(shared);
    }
}

/* What was posted is the device's until its queue is destroyed. */
static void give_back(struct uct_ha_lanes *lanes, struct uct_ha_shared *shared)
{
    for (uint32_t i = 0; i < shared->count; i++) {
        uct_ha_desc_return(&lanes->pool, shared->places[i].desc);
    }
    UCT_HA_STATS_ADD(rx_bytes, -bytes(lanes, shared->count));
    shared->count = 0;
    uct_ha_chain_init(&shared->chain);
}

void uct_ha_shared_close(struct uct_ha_lanes *lanes, int slot)
{
    struct uct_ha_shared *shared = &lanes->shared[slot];

    if (shared->srq != NULL) {
        ha_srq_destroy(shared->srq);
        shared->srq = NULL;
        give_back(lanes, shared);
    }
    free(shared->places);
    shared->places = NULL;
    uct_ha_number_close(shared);
}

static void not_made(struct uct_ha_job *job)
{
    (void)job;
}

void uct_ha_shared_cancel(struct uct_ha_lanes *lanes)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        uct_ha_job_cancel(UCT_HA_JOB_BUILD, &lanes->shared[s], not_made);
    }
}

struct leaving {
    struct uct_ha_job    job;
    struct uct_ha_lanes *lanes;
    struct uct_ha_shared shared; /* what was posted there, and its queue */
};

static void leave_run(struct uct_ha_job *job)
{
    struct leaving *leaving = ucs_container_of(job, struct leaving, job);

    ha_srq_destroy(leaving->shared.srq);
    give_back(leaving->lanes, &leaving->shared);
    free(leaving->shared.places);
    free(leaving);
}

void uct_ha_shared_leave(struct uct_ha_lanes *lanes, int slot)
{
    struct uct_ha_shared *shared  = &lanes->shared[slot];
    struct leaving       *leaving = shared->srq == NULL || shared->busy ? NULL : malloc(sizeof(*leaving));

    if (leaving == NULL) {
        return; /* without memory it stays until the interface closes */
    }
    leaving->lanes     = lanes;
    leaving->shared    = *shared;
    leaving->job.owner = lanes;
    leaving->job.run   = leave_run;
    shared->srq        = NULL;
    shared->places     = NULL;
    shared->count      = 0;
    uct_ha_chain_init(&shared->chain);
    uct_ha_job_post(UCT_HA_JOB_DESTROY, lanes->rail_no[slot], &leaving->job);
}

/* ---- buffers ---- */

static uint32_t chain_for(uint32_t wanted)
{
    return ucs_max(ucs_min(wanted / 4, UCT_HA_SHARED_CHAIN), 1);
}

/* As many as have places in the completion queue, or could have. */
static uint32_t most_now(const struct uct_ha_shared *shared)
{
    return ucs_min(shared->count + uct_ha_room_could_spare(room_of(shared)), shared->most);
}

/* Those that wait in the chain are told of already, so there are that many more. */
static uint32_t target(const struct uct_ha_shared *shared, uint32_t wanted)
{
    return wanted == 0 ? 0
                       : ucs_min(ucs_min(wanted + chain_for(wanted), shared->soft) + shared->lost, most_now(shared));
}

void uct_ha_shared_want(struct uct_ha_shared *shared, int32_t more)
{
    shared->wanted += (uint32_t)more;
    shared->chain_max = chain_for(ucs_min(shared->wanted, shared->soft));
    if (shared->chain_round == 0) {
        shared->chain_round = shared->chain_left = shared->chain_max;
    }
}

uint32_t uct_ha_shared_lacks(const struct uct_ha_shared *shared, uint32_t more)
{
    uint32_t count = target(shared, shared->wanted + more);

    return count > shared->count ? count - shared->count : 0;
}

static void add(struct uct_ha_lanes *lanes, int slot, struct uct_ha_desc *desc)
{
    struct uct_ha_shared *shared = &lanes->shared[slot];
    struct uct_ha_place  *place  = &shared->places[shared->count];

    uct_ha_place_fill(place, desc, lanes, slot);
    place->recv.wr_id = uct_ha_wr_id_shared(place);
    place->shared     = shared;
    place->recv.next  = NULL;
    shared->count++;
    UCT_HA_STATS_ADD(rx_bytes, bytes(lanes, 1));
}

/* From the list, and in progress from those at hand as well. */
static struct uct_ha_desc *next_desc(struct uct_ha_lanes *lanes, struct uct_ha_desc **list, int progress)
{
    struct uct_ha_desc *desc = *list;

    if (desc == NULL) {
        return progress ? uct_ha_desc_at_hand(&lanes->pool) : NULL;
    }
    *list = desc->next;
    return desc;
}

/* Up to so many. Buffers that this rail does not know go back. Returns what is to be posted, or NULL. Under the lock.
 */
static struct ha_recv *make(struct uct_ha_lanes *lanes, int slot, uint32_t count, struct uct_ha_desc **list,
                            int progress)
{
    struct uct_ha_shared *shared = &lanes->shared[slot];
    uint32_t              first  = shared->count;
    struct uct_ha_desc   *desc;

    count = ucs_min(count, first + uct_ha_room_spare(room_of(shared), progress));
    while (shared->count < count && (desc = next_desc(lanes, list, progress)) != NULL) {
        if (!uct_ha_reg_is_on(desc->mem, lanes->rail_no[slot])) {
            uct_ha_desc_return(&lanes->pool, desc);
            break;
        }
        add(lanes, slot, desc);
    }
    uct_ha_room_take_receives(room_of(shared), shared->count - first);
    for (uint32_t i = first; i + 1 < shared->count; i++) {
        shared->places[i].recv.next = &shared->places[i + 1].recv;
    }
    return first < shared->count ? &shared->places[first].recv : NULL;
}

/* What the queue does not take waits in the chain, as if it had been consumed. Progress. */
static void post(struct uct_ha_shared *shared, struct ha_recv *first)
{
    struct ha_recv *rest = first == NULL ? NULL : ha_srq_post(shared->srq, first);

    if (ucs_unlikely(rest != NULL)) {
        uct_ha_chain_put_back(&shared->chain, rest);
    }
}

void uct_ha_shared_flush(struct uct_ha_shared *shared)
{
    __atomic_store_n(&shared->posted, shared->posted + shared->chain_round - shared->chain_left, __ATOMIC_RELAXED);
    shared->chain_round = shared->chain_left = shared->chain_max;
    post(shared, uct_ha_chain_take(&shared->chain));
}

/* ---- more, when the device says that few are left ---- */

/* By copies, for a job: progress may be handed a place back, and chain it, while the driver still reads the request.
 * What is refused is out for good: there is room for all, and from a card that is gone nothing is wanted. */
static void post_copies(struct uct_ha_shared *shared, const struct ha_recv *recv)
{
    struct ha_recv copy[UCT_HA_SHARED_CHAIN];
    unsigned       count;

    while (recv != NULL) {
        for (count = 0; recv != NULL && count < UCT_HA_SHARED_CHAIN; recv = recv->next, count++) {
            copy[count]      = *recv;
            copy[count].next = NULL;
            if (count > 0) {
                copy[count - 1].next = &copy[count];
            }
        }
        if (ha_srq_post(shared->srq, copy) != NULL) {
            return;
        }
    }
}

/* By a job: to register memory and to ask the device may take long, and progress may be busy elsewhere. */
static void more_run(struct uct_ha_job *job)
{
    struct uct_ha_shared *shared = ucs_container_of(job, struct uct_ha_shared, job);
    struct uct_ha_lanes  *lanes  = shared->lanes;
    struct uct_ha_desc   *list   = NULL;
    struct ha_recv       *first  = NULL;
    int                   status = uct_ha_room_deepen(room_of(shared), shared->depth), again;
    uint32_t              count;

    (void)uct_ha_desc_stock(&lanes->pool, shared->coming, &list);
    pthread_mutex_lock(&lanes->wake.lock);
    uct_ha_room_have(room_of(shared), shared->coming, shared->depth, status);
    if (list != NULL) {
        first = make(lanes, (int)shared->slot, target(shared, shared->wanted), &list, 0);
    }
    post_copies(shared, first); /* before a search for lost ones sees them */
    count = shared->count;
    pthread_mutex_unlock(&lanes->wake.lock);
    uct_ha_desc_return_list(&lanes->pool, list);
    status = ha_srq_watch(shared->srq, count / LOW);
    pthread_mutex_lock(&lanes->wake.lock);
    shared->busy    = 0;
    shared->deaf    = status != 0;
    shared->watched = status == 0;
    shared->asked   = __atomic_load_n(&shared->posted, __ATOMIC_RELAXED);
    again           = shared->again;
    shared->again   = 0;
    if (again) {
        uct_ha_shared_low_locked(lanes, (int)shared->slot);
    }
    pthread_mutex_unlock(&lanes->wake.lock);
}

static void watch(struct uct_ha_shared *shared)
{
    shared->coming    = uct_ha_shared_lacks(shared, 0);
    shared->depth     = uct_ha_room_ask_for(room_of(shared), shared->coming);
    shared->watched   = 1;
    shared->busy      = 1;
    shared->job.owner = shared;
    shared->job.run   = more_run;
    uct_ha_job_post(UCT_HA_JOB_BUILD, shared->lanes->rail_no[shared->slot], &shared->job);
}

/* Nothing is begun any more. */
static int is_over(const struct uct_ha_shared *shared)
{
    return shared->srq == NULL || shared->lanes->leaving || shared->lanes->left[shared->slot];
}

void uct_ha_shared_low_locked(struct uct_ha_lanes *lanes, int slot)
{
    struct uct_ha_shared *shared = &lanes->shared[slot];

    if (is_over(shared)) {
        return;
    }
    if (shared->busy) {
        shared->again = 1; /* the device was asked by the job, and has said so at once */
        return;
    }
    shared->watched = 0; /* it says so once; when more are wanted it is asked again */
    if (shared->wanted + shared->chain_max <= shared->count) {
        return;
    }
    shared->low       = 1;
    shared->low_until = __atomic_load_n(&shared->posted, __ATOMIC_RELAXED) + shared->count / 2;
    if (shared->soft == shared->most) {
        return;
    }
    shared->soft = ucs_min(2 * shared->soft, shared->most);
    UCT_HA_STATS_ADD(rx_shared_low, 1);
    watch(shared);
}

/* More may come than there are, and no more of them will be soon. Where the device does not say whether few are left,
 * or peers do not hear it in time, there may be none. */
static int is_low(const struct uct_ha_shared *shared)
{
    int told_once = shared->lanes->config->heartbeat == 0 && shared->wanted > shared->most;

    return told_once || shared->deaf || shared->low || uct_ha_shared_lacks(shared, 0) > 0;
}

/* Some have been posted since the device was asked: not every device looks how many there are when it is asked, but
 * each does when one more is taken. */
static int is_well_again(const struct uct_ha_shared *shared, uint32_t posted)
{
    return shared->watched && !shared->busy && posted != shared->asked;
}

int uct_ha_shared_is_scarce_locked(struct uct_ha_shared *shared)
{
    uint32_t posted = __atomic_load_n(&shared->posted, __ATOMIC_RELAXED);
    int      half   = !shared->low || (int32_t)(posted - shared->low_until) >= 0;

    if (is_over(shared) || shared->wanted <= shared->count) {
        return 0;
    }
    if (half && is_well_again(shared, posted)) {
        shared->low = 0;
    }
    if (half && !shared->watched && !shared->busy && !shared->deaf) {
        watch(shared);
    }
    return is_low(shared);
}

/* A card that refuses receives is asked again soon, but not for ever: what it has refused waits in the chain. */
static int is_refused(struct uct_ha_shared *shared)
{
    shared->refused = shared->chain.first == NULL ? 0 : (uint8_t)(shared->refused + 1);
    return shared->refused % (REFUSALS + 1) != 0;
}

/* Who comes is content with so many. Where sends hold the places that there will ever be, the others come later. */
static uint32_t enough(const struct uct_ha_shared *shared)
{
    const struct uct_ha_room *room  = room_of(shared);
    uint32_t                  count = most_now(shared);

    if (uct_ha_room_is_deepest(room)) {
        count = ucs_min(count, shared->count + uct_ha_room_spare(room, 1));
    }
    return ucs_min(ucs_min(shared->wanted, shared->soft), count);
}

int uct_ha_shared_fill_locked(struct uct_ha_lanes *lanes, int slot, struct uct_ha_desc **list)
{
    struct uct_ha_shared *shared = &lanes->shared[slot];

    uct_ha_shared_flush(shared); /* of lanes that are gone, perhaps */
    post(shared, make(lanes, slot, target(shared, shared->wanted), list, 1));
    if (shared->wanted > shared->soft && !shared->watched && !shared->busy) {
        watch(shared);
    }
    return is_refused(shared) || shared->count < enough(shared) ? -EAGAIN : 0;
}
