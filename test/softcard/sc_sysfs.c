/* SPDX-License-Identifier: BSD-3-Clause */

/* UCX looks whether the device's file is there and may be opened before it asks libibverbs. */

#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char *really(const char *path)
{
    return path != NULL && strncmp(path, "/dev/infiniband/", 16) == 0 ? "/dev/null" : path;
}

EXPORT int stat(const char *path, struct stat *st)
{
    static int (*next)(const char *, struct stat *);

    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "stat");
    }
    return next(really(path), st);
}

EXPORT int access(const char *path, int mode)
{
    static int (*next)(const char *, int);

    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "access");
    }
    return next(really(path), mode);
}
