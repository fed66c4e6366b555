/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "hte_store_driver.h"

#ifdef HAVE_HIREDIS
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "hte_hmac.h"
#include "hte_net.h"

struct state {
    redisContext *context; /* NULL = not connected */
    char          host[HTE_HOST_MAX + 1];
    uint16_t      port;
    int           database;
    char          user[256], password[1024];
    unsigned      connect_ms, answer_ms;
    int64_t       deadline; /* of the call under way */
    size_t        max_value;
};

static int parse_database(const char *path, int *database, struct hte_why *why)
{
    char *end;
    long  value = 0;

    if (path[0] != '\0' && path[1] != '\0') {
        value = strtol(path + 1, &end, 10);
        if (*end != '\0' || value < 0 || value > 1 << 20) {
            return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "metadata URL: '%.64s' is no number of a Redis database",
                               path + 1);
        }
    }
    *database = (int)value;
    return 0;
}

static int open_redis(const struct hte_url *url, const struct hte_store_options *options, void **state,
                      struct hte_why *why)
{
    struct state *made = calloc(1, sizeof(*made));
    int           ret;

    if (made == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for a metadata store");
    }
    ret = hte_net_split(url->place, made->host, &made->port, why);
    if (ret == 0) {
        ret = parse_database(url->path, &made->database, why);
    }
    if (ret != 0) {
        free(made);
        return ret;
    }
    made->port       = made->port != 0 ? made->port : 6379;
    made->connect_ms = options->connect_ms;
    made->answer_ms  = options->answer_ms;
    made->max_value  = options->max_value;
    strcpy(made->user, url->user);
    strcpy(made->password, url->password);
    *state = made;
    return 0;
}

static void disconnect(struct state *state)
{
    if (state->context != NULL) {
        redisFree(state->context);
        state->context = NULL;
    }
}

static void close_redis(void *arg)
{
    struct state *state = arg;

    disconnect(state);
    hte_wipe(state->password, sizeof(state->password));
    free(state);
}

static int complain(const struct state *state, struct hte_why *why, const char *problem)
{
    return hte_why_set(why, HTE_ERR_METADATA, "redis %.200s port %u: %.100s", state->host, state->port, problem);
}

/* Of the call under way, at most so many ms; never 0, which would be no limit. */
static struct timeval time_left(const struct state *state, unsigned most)
{
    int64_t left = state->deadline - hte_net_now();

    left = left < 1 ? 1 : left < most ? left : most;
    return (struct timeval){.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
}

/* The server's answer, to be freed; NULL: the connection is gone, and closed. */
static redisReply *ask(struct state *state, int argc, const char **argv, struct hte_why *why)
{
    redisReply *reply = NULL;

    if (redisSetTimeout(state->context, time_left(state, state->answer_ms)) == REDIS_OK) {
        reply = redisCommandArgv(state->context, argc, argv, NULL);
    }
    if (reply == NULL) {
        complain(state, why, state->context->errstr);
        disconnect(state);
    }
    return reply;
}

/* A command whose answer is not of interest, unless it is an error. */
static int tell(struct state *state, int argc, const char **argv, struct hte_why *why)
{
    redisReply *reply = ask(state, argc, argv, why);
    int         ret;

    if (reply == NULL) {
        return HTE_ERR_METADATA;
    }
    ret = reply->type == REDIS_REPLY_ERROR ? complain(state, why, reply->str) : 0;
    freeReplyObject(reply);
    return ret;
}

static int log_in(struct state *state, struct hte_why *why)
{
    const char *with_user[]    = {"AUTH", state->user, state->password};
    const char *without_user[] = {"AUTH", state->password};
    const char *choose[2]      = {"SELECT"};
    char        number[16];
    int         ret = 0;

    if (state->user[0] != '\0') {
        ret = tell(state, 3, with_user, why);
    } else if (state->password[0] != '\0') {
        ret = tell(state, 2, without_user, why);
    }
    if (ret == 0 && state->database != 0) {
        snprintf(number, sizeof(number), "%d", state->database);
        choose[1] = number;
        ret       = tell(state, 2, choose, why);
    }
    return ret;
}

static int connect_redis(struct state *state, struct hte_why *why)
{
    int ret;

    state->context = redisConnectWithTimeout(state->host, state->port, time_left(state, state->connect_ms));
    if (state->context == NULL || state->context->err != 0) {
        ret = complain(state, why, state->context != NULL ? state->context->errstr : "no memory");
    } else {
        redisEnableKeepAlive(state->context);
        ret = log_in(state, why);
    }
    if (ret != 0) {
        disconnect(state);
    }
    return ret;
}

/* A kept connection may have died with a restarted server: then once more on a fresh one. All our
 * commands may be repeated. NULL: *ret says why. */
static redisReply *command(struct state *state, int argc, const char **argv, int *ret, struct hte_why *why)
{
    bool        fresh = state->context == NULL;
    redisReply *reply;

    state->deadline = hte_net_now() + state->answer_ms;
    *ret            = fresh ? connect_redis(state, why) : 0;
    if (*ret != 0) {
        return NULL;
    }
    reply = ask(state, argc, argv, why);
    if (reply == NULL && !fresh) {
        *ret = connect_redis(state, why);
        if (*ret != 0) {
            return NULL;
        }
        reply = ask(state, argc, argv, why);
    }
    if (reply == NULL) {
        *ret = HTE_ERR_METADATA;
    } else if (reply->type == REDIS_REPLY_ERROR) {
        *ret = complain(state, why, reply->str);
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

static int put_redis(void *arg, const char *key, const char *text, struct hte_why *why)
{
    const char *argv[] = {"SET", key, text};
    int         ret;

    freeReplyObject(command(arg, 3, argv, &ret, why));
    return ret;
}

static int copy_value(struct state *state, const char *key, const redisReply *reply, char **text, struct hte_why *why)
{
    if (reply->type == REDIS_REPLY_NIL) {
        return hte_why_set(why, HTE_ERR_UNKNOWN_SEGMENT, "redis has no key %.200s", key);
    }
    if (reply->type != REDIS_REPLY_STRING || (size_t)reply->len > state->max_value ||
        memchr(reply->str, '\0', (size_t)reply->len) != NULL) {
        return complain(state, why, "the value is too long or no text");
    }
    *text = strdup(reply->str);
    return *text != NULL ? 0 : hte_why_set(why, HTE_ERR_MEMORY, "no memory for a value");
}

static int get_redis(void *arg, const char *key, char **text, struct hte_why *why)
{
    const char *argv[] = {"GET", key};
    int         ret;
    redisReply *reply = command(arg, 2, argv, &ret, why);

    if (reply == NULL) {
        return ret;
    }
    ret = copy_value(arg, key, reply, text, why);
    freeReplyObject(reply);
    return ret;
}

static int remove_redis(void *arg, const char *key, struct hte_why *why)
{
    const char *argv[] = {"DEL", key};
    int         ret;

    freeReplyObject(command(arg, 2, argv, &ret, why));
    return ret;
}

const struct hte_store_driver hte_store_redis = {
    .open = open_redis, .close = close_redis, .put = put_redis, .get = get_redis, .remove = remove_redis};
#else
const struct hte_store_driver hte_store_redis = {.open = NULL};
#endif
