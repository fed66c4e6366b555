/* SPDX-License-Identifier: BSD-3-Clause */

/* Datagrams: lost, repeated and overtaken. */

#include "fake_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int ha_ud_create(struct ha_rail *rail, unsigned depth, unsigned max_len, struct ha_ud **ud_p)
{
    struct ha_ud *ud = calloc(1, sizeof(*ud));
    int           status;

    fake_command(FAKE_CALL_UD_CREATE, rail);
    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_UD_CREATE, rail);
    if (status == 0) {
        ud->rail       = rail;
        ud->qpn        = rail->next_ud != 0 ? rail->next_ud : fake.next_qpn++;
        rail->next_ud  = 0;
        rail->last_ud  = ud->qpn;
        ud->depth      = depth;
        ud->max_len    = max_len;
        ud->fd         = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        ud->queue_tail = &ud->queue;
        ud->next       = fake.uds;
        fake.uds       = ud;
        fake.live++;
        rail->held++;
        *ud_p = ud;
    }
    pthread_mutex_unlock(&fake.lock);
    if (status != 0) {
        free(ud);
    }
    return status;
}

static void drop_queue(struct ha_ud *ud)
{
    struct fake_datagram *datagram;

    while ((datagram = ud->queue) != NULL) {
        ud->queue = datagram->next;
        free(datagram);
    }
    ud->queue_tail = &ud->queue;
    ud->received   = 0;
}

void ha_ud_destroy(struct ha_ud *ud)
{
    struct ha_ud **link;

    fake_command(FAKE_CALL_UD_DESTROY, ud->rail);
    pthread_mutex_lock(&fake.lock);
    for (link = &fake.uds; *link != ud; link = &(*link)->next) {
    }
    *link = ud->next;
    drop_queue(ud);
    fake.live--;
    ud->rail->held--;
    pthread_mutex_unlock(&fake.lock);
    close(ud->fd);
    free(ud);
}

uint32_t ha_ud_qpn(const struct ha_ud *ud)
{
    return ud->qpn;
}

int ha_ud_fd(const struct ha_ud *ud)
{
    return ud->fd;
}

int ha_ud_arm(struct ha_ud *ud)
{
    pthread_mutex_lock(&fake.lock);
    fake_fd_lower(ud->fd);
    ud->armed = 1;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

int ha_ud_recycle(struct ha_ud *ud)
{
    fake_command(FAKE_CALL_UD_RECYCLE, ud->rail);
    pthread_mutex_lock(&fake.lock);
    drop_queue(ud);
    ud->dead = 0;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

int ha_ud_is_dead(const struct ha_ud *ud)
{
    int dead;

    pthread_mutex_lock(&fake.lock);
    dead = ud->dead;
    pthread_mutex_unlock(&fake.lock);
    return dead;
}

static void bring(struct ha_ud *ud, struct fake_datagram *datagram)
{
    datagram->next  = NULL;
    *ud->queue_tail = datagram;
    ud->queue_tail  = &datagram->next;
    ud->received++;
    if (ud->armed) {
        ud->armed = 0;
        fake_fd_raise(ud->fd);
    }
}

void fake_ud_bring(struct ha_ud *ud, const void *data, size_t length)
{
    struct fake_datagram *datagram = calloc(1, sizeof(*datagram) + length);

    datagram->length = length;
    memcpy(datagram->data, data, length);
    pthread_mutex_lock(&fake.lock);
    bring(ud, datagram);
    pthread_mutex_unlock(&fake.lock);
}

void fake_on_datagram(void (*cb)(const void *data, size_t length))
{
    pthread_mutex_lock(&fake.lock);
    fake.on_datagram = cb;
    pthread_mutex_unlock(&fake.lock);
}

static void send_copy(struct ha_ud *ud, const struct ha_ud_ah *ah, uint32_t qpn, const void *data, size_t length)
{
    struct fake_datagram *datagram = malloc(sizeof(*datagram) + length);

    datagram->from   = ud->rail;
    datagram->to     = fake_rail_of_gid(ah->way.dgid);
    datagram->way    = ah->way;
    datagram->due    = fake_now() + 1000ull * ud->rail->knob[FAKE_CTL_DELAY_US];
    datagram->qpn    = qpn;
    datagram->length = length;
    memcpy(datagram->data, data, length);
    datagram->next = fake.wire;
    fake.wire      = datagram;
    if (fake.on_datagram != NULL) {
        fake.on_datagram(data, length);
    }
    fake_kick();
}

int ha_ud_send(struct ha_ud *ud, struct ha_ud_ah *ah, uint32_t remote_qpn, const void *data, size_t length)
{
    int status;

    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_UD_SEND, ud->rail);
    if (status == 0 && length > ud->max_len) {
        status = -EMSGSIZE;
    }
    if (status == 0 && !ud->rail->port_up && fake_luck(300)) {
        ud->dead = 1; /* some devices complete in error when the port is gone */
        fake_fd_raise(ud->fd);
    }
    if (status == 0 && ud->dead) {
        status = -EPIPE;
    }
    if (status == 0) {
        send_copy(ud, ah, remote_qpn, data, length);
        if (fake_luck(ud->rail->knob[FAKE_REPEAT_CTL])) {
            send_copy(ud, ah, remote_qpn, data, length);
        }
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

int ha_ud_recv(struct ha_ud *ud, void *data, size_t max)
{
    struct fake_datagram *datagram;
    int                   got = 0;

    fake_async_thread();
    pthread_mutex_lock(&fake.lock);
    (void)fake_ud_step();
    datagram = ud->queue;
    if (ud->dead) {
        got = -EPIPE;
    } else if (datagram != NULL) {
        ud->queue = datagram->next;
        if (ud->queue == NULL) {
            ud->queue_tail = &ud->queue;
        }
        ud->received--;
        got = (int)(datagram->length < max ? datagram->length : max);
        memcpy(data, datagram->data, (size_t)got);
        free(datagram);
    }
    pthread_mutex_unlock(&fake.lock);
    return got;
}

static void arrive(struct fake_datagram *datagram)
{
    struct ha_ud *ud;

    for (ud = fake.uds; ud != NULL; ud = ud->next) {
        if (ud->qpn == datagram->qpn && ud->rail == datagram->to) {
            break;
        }
    }
    if (ud == NULL || ud->dead || ud->received == ud->depth ||
        !fake_path_leads(datagram->from, datagram->to, &datagram->way) ||
        datagram->way.sgid_index != datagram->from->gid_index || fake_luck(datagram->from->knob[FAKE_LOSE_CTL]) ||
        fake_luck(datagram->from->knob[FAKE_LOSE_CTL_OUT]) || fake_luck(datagram->to->knob[FAKE_LOSE_CTL])) {
        free(datagram);
        return;
    }
    bring(ud, datagram);
}

/* The wire is a stack, emptied from a drawn place on: some overtake others. */
int fake_ud_step(void)
{
    struct fake_datagram **link, *datagram;
    uint32_t               skip = fake.wire == NULL ? 0 : fake_draw(3);
    uint64_t               now;

    for (link = &fake.wire; skip > 0 && *link != NULL && (*link)->next != NULL; skip--) {
        link = &(*link)->next;
    }
    now = fake_now();
    while ((datagram = *link) != NULL) {
        if (datagram->due > now) {
            link = &datagram->next;
            continue;
        }
        *link = datagram->next;
        arrive(datagram);
    }
    return fake.wire != NULL;
}

/* The neighbour must answer before there is an address handle. */
int ha_ud_ah_create(struct ha_rail *rail, const struct ha_rail_addr *remote, struct ha_ud_ah **ah_p)
{
    struct ha_ud_ah *ah = calloc(1, sizeof(*ah));
    unsigned         block;
    int              status;

    fake_command(FAKE_CALL_AH_CREATE, rail);
    pthread_mutex_lock(&fake.lock);
    block  = rail->knob[FAKE_BLOCK_MS] + rail->knob[FAKE_LOOKUP_MS];
    status = fake_refuses(FAKE_CALL_AH_CREATE, rail);
    fake.counts.lookups += block > 0;
    pthread_mutex_unlock(&fake.lock);
    if (block > 0) {
        usleep(block * 1000);
    }
    pthread_mutex_lock(&fake.lock);
    if (status == 0 && !fake_reachable(rail, fake_rail_of_gid(remote->gid))) {
        status = -ETIMEDOUT;
    }
    fake.live += status == 0;
    rail->held += status == 0;
    fake.ahs += status == 0;
    pthread_mutex_unlock(&fake.lock);
    if (status != 0) {
        free(ah);
        return status;
    }
    ah->rail = rail;
    pthread_mutex_lock(&fake.lock);
    ah->way = fake_path(rail, remote->gid);
    pthread_mutex_unlock(&fake.lock);
    *ah_p = ah;
    return 0;
}

void ha_ud_ah_destroy(struct ha_ud_ah *ah)
{
    fake_command(FAKE_CALL_AH_DESTROY, ah->rail);
    pthread_mutex_lock(&fake.lock);
    fake.live--;
    ah->rail->held--;
    fake.ahs--;
    pthread_mutex_unlock(&fake.lock);
    free(ah);
}
