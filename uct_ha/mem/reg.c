/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/reg.h"

#include "mem/exposed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The rails that memory is, or may be, registered on. A cached region may
 * outlive the domain that asked for it, so registrations keep their rail open. */
static struct place {
    struct ha_rail          *rail; /* open by `users`, and once more while mrs_now > 0 */
    unsigned                 users;
    struct uct_ha_rail_stats stats;
} places[HA_RAILS_MAX];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

/* A device that was reset is opened anew beside the old one, which some may still use: its
 * registrations are others. */
static int find_place(const struct ha_rail *rail)
{
    int free_place = -ENOSPC;

    for (int i = HA_RAILS_MAX - 1; i >= 0; i--) {
        int in_use = places[i].users > 0 || places[i].stats.mrs > 0;

        if (strcmp(places[i].stats.name, ha_rail_name(rail)) == 0 && (!in_use || places[i].rail == rail)) {
            return i;
        }
        if (!in_use) {
            free_place = i;
        }
    }
    return free_place;
}

int uct_ha_reg_join(struct ha_rail *rail)
{
    int i;

    pthread_mutex_lock(&places_lock);
    i = find_place(rail);
    if (i >= 0) {
        if (strcmp(places[i].stats.name, ha_rail_name(rail)) != 0) {
            memset(&places[i].stats, 0, sizeof(places[i].stats));
            snprintf(places[i].stats.name, sizeof(places[i].stats.name), "%s", ha_rail_name(rail));
        }
        places[i].rail = rail;
        places[i].users++;
    }
    pthread_mutex_unlock(&places_lock);
    return i;
}

void uct_ha_reg_leave(unsigned rail_no)
{
    pthread_mutex_lock(&places_lock);
    places[rail_no].users--;
    pthread_mutex_unlock(&places_lock);
}

__attribute__((visibility("default"))) int uct_ha_rail_stats_get(unsigned index, struct uct_ha_rail_stats *stats,
                                                                 size_t size)
{
    struct uct_ha_rail_stats now;
    int                      known;

    if (stats == NULL || index >= HA_RAILS_MAX) {
        return -EINVAL;
    }
    pthread_mutex_lock(&places_lock);
    now   = places[index].stats;
    known = now.name[0] != '\0';
    pthread_mutex_unlock(&places_lock);
    if (!known) {
        return -ENOENT;
    }
    memset(stats, 0, size);
    memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
    return 0;
}

/* ---- counting -------------------------------------------------------------- */

static struct ha_rail *hold(unsigned rail_no)
{
    struct place *place = &places[rail_no];

    pthread_mutex_lock(&places_lock);
    if (place->stats.mrs++ == 0) {
        ha_rail_hold(place->rail); /* it is open: its domain asks */
    }
    pthread_mutex_unlock(&places_lock);
    return place->rail;
}

static void count_made(unsigned rail_no, size_t bytes)
{
    pthread_mutex_lock(&places_lock);
    places[rail_no].stats.mrs_total++;
    places[rail_no].stats.mr_bytes += bytes;
    pthread_mutex_unlock(&places_lock);
}

static void let_go(unsigned rail_no, size_t bytes)
{
    struct place *place = &places[rail_no];

    pthread_mutex_lock(&places_lock);
    place->stats.mr_bytes -= bytes;
    if (--place->stats.mrs == 0) {
        ha_rail_close(place->rail);
    }
    pthread_mutex_unlock(&places_lock);
}

/* ---- regions ------------------------------------------------------------------- */

void uct_ha_reg_init(struct uct_ha_mem *mem, void *address, size_t length, unsigned access)
{
    memset(mem, 0, sizeof(*mem));
    mem->address = address;
    mem->length  = length;
    mem->access  = access;
    pthread_mutex_init(&mem->lock, NULL);
}

static void undo(struct uct_ha_mem *mem, unsigned rail_no)
{
    ha_mr_dereg(mem->mr[rail_no]);
    let_go(rail_no, mem->length);
}

void uct_ha_reg_cleanup(struct uct_ha_mem *mem)
{
    for (unsigned i = 0; i < HA_RAILS_MAX; i++) {
        if (!(mem->rails >> i & 1u)) {
            continue;
        }
        if (mem->access & HA_ACCESS_REMOTE_ATOMIC) {
            uct_ha_exposed_remove(i, ha_mr_rkey(mem->mr[i]));
        }
        undo(mem, i);
    }
    pthread_mutex_destroy(&mem->lock);
}

static int reg(struct uct_ha_mem *mem, unsigned rail_no)
{
    struct ha_rail *rail = hold(rail_no);
    int             status;

    status = ha_mr_reg(rail, mem->address, mem->length, mem->access, &mem->mr[rail_no]);
    if (status != 0) {
        let_go(rail_no, 0);
        return status;
    }
    count_made(rail_no, mem->length);
    if ((mem->access & HA_ACCESS_REMOTE_ATOMIC) &&
        uct_ha_exposed_add(rail_no, ha_mr_rkey(mem->mr[rail_no]), mem->address, mem->length) != 0) {
        undo(mem, rail_no);
        return -ENOMEM;
    }
    mem->lkey[rail_no] = ha_mr_lkey(mem->mr[rail_no]);
    return 0;
}

int uct_ha_reg_on(struct uct_ha_mem *mem, unsigned rail_no)
{
    int status = 0;

    if (uct_ha_reg_is_on(mem, rail_no)) {
        return 0;
    }
    pthread_mutex_lock(&mem->lock);
    if (!uct_ha_reg_is_on(mem, rail_no)) {
        status = reg(mem, rail_no);
        if (status == 0) {
            __atomic_fetch_or(&mem->rails, 1u << rail_no, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&mem->lock);
    return status;
}

uint32_t uct_ha_reg_rkey(const struct uct_ha_mem *mem, unsigned rail_no)
{
    return uct_ha_reg_is_on(mem, rail_no) ? ha_mr_rkey(mem->mr[rail_no]) : 0;
}
