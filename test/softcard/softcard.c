/* SPDX-License-Identifier: BSD-3-Clause */

/* softcard: look at the fabric of a user's software cards, and break it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sc_fabric.h"

static const char usage[] =
    "usage: softcard up                              keep the fabric when its last process leaves\n"
    "       softcard down                            ... no more\n"
    "       softcard status                          who takes part, ports, rules\n"
    "       softcard fault down|mute|deaf|noack|fatal PORT\n"
    "       softcard fault loss PORT PER_MILLION\n"
    "       softcard fault rate PORT BYTES            a millisecond, that it sends at most; 0: any number\n"
    "       softcard fault clear [PORT]              without PORT: rules and verbs too\n"
    "       softcard rule drop|duplicate|delay|qp-error|port-down|mute|kill\n"
    "                     [port=PORT] [qpn=N] [op=NAME] [nth=N] [times=N] [ms=N]\n"
    "       softcard verb NAME [skip=N] [times=N] [error=ERRNO] [hang=MS]\n"
    "       softcard seed N\n"
    "\n"
    "PORT is [hHOST/]DEVICE[:NUMBER], as h1/sc0:1; host 0 and port 1 unless said otherwise. `deaf` receives nothing,\n"
    "`mute` sends nothing, `noack` loses its answers, `fatal` is a device that is gone. A rule strikes at packet\n"
    "number nth that its PORT sends and that matches, so many times; `delay` holds it back for ms (10) milliseconds,\n"
    "while others overtake it. qpn is the queue pair at either end. Operations: send write read fetch-add\n"
    "compare-swap ack read-answer atomic-answer datagram. An acknowledgement is sent after the execution.\n"
    "Verbs: open reg_mr create_cq create_qp modify_qp query_qp create_ah post_send.\n"
    "The fabric is in $SOFTCARD_DIR, else in a folder of the user in /dev/shm.\n";

static const char *const op_names[] = {
    "send", "write", "read", "fetch-add", "compare-swap", "ack", "read-answer", "atomic-answer", "datagram", NULL,
};
static const char *const action_names[] = {"",     "drop", "duplicate", "qp-error", "port-down",
                                           "mute", "kill", "delay",     NULL};
static const char *const verb_names[]   = {
      "open", "reg_mr", "create_cq", "create_qp", "modify_qp", "query_qp", "create_ah", "post_send", NULL,
};
static const char *const object_names[] = {"pd", "mr", "cq", "qp", "srq", "ah"};
static const struct {
    const char *name;
    uint32_t    bit;
} troubles[] = {
    {"down", SC_PORT_DOWN},   {"mute", SC_PORT_MUTE},   {"deaf", SC_PORT_DEAF},
    {"noack", SC_PORT_NOACK}, {"fatal", SC_PORT_FATAL},
};

static struct sc_fabric *fabric;

static int complain(const char *what)
{
    fprintf(stderr, "softcard: %s\n", what);
    return 2;
}

/* Place in a list of names, or -1. */
static int find(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (*name != '\0' && strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static unsigned parse_port(const char *text)
{
    unsigned host = 0, device, port = 1;
    int      used = 0;

    if (sscanf(text, "h%u/%n", &host, &used) == 1 && used > 0) {
        text += used;
    }
    if (sscanf(text, "sc%u:%u", &device, &port) < 1 || host >= SC_HOSTS_MAX || device >= SC_DEVICES_MAX || port < 1 ||
        port > SC_PORTS_MAX) {
        return SC_NO_PORT;
    }
    return sc_port_place(host, device, port);
}

static void show_ports(void)
{
    for (unsigned i = 0; i < SC_PORTS; i++) {
        const struct sc_port_state *port = &fabric->port[i];

        if (port->trouble == 0 && port->lossy == 0 && port->rate == 0 && port->dropped == 0) {
            continue;
        }
        printf("port h%u/sc%u:%u", i / (SC_DEVICES_MAX * SC_PORTS_MAX), i / SC_PORTS_MAX % SC_DEVICES_MAX,
               i % SC_PORTS_MAX + 1);
        for (size_t t = 0; t < sizeof(troubles) / sizeof(*troubles); t++) {
            printf("%s%s", port->trouble & troubles[t].bit ? " " : "",
                   port->trouble & troubles[t].bit ? troubles[t].name : "");
        }
        printf(" loss %u rate %u bytes %llu dropped %llu\n", port->lossy, port->rate, (unsigned long long)port->bytes,
               (unsigned long long)port->dropped);
    }
}

static int status(void)
{
    for (int i = 0; i < SC_PROCS_MAX; i++) {
        if (fabric->member[i].pid != 0) {
            const struct sc_member *member = &fabric->member[i];

            printf("process %d host %u place %d", member->pid, member->host, i);
            for (int kind = 0; kind < SC_OBJECTS; kind++) {
                printf(" %s %u", object_names[kind], member->objects[kind]);
            }
            printf("\n");
        }
    }
    show_ports();
    for (int i = 0; i < SC_RULES_MAX; i++) {
        const struct sc_rule *rule = &fabric->rule[i];

        if (rule->action != SC_RULE_NONE) {
            printf("rule %s nth %llu seen %llu done %llu of %llu\n", action_names[rule->action],
                   (unsigned long long)rule->nth, (unsigned long long)rule->seen,
                   (unsigned long long)(rule->done < rule->times ? rule->done : rule->times),
                   (unsigned long long)rule->times);
        }
    }
    return 0;
}

static int clear(const char *port_name)
{
    unsigned place = port_name == NULL ? SC_NO_PORT : parse_port(port_name);

    if (port_name != NULL && place == SC_NO_PORT) {
        return complain("no such port");
    }
    for (unsigned i = 0; i < SC_PORTS; i++) {
        if (port_name == NULL || i == place) {
            __atomic_store_n(&fabric->port[i].trouble, 0, __ATOMIC_SEQ_CST);
            __atomic_store_n(&fabric->port[i].lossy, 0, __ATOMIC_SEQ_CST);
        }
    }
    for (unsigned i = 0; port_name == NULL && i < SC_PORTS; i++) {
        __atomic_store_n(&fabric->port[i].rate, 0, __ATOMIC_SEQ_CST);
    }
    if (port_name == NULL) {
        fabric->faulty = fabric->bad_verbs = 0;
        memset(fabric->rule, 0, sizeof(fabric->rule));
        memset(fabric->verb, 0, sizeof(fabric->verb));
    }
    sc_fabric_tell_all(fabric);
    return 0;
}

static int fault(int argc, char **argv)
{
    unsigned place = argc > 1 ? parse_port(argv[1]) : SC_NO_PORT;

    if (argc > 0 && strcmp(argv[0], "clear") == 0) {
        return clear(argc > 1 ? argv[1] : NULL);
    }
    if (place == SC_NO_PORT) {
        return complain("no such port");
    }
    __atomic_store_n(&fabric->faulty, 1, __ATOMIC_SEQ_CST);
    if (strcmp(argv[0], "loss") == 0 && argc > 2) {
        __atomic_store_n(&fabric->port[place].lossy, (uint32_t)strtoul(argv[2], NULL, 10), __ATOMIC_SEQ_CST);
        return 0;
    }
    if (strcmp(argv[0], "rate") == 0 && argc > 2) {
        __atomic_store_n(&fabric->port[place].rate, (uint32_t)strtoul(argv[2], NULL, 10), __ATOMIC_SEQ_CST);
        return 0;
    }
    for (size_t t = 0; t < sizeof(troubles) / sizeof(*troubles); t++) {
        if (strcmp(argv[0], troubles[t].name) == 0) {
            __atomic_fetch_or(&fabric->port[place].trouble, troubles[t].bit, __ATOMIC_SEQ_CST);
            sc_fabric_tell_all(fabric);
            return 0;
        }
    }
    return complain("no such fault");
}

static int parse_rule(struct sc_rule *rule, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char  *value  = strchr(argv[i], '=');
        size_t length = value == NULL ? 0 : (size_t)(value++ - argv[i]);

        if (length == 4 && strncmp(argv[i], "port", 4) == 0) {
            rule->port = parse_port(value);
            if (rule->port == SC_NO_PORT) {
                return complain("no such port");
            }
        } else if (length == 3 && strncmp(argv[i], "qpn", 3) == 0) {
            rule->qpn = (uint32_t)strtoul(value, NULL, 0);
        } else if (length == 2 && strncmp(argv[i], "op", 2) == 0 && find(op_names, value) >= 0) {
            rule->ops |= 1u << find(op_names, value);
        } else if (length == 3 && strncmp(argv[i], "nth", 3) == 0) {
            rule->nth = strtoull(value, NULL, 0);
        } else if (length == 5 && strncmp(argv[i], "times", 5) == 0) {
            rule->times = strtoull(value, NULL, 0);
        } else if (length == 2 && strncmp(argv[i], "ms", 2) == 0) {
            rule->delay_ms = (uint32_t)strtoul(value, NULL, 0);
        } else {
            return complain(argv[i]);
        }
    }
    return 0;
}

static int add_rule(int argc, char **argv)
{
    struct sc_rule rule   = {.port = SC_NO_PORT, .nth = 1, .times = 1, .delay_ms = 10};
    int            action = argc > 0 ? find(action_names, argv[0]) : -1, wrong;

    if (action < 0) {
        return complain("no such action");
    }
    wrong = parse_rule(&rule, argc, argv);
    for (int i = 0; wrong == 0 && i < SC_RULES_MAX; i++) {
        struct sc_rule *place = &fabric->rule[i];

        if (place->action == SC_RULE_NONE || place->done >= place->times) {
            __atomic_store_n(&place->action, SC_RULE_NONE, __ATOMIC_SEQ_CST);
            *place = rule;
            __atomic_store_n(&place->action, (uint32_t)action, __ATOMIC_RELEASE);
            __atomic_store_n(&fabric->faulty, 1, __ATOMIC_SEQ_CST);
            return 0;
        }
    }
    return wrong != 0 ? wrong : complain("too many rules");
}

static int break_verb(int argc, char **argv)
{
    struct sc_verb_fault value = {.times = 1};
    int                  verb  = argc > 0 ? find(verb_names, argv[0]) : -1;

    if (verb < 0) {
        return complain("no such verb");
    }
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "skip=%u", &value.skip) != 1 && sscanf(argv[i], "times=%u", &value.times) != 1 &&
            sscanf(argv[i], "error=%u", &value.error) != 1 && sscanf(argv[i], "hang=%u", &value.hang_ms) != 1) {
            return complain(argv[i]);
        }
    }
    fabric->verb[verb] = value;
    __atomic_store_n(&fabric->bad_verbs, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static int act(int argc, char **argv)
{
    const char *what = argv[1];

    if (strcmp(what, "up") == 0 || strcmp(what, "down") == 0) {
        fabric->kept = strcmp(what, "up") == 0;
        if (!fabric->kept) {
            sc_fabric_remove(fabric);
        }
        return 0;
    }
    if (strcmp(what, "status") == 0) {
        return status();
    }
    if (strcmp(what, "fault") == 0) {
        return fault(argc - 2, argv + 2);
    }
    if (strcmp(what, "rule") == 0) {
        return add_rule(argc - 2, argv + 2);
    }
    if (strcmp(what, "verb") == 0) {
        return break_verb(argc - 2, argv + 2);
    }
    if (strcmp(what, "seed") == 0 && argc > 2) {
        fabric->random = strtoull(argv[2], NULL, 0) * 2654435761u + 1;
        return 0;
    }
    fputs(usage, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    fabric = sc_fabric_open(strcmp(argv[1], "up") == 0);
    if (fabric == NULL) {
        fprintf(stderr, "softcard: no fabric in %s: %s\n", sc_fabric_dir(), strerror(errno));
        return 1;
    }
    return act(argc, argv);
}
