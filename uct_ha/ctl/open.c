/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/beat.h"
#include "ctl/open.h"

#include "base/job.h"
#include "base/now.h"
#include "ctl/async.h"
#include "ctl/flush.h"
#include "ctl/msg.h"
#include "ctl/path.h"
#include "ctl/prom.h"
#include "ctl/tcp.h"
#include "ctl/timer.h"
#include "pair/peer.h"
#include "pair/report.h"

#include <stdlib.h>
#include <string.h>

#define SEC 1000000000ull

static void flush(struct uct_ha_pairs *pairs)
{
    uct_ha_flush_locked(pairs->ctl);
}

static void open_tcp(struct uct_ha_ctl *ctl)
{
    const struct uct_ha_iface_config *config = ctl->pairs->config;
    struct ha_rail_addr               rails[HA_SLOTS];

    for (int s = 0; s < ctl->lanes->slots; s++) {
        rails[s] = ha_rail_addr(ctl->lanes->rail[s]);
    }
    if (config->control != UCT_HA_CONTROL_UD &&
        uct_ha_tcp_open(config->tcp_interface, rails, (unsigned)ctl->lanes->slots, &ctl->lanes->wake.lock,
                        uct_ha_msg_tcp, ctl, &ctl->tcp) != UCS_OK) {
        ctl->tcp = NULL;
    }
}

static ucs_status_t open_ud(struct uct_ha_ctl *ctl)
{
    const struct uct_ha_iface_config *config = ctl->pairs->config;
    struct ha_rail                   *rail;
    unsigned                          opened = 0;
    int                               status = 0, last = 0;

    for (int s = 0; s < ctl->lanes->slots && config->control != UCT_HA_CONTROL_TCP; s++) {
        rail   = ctl->lanes->rail[s];
        status = ha_ud_create(rail, config->ctl_queue_len, HA_PACKET_MTU, &ctl->ud[s]);
        if (status == 0) {
            opened++;
        } else {
            last       = status;
            ctl->ud[s] = NULL;
            ucs_diag("ha_rc [HA-324]: no control queue pair on %s: %s; its control packets take "
                     "another way",
                     ha_rail_name(rail), strerror(-status));
        }
    }
    if (opened == 0 && ctl->tcp == NULL) {
        ucs_error("ha_rc [HA-325]: nothing can carry control packets: %s on the rails (ulimit -l too "
                  "low?), and no TCP address (UCX_HA_RC_CONTROL, UCX_HA_RC_TCP_INTERFACE=%s)",
                  strerror(-last), config->tcp_interface);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

ucs_status_t uct_ha_ctl_open(struct uct_ha_ctl *ctl)
{
    ucs_status_t status;

    uct_ha_report_open();
    ctl->pairs->ctl      = ctl;
    ctl->pairs->flush    = flush;
    ctl->pairs->find_way = uct_ha_path_find;
    ctl->nonce           = (uint32_t)ctl->pairs->cookie;
    ctl->timer_at        = UINT64_MAX;
    ctl->timer_fd        = -1;
    ctl->fresh_ns        = ucs_max(SEC, 3 * ctl->pairs->heartbeat);
    ctl->accepts         = calloc(UCT_HA_ACCEPTS_MAX, sizeof(*ctl->accepts));
    if (ctl->accepts == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    open_tcp(ctl);
    status = open_ud(ctl);
    if (status == UCS_OK) {
        status = uct_ha_async_open(ctl);
    }
    if (status == UCS_OK) {
        uct_ha_prom_open(ctl);
        pthread_mutex_lock(&ctl->lanes->wake.lock);
        uct_ha_timer_set_locked(ctl);
        pthread_mutex_unlock(&ctl->lanes->wake.lock);
    }
    return status;
}

static void drop_job(struct uct_ha_job *job)
{
    free(job); /* these kinds of job begin with it */
}

/* Ways that are let go, or a port that is brought up again: the port goes, too. */
static void end_port_jobs(struct uct_ha_ctl *ctl)
{
    uct_ha_job_cancel(UCT_HA_JOB_PORT, ctl->lanes, uct_ha_job_run);
}

void uct_ha_ctl_stop(struct uct_ha_ctl *ctl)
{
    uct_ha_prom_close(ctl);
    uct_ha_async_close(ctl);
    uct_ha_beat_close(ctl);
    uct_ha_job_cancel(UCT_HA_JOB_RESOLVE, ctl->lanes, drop_job);
    uct_ha_job_cancel(UCT_HA_JOB_RETRY, ctl->lanes, drop_job);
    end_port_jobs(ctl);
    uct_ha_job_cancel(UCT_HA_JOB_LOOK, ctl->lanes, drop_job);
    uct_ha_report_close(uct_ha_now());
}

void uct_ha_ctl_close(struct uct_ha_ctl *ctl)
{
    struct uct_ha_peer *peer, *next;

    pthread_mutex_lock(&ctl->lanes->wake.lock);
    ucs_list_for_each_safe (peer, next, &ctl->pairs->peers, list) {
        uct_ha_path_destroy_peer(peer);
    }
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
    end_port_jobs(ctl);
    if (ctl->tcp != NULL) {
        uct_ha_tcp_close(ctl->tcp);
    }
    for (int s = 0; s < HA_SLOTS; s++) {
        if (ctl->ud[s] != NULL) {
            ha_ud_destroy(ctl->ud[s]);
        }
    }
    free(ctl->accepts);
}
