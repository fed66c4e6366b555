/* SPDX-License-Identifier: BSD-3-Clause */

/* What an interface and its domain say of themselves: it is complete, it does not contradict itself,
 * and lengths are what is written. */

#include "contract.h"

#include <string.h>

#define FILLED 256

/* A limit for each operation that is announced, and none for others. */
static void limits_fit_flags(const uct_iface_attr_t *attr)
{
    const struct {
        const char *name;
        uint64_t    flag;
        size_t      limit;
    } pairs[] = {
        {"am short", UCT_IFACE_FLAG_AM_SHORT, attr->cap.am.max_short},
        {"am bcopy", UCT_IFACE_FLAG_AM_BCOPY, attr->cap.am.max_bcopy},
        {"am zcopy", UCT_IFACE_FLAG_AM_ZCOPY, attr->cap.am.max_zcopy},
        {"am zcopy pieces", UCT_IFACE_FLAG_AM_ZCOPY, attr->cap.am.max_iov},
        {"put short", UCT_IFACE_FLAG_PUT_SHORT, attr->cap.put.max_short},
        {"put bcopy", UCT_IFACE_FLAG_PUT_BCOPY, attr->cap.put.max_bcopy},
        {"put zcopy", UCT_IFACE_FLAG_PUT_ZCOPY, attr->cap.put.max_zcopy},
        {"put zcopy pieces", UCT_IFACE_FLAG_PUT_ZCOPY, attr->cap.put.max_iov},
        {"get short", UCT_IFACE_FLAG_GET_SHORT, attr->cap.get.max_short},
        {"get bcopy", UCT_IFACE_FLAG_GET_BCOPY, attr->cap.get.max_bcopy},
        {"get zcopy", UCT_IFACE_FLAG_GET_ZCOPY, attr->cap.get.max_zcopy},
        {"get zcopy pieces", UCT_IFACE_FLAG_GET_ZCOPY, attr->cap.get.max_iov},
    };

    report_matter("iface attributes: a limit for each operation announced", 0);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        (void)expect(!has(pairs[i].flag) || pairs[i].limit > 0, "%s is announced, its limit is 0", pairs[i].name);
    }
    (void)expect(attr->cap.am.min_zcopy <= attr->cap.am.max_zcopy &&
                     attr->cap.put.min_zcopy <= attr->cap.put.max_zcopy &&
                     attr->cap.get.min_zcopy <= attr->cap.get.max_zcopy,
                 "a least size above the largest");
    (void)expect(!has(UCT_IFACE_FLAG_AM_SHORT) || attr->cap.am.max_short >= sizeof(uint64_t),
                 "a short message has no room for its header");
    (void)expect(!has(UCT_IFACE_FLAG_AM_ZCOPY) || attr->cap.am.max_hdr <= attr->cap.am.max_zcopy,
                 "a header longer than the message");
    (void)expect(has(UCT_IFACE_FLAG_CONNECT_TO_IFACE) || has(UCT_IFACE_FLAG_CONNECT_TO_EP), "no way to connect");
    (void)expect(!has(UCT_IFACE_FLAG_AM_BCOPY) || has(UCT_IFACE_FLAG_CB_SYNC) || has(UCT_IFACE_FLAG_CB_ASYNC),
                 "no kind of callback");
    (void)expect(!(attr->cap.event_flags & (UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV)) ||
                     (attr->cap.event_flags & (UCT_IFACE_FLAG_EVENT_FD | UCT_IFACE_FLAG_EVENT_ASYNC_CB)),
                 "events without a way to hear of them");
}

static void numbers_are_sane(const uct_iface_attr_t *attr)
{
    uct_iface_attr_t again;

    report_matter("iface attributes: bandwidth, latency, overhead, endpoints, paths", 0);
    (void)expect(attr->bandwidth.dedicated >= 0 && attr->bandwidth.shared >= 0 &&
                     attr->bandwidth.dedicated + attr->bandwidth.shared > 1e6,
                 "less than 1 MB/s");
    (void)expect(attr->latency.c >= 0 && attr->latency.c < 1e-2 && attr->latency.m >= 0 && attr->latency.m < 1e-6,
                 "latency %g + %g n", attr->latency.c, attr->latency.m);
    (void)expect(attr->overhead >= 0 && attr->overhead < 1e-3, "overhead %g", attr->overhead);
    (void)expect(attr->max_num_eps >= 1 && attr->dev_num_paths >= 1, "no endpoint, or no path");
    (void)expect_status(uct_iface_query(world.tx->iface, &again), UCS_OK, "query again");
    (void)expect(memcmp(&again.cap, &attr->cap, sizeof(again.cap)) == 0, "capabilities change from query to query");
}

/* What was written is as long as was said, and the same each time. */
static void length_is(size_t length, ucs_status_t (*get)(uint8_t *to), const char *what)
{
    uint8_t bytes[2][FILLED];

    for (int i = 0; i < 2; i++) {
        memset(bytes[i], i == 0 ? 0x00 : 0xff, FILLED);
        (void)expect_status(get(bytes[i]), UCS_OK, what);
        for (size_t b = length; b < FILLED; b++) {
            if (!expect(bytes[i][b] == (i == 0 ? 0x00 : 0xff), "%s: byte %zu of %zu was written", what, b, length)) {
                break;
            }
        }
    }
    (void)expect(memcmp(bytes[0], bytes[1], length) == 0, "%s: not all of %zu bytes are written", what, length);
}

static ucs_status_t device_address(uint8_t *to)
{
    return uct_iface_get_device_address(world.tx->iface, (void *)to);
}

static ucs_status_t iface_address(uint8_t *to)
{
    return uct_iface_get_address(world.tx->iface, (void *)to);
}

static ucs_status_t ep_address(uint8_t *to)
{
    return uct_ep_get_address(world.tx->ep, (void *)to);
}

/* Padding of UCX's own addresses may be left alone; ours may not. */
static void addresses_are_as_long(const uct_iface_attr_t *attr)
{
    report_matter("addresses: as long as announced, every byte written", 0);
    if (strncmp(settings.transport, "ha_", 3) != 0) {
        report_result("not asked");
        return;
    }
    length_is(attr->device_addr_len, device_address, "device address");
    length_is(attr->iface_addr_len, iface_address, "interface address");
    if (has(UCT_IFACE_FLAG_CONNECT_TO_EP)) {
        length_is(attr->ep_addr_len, ep_address, "endpoint address");
    }
}

static void reachable(void)
{
    const void *iface_addr = has(UCT_IFACE_FLAG_CONNECT_TO_IFACE) ? world.rx->iface_addr : NULL;

    report_matter("is_reachable: the peer is, whoever asks and however often", 0);
    for (int i = 0; i < 3; i++) {
        (void)expect(uct_iface_is_reachable(world.tx->iface, (const void *)world.rx->dev_addr, iface_addr),
                     "it is not");
    }
    if (strncmp(settings.transport, "ha_", 3) == 0) {
        (void)expect(uct_iface_is_reachable(world.tx->iface, (const void *)world.rx->dev_addr, NULL),
                     "not by its device address alone");
        (void)expect(!uct_iface_is_reachable(world.tx->iface, (const void *)world.tx->dev_addr,
                                             (const void *)world.tx->iface_addr),
                     "the interface reaches itself");
    }
}

static void domain_attributes(const uct_md_attr_t *attr)
{
    uct_component_attr_t component = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};

    report_matter("md attributes: component, memory types, keys, CPUs", 0);
    (void)expect_status(uct_component_query(world.tx->component, &component), UCS_OK, "component");
    (void)expect(strcmp(component.name, attr->component_name) == 0, "component '%s' says it is '%s'", component.name,
                 attr->component_name);
    (void)expect(!(attr->cap.flags & UCT_MD_FLAG_REG) || (attr->cap.reg_mem_types & UCS_BIT(UCS_MEMORY_TYPE_HOST)),
                 "it registers, but not the host's memory");
    (void)expect(!(attr->cap.flags & UCT_MD_FLAG_REG) || attr->cap.max_reg > 0, "it registers 0 bytes at most");
    (void)expect(attr->cap.access_mem_types & UCS_BIT(UCS_MEMORY_TYPE_HOST), "the host's memory is not accessible");
    (void)expect(attr->reg_cost.c >= 0 && attr->reg_cost.c < 1 && attr->reg_cost.m >= 0 && attr->reg_cost.m < 1e-6,
                 "registration costs %g + %g n", attr->reg_cost.c, attr->reg_cost.m);
    (void)expect(attr->rkey_packed_size <= 256, "keys of %zu bytes", attr->rkey_packed_size);
    (void)expect(!has(UCT_IFACE_FLAG_AM_ZCOPY) || memory_usable(world.tx),
                 "zero copy, and memory for it not to be had");
}

static void tracer(void *arg, uct_am_trace_type_t type, uint8_t id, const void *data, size_t length, char *buffer,
                   size_t max)
{
    (void)arg;
    (void)type;
    (void)id;
    (void)data;
    (void)length;
    if (max > 0) {
        *buffer = '\0';
    }
}

void check_attributes(void)
{
    limits_fit_flags(&world.tx->attr);
    numbers_are_sane(&world.tx->attr);
    addresses_are_as_long(&world.tx->attr);
    reachable();
    domain_attributes(&world.tx->md_attr);
    report_matter("am tracer: set, and taken away", 0);
    (void)expect_status(uct_iface_set_am_tracer(world.rx->iface, tracer, NULL), UCS_OK, "set");
    (void)expect_status(uct_iface_set_am_tracer(world.rx->iface, NULL, NULL), UCS_OK, "taken away");
}
