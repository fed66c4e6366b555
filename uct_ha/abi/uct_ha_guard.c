/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_guard.h"

#include <stdio.h>
#include <string.h>
#include <ucp/api/ucp.h>

/* A list longer than this is not the list of components. */
#define COMPONENTS_MAX 128
#define TRANSPORTS_MAX 128

/* Only there when UCX keeps statistics, which adds fields to the base classes. */
extern char ucs_stats_node_alloc __attribute__((weak));

/* Built into every libuct: the transport "self" of the component "self". */
static const char known_component[] = "self";

/* UCX's assertions, invisible in its headers, make the context's mutex longer:
 * find out by making one whose mode we know. */
static int async_mode_ok(void)
{
    ucs_async_context_t *async;
    int                  ok;

    if (ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async) != UCS_OK) {
        return 0;
    }
    ok = async->mode == UCS_ASYNC_MODE_POLL;
    ucs_async_context_destroy(async);
    return ok;
}

void uct_ha_guard_facts_get(struct uct_ha_guard_facts *facts)
{
    unsigned release;

    ucp_get_version(&facts->major, &facts->minor, &release);
    facts->version        = ucp_get_version_string();
    facts->has_statistics = (&ucs_stats_node_alloc != NULL);
    facts->components     = &uct_components_list;
    facts->async_mode_ok  = 0; /* asked only when the version is right */
    if ((facts->major == UCT_HA_ABI_VERSION_MAJOR) && (facts->minor == UCT_HA_ABI_VERSION_MINOR)) {
        facts->async_mode_ok = async_mode_ok();
    }
}

static const uct_component_t *find_component(const ucs_list_link_t *components, const char *name)
{
    const uct_component_t *component;
    const ucs_list_link_t *link;
    int                    count = 0;

    for (link = components->next; (link != NULL) && (link != components); link = link->next) {
        component = ucs_container_of(link, uct_component_t, list);
        if (strncmp(component->name, name, UCT_COMPONENT_NAME_MAX) == 0) {
            return component;
        }
        if (++count == COMPONENTS_MAX) {
            break;
        }
    }
    return NULL;
}

static int has_transport(const uct_component_t *component, const char *name)
{
    const ucs_list_link_t *link;
    const uct_tl_t        *tl;
    int                    count = 0;

    for (link = component->tl_list.next; (link != NULL) && (link != &component->tl_list); link = link->next) {
        tl = ucs_container_of(link, uct_tl_t, list);
        if (strncmp(tl->name, name, UCT_TL_NAME_MAX) == 0) {
            return (tl->query_devices != NULL) && (tl->iface_open != NULL) && (tl->config.table != NULL) &&
                   (tl->config.size >= sizeof(uct_iface_config_t));
        }
        if (++count == TRANSPORTS_MAX) {
            break;
        }
    }
    return 0;
}

/* The component's own addresses, as UCX itself initialised them, have to be
 * where our declaration expects them. */
static int layout_ok(const ucs_list_link_t *components)
{
    const uct_component_t *component = find_component(components, known_component);

    return (component != NULL) && (component->query_md_resources != NULL) && (component->md_open != NULL) &&
           (component->rkey_unpack != NULL) && (component->md_config.name != NULL) &&
           (component->md_config.table != NULL) && has_transport(component, known_component);
}

enum uct_ha_guard_verdict uct_ha_guard_judge(const struct uct_ha_guard_facts *facts, const char *own_name)
{
    if ((facts->major != UCT_HA_ABI_VERSION_MAJOR) || (facts->minor != UCT_HA_ABI_VERSION_MINOR)) {
        return UCT_HA_GUARD_VERSION;
    }
    if (facts->has_statistics) {
        return UCT_HA_GUARD_STATISTICS;
    }
    if (!layout_ok(facts->components)) {
        return UCT_HA_GUARD_LAYOUT;
    }
    if (find_component(facts->components, own_name) != NULL) {
        return UCT_HA_GUARD_DUPLICATE;
    }
    if (!facts->async_mode_ok) {
        return UCT_HA_GUARD_ASYNC;
    }
    return UCT_HA_GUARD_OK;
}

/* What is wrong with this UCX, and the way out. */
static void explain(enum uct_ha_guard_verdict verdict, const char **reason, const char **way_out)
{
    switch (verdict) {
    case UCT_HA_GUARD_VERSION:
        *reason  = "another minor version";
        *way_out = "install a ucx-ha for that UCX, or let the program find the UCX that this one is for "
                   "(LD_LIBRARY_PATH)";
        break;
    case UCT_HA_GUARD_STATISTICS:
        *reason  = "built with statistics, which changes its data layouts";
        *way_out = "use a UCX configured without --enable-stats, as distributions build it";
        break;
    case UCT_HA_GUARD_ASYNC:
        *reason  = "built without assertions, which changes its async context";
        *way_out = "use a UCX configured with --enable-assertions, as Debian builds it (its own "
                   "configure-release switches them off)";
        break;
    default:
        *reason  = "its built-in component 'self' does not have the expected layout";
        *way_out = "use a release of this UCX version without changes, as distributions build it";
        break;
    }
}

static char refusal[512];

const char *uct_ha_guard_refusal(void)
{
    return (refusal[0] != '\0') ? refusal : NULL;
}

int uct_ha_guard_pass(const char *own_name)
{
    struct uct_ha_guard_facts facts;
    enum uct_ha_guard_verdict verdict;
    const char               *reason, *way_out;

    uct_ha_guard_facts_get(&facts);
    verdict = uct_ha_guard_judge(&facts, own_name);
    if (verdict == UCT_HA_GUARD_OK) {
        return 1;
    }
    if (verdict == UCT_HA_GUARD_DUPLICATE) {
        ucs_debug("ha_rc: another copy of the transport is loaded already, this one stays idle");
        return 0;
    }
    explain(verdict, &reason, &way_out);
    (void)snprintf(refusal, sizeof(refusal),
                   "ha_rc [HA-401]: the transport was built for UCX %s but runs with UCX %s: %s. It is not "
                   "available; %s",
                   UCT_VERNO_STRING, facts.version, reason, way_out);
    ucs_warn("%s", refusal);
    return 0;
}
