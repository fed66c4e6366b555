/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines and transports. An engine of Mooncake's interface is the engine of libhte itself. */
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hte.h"
#include "shim_error.h"
#include "transfer_engine_c.h"

#define PEER_TO_PEER "P2PHANDSHAKE"
#define URL_MAX      1024
#define OPTIONS_MAX  2

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool is_peer_to_peer(const char *metadata)
{
    return !is_given(metadata) || strcmp(metadata, PEER_TO_PEER) == 0;
}

/* A store without scheme is etcd. False: it does not fit. */
static bool store_url(const char *metadata, char url[URL_MAX])
{
    const char *scheme = is_peer_to_peer(metadata) || strstr(metadata, "://") != NULL ? "" : "etcd://";

    return snprintf(url, URL_MAX, "%s%s", scheme, is_given(metadata) ? metadata : PEER_TO_PEER) < URL_MAX;
}

/* "host" of "host", "host:port", "[v6]:port" or a bare v6 address: peer to peer Mooncake chooses the port whatever the
 * name says, and programs start several processes with one name. */
static size_t host_length(const char *name)
{
    const char *colon = strchr(name, ':');
    const char *end   = name[0] == '[' ? strchr(name, ']') : NULL;

    if (end != NULL) {
        return (size_t)(end + 1 - name);
    }
    return colon == NULL || strchr(colon + 1, ':') != NULL ? strlen(name) : (size_t)(colon - name);
}

/* Mooncake's environment variables that change what is chosen; libhte reads its own. */
static size_t options_of_environment(struct hte_option *options)
{
    const char *topology = getenv("MC_CUSTOM_TOPO_JSON");
    size_t      count    = 0;

    if (getenv("MC_FORCE_TCP") != NULL) {
        options[count++] = (struct hte_option){"UCX_TLS", "tcp,self"};
    }
    if (is_given(topology)) {
        options[count++] = (struct hte_option){"topology_file", topology};
    }
    return count;
}

transfer_engine_t createTransferEngine(const char *metadata_conn_string, const char *local_server_name,
                                       const char *ip_or_host_name, uint64_t rpc_port, int auto_discover)
{
    struct hte_option  options[OPTIONS_MAX];
    struct hte_config  config = {.size = sizeof(config), .options = options};
    struct hte_engine *engine = NULL;
    char               url[URL_MAX], host[HTE_NAME_MAX + 1];

    (void)auto_discover; /* libhte always does */
    if (!store_url(metadata_conn_string, url)) {
        shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "the metadata URL is longer than %d bytes", URL_MAX - 1);
        return NULL;
    }
    config.metadata  = url;
    config.bind_host = is_given(ip_or_host_name) ? ip_or_host_name : NULL;
    config.n_options = options_of_environment(options);
    if (is_given(local_server_name) && is_peer_to_peer(metadata_conn_string)) {
        snprintf(host, sizeof(host), "%.*s", (int)host_length(local_server_name), local_server_name);
        config.name = host;
    } else {
        config.name = local_server_name;
        config.port = getenv("MC_LEGACY_RPC_PORT_BINDING") != NULL ? (uint16_t)rpc_port : 0;
    }
    shim_result(__func__, hte_create(&config, &engine));
    return engine;
}

void destroyTransferEngine(transfer_engine_t engine)
{
    hte_destroy(engine);
}

int discoverTopology(transfer_engine_t engine)
{
    return engine != NULL ? 0 : shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "engine is NULL");
}

int getLocalIpAndPort(transfer_engine_t engine, char *buf_out, size_t buf_len)
{
    int error;

    if (buf_out == NULL || buf_len == 0) {
        return shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "there is no room for the name");
    }
    buf_out[0] = '\0';
    error      = hte_local_name(engine, buf_out, buf_len);
    if (error != HTE_OK) {
        buf_out[0] = '\0'; /* callers that look at nothing else send it to their peers */
    }
    return shim_result(__func__, error);
}

/* Whether a port of an RDMA device is active, as the kernel says. */
static bool has_rdma(void)
{
    glob_t states;
    size_t i;
    bool   found = false;

    if (glob("/sys/class/infiniband/*/ports/*/state", 0, NULL, &states) != 0) {
        return false;
    }
    for (i = 0; i < states.gl_pathc && !found; ++i) {
        FILE *file     = fopen(states.gl_pathv[i], "re");
        char  line[32] = "";

        if (file != NULL) {
            found = fgets(line, sizeof(line), file) != NULL && strstr(line, "ACTIVE") != NULL;
            fclose(file);
        }
    }
    globfree(&states);
    return found;
}

transport_t installTransport(transfer_engine_t engine, const char *proto, void **args)
{
    if (engine == NULL || proto == NULL) {
        shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "engine or protocol is NULL");
        return NULL;
    }
    if (args != NULL && args[0] != NULL) {
        shim_refuse(__func__, HTE_ERR_NOT_IMPLEMENTED,
                    "a priority matrix is read when the engine is created: put it "
                    "into a file and set HTE_TOPOLOGY_FILE");
        return NULL;
    }
    if (strcmp(proto, "rdma") == 0 && !has_rdma()) {
        shim_refuse(__func__, HTE_ERR_DEVICE_NOT_FOUND, "'rdma': no port of an RDMA device is active here");
        return NULL;
    }
    if (strcmp(proto, "rdma") != 0 && strcmp(proto, "tcp") != 0) {
        shim_refuse(__func__, HTE_ERR_NOT_IMPLEMENTED,
                    "'%s': libhte goes over UCX; \"rdma\" and \"tcp\" are answered, "
                    "and UCX_TLS chooses",
                    proto);
        return NULL;
    }
    return engine;
}

int uninstallTransport(transfer_engine_t engine, const char *proto)
{
    return engine != NULL && proto != NULL
               ? 0
               : shim_refuse(__func__, HTE_ERR_INVALID_ARGUMENT, "engine or protocol is NULL");
}

void enableGracefulShutdown(transfer_engine_t engine)
{
    (void)engine;
    shim_refuse(__func__, HTE_ERR_NOT_IMPLEMENTED,
                "libhte has no signal handlers; call destroyTransferEngine() in yours");
}
