/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes on in an engine: load of devices, connections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte.h"
#include "shim_error.h"
#include "transfer_engine_c.h"

/* The engine's lists grow and shrink: room for what there was and some more. What came since is left out. */
#define SPARE 16

static int load_of(struct hte_engine *engine, struct hte_nic_load **loads, size_t *count)
{
    int    error = hte_nic_load(engine, NULL, count);
    size_t room;

    if (error != HTE_OK) {
        return error;
    }
    room   = *count + SPARE;
    *loads = calloc(room, sizeof(**loads));
    if (*loads == NULL) {
        return HTE_ERR_MEMORY;
    }
    *count = room;
    error  = hte_nic_load(engine, *loads, count);
    *count = *count < room ? *count : room;
    return error;
}

static int links_of(struct hte_engine *engine, struct hte_link **links, size_t *count)
{
    int    error = hte_links(engine, NULL, count);
    size_t room;

    if (error != HTE_OK) {
        return error;
    }
    room   = *count + SPARE;
    *links = calloc(room, sizeof(**links));
    if (*links == NULL) {
        return HTE_ERR_MEMORY;
    }
    *count = room;
    error  = hte_links(engine, *links, count);
    *count = *count < room ? *count : room;
    return error;
}

int getNicLoadStats(transfer_engine_t engine, nic_load_stat_t *stats, size_t *count)
{
    struct hte_nic_load *loads = NULL;
    size_t               found, i;
    int                  error;

    if (stats == NULL || count == NULL) {
        return -shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "stats or count is NULL");
    }
    error = load_of(engine, &loads, &found);
    for (i = 0; error == HTE_OK && i < found && i < *count; ++i) {
        snprintf(stats[i].device_name, sizeof(stats[i].device_name), "%s", loads[i].device);
        stats[i].inflight_bytes     = loads[i].inflight;
        stats[i].ewma_bandwidth_bps = (double)loads[i].bandwidth;
    }
    if (error == HTE_OK) {
        *count = found;
    }
    free(loads);
    return -shim_result(__func__, error);
}

/* ---- showLinks ---- */

struct picture {
    struct hte_nic_load *loads;
    struct hte_link     *links;
    char                *topology; /* JSON */
    size_t               n_loads, n_links;
};

static int look(struct hte_engine *engine, struct picture *picture)
{
    int error = load_of(engine, &picture->loads, &picture->n_loads);

    if (error == HTE_OK) {
        error = links_of(engine, &picture->links, &picture->n_links);
    }
    return error != HTE_OK ? error : hte_topology_export(engine, &picture->topology);
}

static void forget(struct picture *picture)
{
    free(picture->loads);
    free(picture->links);
    free(picture->topology);
}

/* A segment's name may have any character in it. */
static void put_string(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\":\"", key);
    for (; *text != '\0'; ++text) {
        if (*text == '"' || *text == '\\') {
            fprintf(out, "\\%c", *text);
        } else if ((unsigned char)*text < ' ') {
            fprintf(out, "\\u%04x", (unsigned char)*text);
        } else {
            fputc(*text, out);
        }
    }
    fputc('"', out);
}

static void put_json(FILE *out, const struct picture *picture)
{
    size_t i;

    fprintf(out, "{\"local_nics\":[");
    for (i = 0; i < picture->n_loads; ++i) {
        fprintf(out, "%s{", i > 0 ? "," : "");
        put_string(out, "device", picture->loads[i].device);
        fprintf(out, ",\"source\":\"libhte\",\"paused\":%s}",
                picture->loads[i].state == HTE_DEVICE_PAUSED ? "true" : "false");
    }
    fprintf(out, "],\"topology\":%s,\"links\":[", picture->topology);
    for (i = 0; i < picture->n_links; ++i) {
        const struct hte_link *link = &picture->links[i];

        fprintf(out, "%s{", i > 0 ? "," : "");
        put_string(out, "local_device", link->local_device);
        fputc(',', out);
        put_string(out, "remote_device", link->remote_device);
        fputc(',', out);
        put_string(out, "peer", link->peer);
        fprintf(out, ",\"connected\":%s,\"transferred\":%llu}", link->connected ? "true" : "false",
                (unsigned long long)link->transferred);
    }
    fprintf(out, "]}\n");
}

static void put_text(FILE *out, const struct picture *picture)
{
    size_t i;

    fprintf(out, "devices:\n");
    for (i = 0; i < picture->n_loads; ++i) {
        fprintf(out, "  %s%s\n", picture->loads[i].device,
                picture->loads[i].state == HTE_DEVICE_PAUSED ? " (paused)" : "");
    }
    fprintf(out, "topology: %s\nconnections:\n", picture->topology);
    for (i = 0; i < picture->n_links; ++i) {
        const struct hte_link *link = &picture->links[i];

        fprintf(out, "  %s -> %s of %s, %s, %llu bytes\n", link->local_device, link->remote_device, link->peer,
                link->connected ? "connected" : "broken", (unsigned long long)link->transferred);
    }
}

/* The picture as text from malloc(); NULL: no memory. */
static char *describe(const struct picture *picture, int json)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *out  = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    (json ? put_json : put_text)(out, picture);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int showLinks(transfer_engine_t engine, char *buf_out, size_t buf_len, int json)
{
    struct picture picture = {0};
    char          *text    = NULL;
    int            result, length;

    if (buf_out == NULL || buf_len == 0) {
        return shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "there is no room for the text");
    }
    buf_out[0] = '\0';
    result     = shim_result(__func__, look(engine, &picture));
    if (result == 0) {
        text = describe(&picture, json);
    }
    forget(&picture);
    if (text == NULL) {
        return result != 0 ? result : shim_refuse(__func__, HTE_ERR_MEMORY, "no memory for the text");
    }
    length = snprintf(buf_out, buf_len, "%s", text);
    free(text);
    return (size_t)length < buf_len
               ? 0
               : shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "%d bytes are needed", length + 1);
}
