/* SPDX-License-Identifier: BSD-3-Clause */

/* Rails and the network's clockwork. */

#include "fake_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* ---- small helpers -------------------------------------------------------- */

uint64_t fake_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint32_t fake_draw(uint32_t below)
{
    uint64_t z = (fake.random += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

int fake_luck(unsigned per_mille)
{
    return per_mille != 0 && fake_draw(1000) < per_mille;
}

int fake_refuses(enum fake_call call, const struct ha_rail *rail)
{
    if ((rail->card == FAKE_CARD_DEAD || rail->card == FAKE_CARD_UNDEAD) && call != FAKE_CALL_POST_SEND &&
        call != FAKE_CALL_POST_RECV && call != FAKE_CALL_UD_SEND) {
        return -EIO; /* the others only write to memory */
    }
    if (rail->gone && (call == FAKE_CALL_CQ_CREATE || call == FAKE_CALL_RC_CREATE || call == FAKE_CALL_UD_CREATE ||
                       call == FAKE_CALL_AH_CREATE || call == FAKE_CALL_MR_REG)) {
        return -ENODEV;
    }
    if (fake.fail[call].count == 0 || (fake.fail[call].rail >= 0 && fake.fail[call].rail != rail->index)) {
        return 0;
    }
    fake.fail[call].count--;
    return fake.fail[call].error;
}

void fake_fd_raise(int fd)
{
    uint64_t one     = 1;
    ssize_t  written = write(fd, &one, sizeof(one));

    (void)written;
}

void fake_fd_lower(int fd)
{
    uint64_t count;
    ssize_t  got = read(fd, &count, sizeof(count));

    (void)got;
}

/* ---- the network's thread --------------------------------------------------- */

void fake_step(void)
{
    (void)fake_rc_step();
    (void)fake_ud_step();
}

void fake_kick(void)
{
    if (fake.idle) {
        fake.idle = 0;
        pthread_cond_signal(&fake.wake);
    }
}

static void *network(void *arg)
{
    struct timespec until;
    int             busy;

    (void)arg;
    pthread_mutex_lock(&fake.lock);
    while (!fake.stopping) {
        busy = fake_rc_step();
        busy |= fake_ud_step();
        if (busy) {
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 500000;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            pthread_cond_timedwait(&fake.wake, &fake.lock, &until);
        } else {
            fake.idle = 1;
            while (fake.idle && !fake.stopping) {
                pthread_cond_wait(&fake.wake, &fake.lock);
            }
        }
    }
    pthread_mutex_unlock(&fake.lock);
    return NULL;
}

void fake_begin(uint64_t seed)
{
    pthread_mutex_lock(&fake.lock);
    fake.random      = seed;
    fake.num_rails   = 0;
    fake.next_key    = 2 * fake_draw(0x100000);
    fake.next_qpn    = 16 + fake_draw(1000);
    fake.max_cqe     = 65536;
    fake.live        = 0;
    fake.ahs         = 0;
    fake.stopping    = 0;
    fake.idle        = 0;
    fake.on_write    = NULL;
    fake.on_datagram = NULL;
    memset(&fake.counts, 0, sizeof(fake.counts));
    memset(fake.switching, 0, sizeof(fake.switching));
    memset(fake.fail, 0, sizeof(fake.fail));
    memset(fake.hang, 0, sizeof(fake.hang));
    fake.forbidden = NULL;
    fake.broken    = 0; /* of the test before: its memory may be where that was */
    fake.running   = pthread_create(&fake.thread, NULL, network, NULL) == 0;
    pthread_mutex_unlock(&fake.lock);
}

int fake_end(void)
{
    struct fake_datagram *datagram;

    pthread_mutex_lock(&fake.lock);
    fake.stopping = 1;
    fake.idle     = 0;
    pthread_cond_signal(&fake.wake);
    pthread_mutex_unlock(&fake.lock);
    if (fake.running) {
        pthread_join(fake.thread, NULL);
        fake.running = 0;
    }
    while ((datagram = fake.wire) != NULL) {
        fake.wire = datagram->next;
        free(datagram);
    }
    for (int i = 0; i < fake.num_rails; i++) {
        close(fake.rail[i].event_fd);
    }
    return fake.live;
}

/* ---- what a test may do --------------------------------------------------------- */

int fake_rail_add(const char *name, unsigned net, unsigned host)
{
    struct ha_rail *rail = &fake.rail[fake.num_rails];
    uint8_t gid[16]      = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 0, [14] = (uint8_t)net, [15] = (uint8_t)host};

    memset(rail, 0, sizeof(*rail));
    snprintf(rail->name, sizeof(rail->name), "%s", name);
    rail->is      = fake_plain;
    rail->index   = fake.num_rails;
    rail->net     = net;
    rail->host    = host % FAKE_HOSTS_MAX;
    rail->port_up = rail->up = 1;
    rail->event_fd           = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    memcpy(rail->gid, gid, sizeof(gid));
    memcpy(rail->addr.gid, gid, sizeof(gid));
    rail->addr.link_layer = HA_LINK_ETHERNET;
    rail->addr.prefix_len = 120;
    rail->addr.mtu        = 1024;
    rail->limits          = (struct ha_rail_limits){
                 .max_qp       = 4096,
                 .max_qp_wr    = 16384,
                 .max_sge      = FAKE_SGE_MAX,
                 .max_cqe      = fake.max_cqe,
                 .max_srq_wr   = 32768,
                 .max_rd_init  = 16,
                 .max_rd_resp  = 16,
                 .max_msg_size = 1u << 31,
                 .max_mr_size  = UINT64_MAX,
                 .bandwidth    = 1e9,
                 .packet_extra = 90,
                 .slot_rate    = 1e12,
                 .latency      = 1e-6,
                 .numa_node    = -1,
                 .node_guid    = 100 + (uint64_t)rail->index,
                 .has_ud       = 1,
                 .model        = "fake",
                 .atomics      = HA_ATOMICS_CARD,
    };
    return fake.num_rails++;
}

void fake_model(int rail, const char *model)
{
    snprintf(fake.rail[rail].limits.model, sizeof(fake.rail[rail].limits.model), "%s", model);
}

struct ha_rc_path fake_last_path(int rail)
{
    struct ha_rc_path path;

    pthread_mutex_lock(&fake.lock);
    path = fake.rail[rail].last_path;
    pthread_mutex_unlock(&fake.lock);
    return path;
}

struct fake_counts fake_counts(void)
{
    struct fake_counts counts;

    pthread_mutex_lock(&fake.lock);
    counts = fake.counts;
    pthread_mutex_unlock(&fake.lock);
    return counts;
}

void fake_on_write(void (*cb)(void *arg, uint64_t addr, uint64_t length), void *arg)
{
    pthread_mutex_lock(&fake.lock);
    fake.on_write     = cb;
    fake.on_write_arg = arg;
    pthread_mutex_unlock(&fake.lock);
}

/* ---- rails: ha_rail.h ---------------------------------------------------------------- */

struct ha_rail *fake_rail_of_gid(const uint8_t *gid)
{
    for (int i = 0; i < fake.num_rails; i++) {
        if (memcmp(fake.rail[i].gid, gid, 16) == 0 && fake.rail[i].card != FAKE_CARD_DEAD) {
            return &fake.rail[i];
        }
    }
    return NULL;
}

int fake_reachable(const struct ha_rail *from, const struct ha_rail *to)
{
    return to != NULL && from->net == to->net && from->port_up && to->port_up && from->card != FAKE_CARD_DEAD &&
           to->card != FAKE_CARD_DEAD;
}

int ha_rail_list(char (*names)[HA_RAIL_NAME_MAX], int max)
{
    int count = 0;

    for (int i = 0; i < fake.num_rails && count < max; i++) {
        if (fake.rail[i].card == FAKE_CARD_WELL && !fake.rail[i].removed) {
            memcpy(names[count++], fake.rail[i].name, HA_RAIL_NAME_MAX);
        }
    }
    return count;
}

int ha_rail_open(const char *name, const struct ha_rail_opts *opts, struct ha_rail **rail_p)
{
    int status = -ENODEV;

    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.num_rails; i++) {
        if (strcmp(fake.rail[i].name, name) == 0 && fake.rail[i].card == FAKE_CARD_WELL && !fake.rail[i].removed) {
            if (fake.rail[i].refs++ == 0) {
                fake.rail[i].opts = *opts;
            }
            fake.rail[i].up = fake.rail[i].port_up;
            fake.live++;
            *rail_p = &fake.rail[i];
            status  = 0;
        }
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

void ha_rail_hold(struct ha_rail *rail)
{
    pthread_mutex_lock(&fake.lock);
    rail->refs++;
    fake.live++;
    pthread_mutex_unlock(&fake.lock);
}

int ha_rail_is_gone(const struct ha_rail *rail)
{
    return __atomic_load_n(&rail->gone, __ATOMIC_RELAXED);
}

void ha_rail_close(struct ha_rail *rail)
{
    pthread_mutex_lock(&fake.lock);
    rail->refs--;
    fake.live--;
    pthread_mutex_unlock(&fake.lock);
}

const char *ha_rail_name(const struct ha_rail *rail)
{
    return rail->name;
}

const struct ha_rail_limits *ha_rail_limits(const struct ha_rail *rail)
{
    return &rail->limits;
}

const struct ha_rail_opts *ha_rail_opts(const struct ha_rail *rail)
{
    return &rail->opts;
}

int ha_rail_refresh(struct ha_rail *rail)
{
    int up;

    fake_command(FAKE_CALL_PORT_QUERY, rail);
    pthread_mutex_lock(&fake.lock);
    up = rail->port_up && rail->card == FAKE_CARD_WELL && !rail->gone && fake_refuses(FAKE_CALL_PORT_QUERY, rail) == 0;
    memcpy(rail->addr.gid, rail->gid, sizeof(rail->gid));
    __atomic_store_n(&rail->up, up, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&fake.lock);
    return up;
}

struct ha_rail_addr ha_rail_addr(struct ha_rail *rail)
{
    struct ha_rail_addr addr;

    pthread_mutex_lock(&fake.lock);
    addr = rail->addr;
    pthread_mutex_unlock(&fake.lock);
    return addr;
}

int ha_rail_has_addr(struct ha_rail *rail, const struct ha_rail_addr *addr)
{
    int has;

    fake_command(FAKE_CALL_GID_QUERY, rail);
    pthread_mutex_lock(&fake.lock);
    has = memcmp(addr->gid, rail->gid, sizeof(rail->gid)) == 0;
    pthread_mutex_unlock(&fake.lock);
    return has;
}

void ha_rail_netdev(struct ha_rail *rail, char netdev[HA_NETDEV_MAX])
{
    snprintf(netdev, HA_NETDEV_MAX, "eth%d", rail->index);
}

int ha_rail_up(const struct ha_rail *rail)
{
    return __atomic_load_n(&rail->up, __ATOMIC_RELAXED);
}

int ha_rail_check(struct ha_rail *rail)
{
    int seen;

    pthread_mutex_lock(&fake.lock);
    seen = rail->removed && !rail->gone;
    if (seen) {
        __atomic_store_n(&rail->gone, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&rail->up, 0, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&fake.lock);
    return seen;
}

int ha_rail_event_begin(struct ha_rail *rail)
{
    pthread_mutex_lock(&fake.lock);
    rail->held++;
    pthread_mutex_unlock(&fake.lock);
    return rail->event_fd;
}

void ha_rail_event_end(struct ha_rail *rail)
{
    pthread_mutex_lock(&fake.lock);
    rail->held--;
    pthread_mutex_unlock(&fake.lock);
}

int ha_rail_event_get(struct ha_rail *rail, struct ha_rail_event *event)
{
    int got = 0;

    fake_async_thread();
    pthread_mutex_lock(&fake.lock);
    if (rail->num_events > 0) {
        *event = rail->events[0];
        if (event->kind == HA_RAIL_EVENT_DEVICE_FATAL) {
            __atomic_store_n(&rail->gone, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&rail->up, 0, __ATOMIC_RELAXED);
        }
        memmove(&rail->events[0], &rail->events[1], --rail->num_events * sizeof(*event));
        got = 1;
    } else {
        fake_fd_lower(rail->event_fd);
    }
    pthread_mutex_unlock(&fake.lock);
    return got;
}
