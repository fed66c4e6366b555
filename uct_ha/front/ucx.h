/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRONT_UCX_H_
#define FRONT_UCX_H_

/*
 * The UCX that this process has loaded, if any: found and asked without linking
 * to it, and without bringing one in.
 */

#define FRONT_UCX_COPIES 2 /* one more than can be served */

struct front_ucx {
    void       *handle; /* of libucp, which also finds what libuct and libucs export */
    unsigned    major;
    unsigned    minor;
    const char *version; /* as it calls itself */
    const char *path;    /* of libucp */
};

/* 1 = there, to be closed with front_ucx_close(); 0 = this process has no UCX;
 * -1 = there, but of unknown version. */
int front_ucx_find(struct front_ucx *ucx);

void front_ucx_close(struct front_ucx *ucx);

/* The first of the names, up to a NULL, that UCX does not export. NULL = all are there. */
const char *front_ucx_missing(const struct front_ucx *ucx, const char *const *names);

/* How many copies of libuct are loaded; paths[] gets at most FRONT_UCX_COPIES of them. */
unsigned front_ucx_copies(const char **paths);

/* dlsym() for functions, of which ISO C knows no conversion. */
int front_function_find(void *handle, const char *name, void *function);

#endif
