/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/terms.h"

#include "pair/fact.h"
#include "pair/peer.h"

#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

#define RD_WANTED 16 /* more READs under way than that gain nothing, and cost the device */

void uct_ha_terms_init(struct uct_ha_pairs *pairs)
{
    const struct uct_ha_iface_config *config = pairs->config;
    struct ha_opts                   *opts   = &pairs->opts;

    opts->seg_size      = (uint32_t)config->seg_size;
    opts->rx_queue_len  = (uint16_t)pairs->lanes->rx_window_max;
    opts->timeout       = (uint8_t)config->timeout;
    opts->retry_count   = (uint8_t)config->retry_count;
    opts->rnr_retry     = (uint8_t)config->rnr_retry_count;
    opts->min_rnr_timer = (uint8_t)config->min_rnr_timer;
    for (int s = 0; s < pairs->lanes->slots; s++) {
        const struct ha_rail_limits *limits = ha_rail_limits(pairs->lanes->rail[s]);
        const struct ha_rail_opts   *wishes = ha_rail_opts(pairs->lanes->rail[s]);

        opts->rail[s].rd_init       = (uint8_t)ucs_min(RD_WANTED, limits->max_rd_init);
        opts->rail[s].rd_resp       = (uint8_t)ucs_min(RD_WANTED, limits->max_rd_resp);
        opts->rail[s].sl            = (uint8_t)wishes->sl;
        opts->rail[s].traffic_class = (uint8_t)wishes->traffic_class;
    }
}

static int common_slots(const struct uct_ha_peer *peer)
{
    return peer->slots == HA_SLOTS ? peer->pairs->lanes->slots : 1;
}

/* It works; but a congested switch may favour one direction. Said once per process. */
static void tell_classes(const struct uct_ha_peer *peer)
{
    static int            told;
    const struct ha_opts *own = &peer->pairs->opts;

    for (int s = 0; s < common_slots(peer); s++) {
        if (ha_opts_classes_differ(own, &peer->opts, s) && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
            ucs_warn("ha_rc [HA-321]: %s: peer %016lx uses SL %u and traffic class %u, this side %u and %u: data "
                     "and acknowledgements travel in different classes; give the same UCX_HA_RC_SL and "
                     "UCX_HA_RC_TRAFFIC_CLASS to all processes",
                     ha_rail_name(peer->pairs->lanes->rail[s]), (unsigned long)peer->cookie, peer->opts.rail[s].sl,
                     peer->opts.rail[s].traffic_class, own->rail[s].sl, own->rail[s].traffic_class);
        }
    }
}

static void refuse(struct uct_ha_peer *peer, const char *why)
{
    peer->refused = 1;
    ucs_error("ha_rc [HA-322]: %s: the connect options of peer %016lx are refused: %s",
              ha_rail_name(peer->pairs->lanes->rail[0]), (unsigned long)peer->cookie, why);
    uct_ha_fact_peer_lost_locked(peer, HA_FAIL_OPTIONS);
}

int uct_ha_terms_learn_locked(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    char error[192];

    if (peer->opts_known) {
        return !peer->refused;
    }
    peer->opts_known = 1;
    peer->opts       = header->opts;
    if (ha_opts_check(&peer->pairs->opts, &header->opts, header->credits, common_slots(peer), error, sizeof(error)) !=
        0) {
        refuse(peer, error);
        return 0;
    }
    tell_classes(peer);
    return 1;
}

void uct_ha_terms_tell_version(const char *what, unsigned version, unsigned own)
{
    static int told;

    if (version != own && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        ucs_warn("ha_rc [HA-323]: %s of a peer has version %u, this library speaks version %u: use the same "
                 "libuct_ha.so on all hosts",
                 what, version, own);
    }
}

/* ---- for ucx_vfs ----------------------------------------------------------------- */

static void show_peer(const struct uct_ha_peer *peer, ucs_string_buffer_t *text)
{
    const struct uct_ha_pairs *pairs = peer->pairs;
    struct ha_lane_opts        lane;
    char                       buf[192];

    for (int s = 0; s < common_slots(peer); s++) {
        ha_opts_agree(&pairs->opts, &peer->opts, s, &lane);
        ucs_string_buffer_appendf(text, "%016lx %s: %s, %u to %u messages of %u bytes ahead\n",
                                  (unsigned long)peer->cookie, ha_rail_name(pairs->lanes->rail[s]),
                                  ha_lane_opts_text(&lane, buf, sizeof(buf)), peer->credits, peer->opts.rx_queue_len,
                                  (unsigned)peer->opts.seg_size);
    }
}

static void show(void *obj, ucs_string_buffer_t *text, void *arg, uint64_t number)
{
    struct uct_ha_pairs *pairs = arg;
    struct uct_ha_peer  *peer;

    (void)obj;
    (void)number;
    pthread_mutex_lock(&pairs->lanes->wake.lock);
    ucs_list_for_each (peer, &pairs->peers, list) {
        if (peer->refused) {
            ucs_string_buffer_appendf(text, "%016lx: refused\n", (unsigned long)peer->cookie);
        } else if (peer->opts_known) {
            show_peer(peer, text);
        }
    }
    pthread_mutex_unlock(&pairs->lanes->wake.lock);
}

void uct_ha_terms_vfs(void *obj, struct uct_ha_pairs *pairs)
{
    (void)ucs_vfs_obj_add_ro_file(obj, show, pairs, 0, "ha_connect_options");
}
