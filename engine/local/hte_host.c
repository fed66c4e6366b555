/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_host.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_MAX 40

static bool read_boot(char *text, size_t size)
{
    int     fd     = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0) {
        close(fd);
    }
    if (length <= 0) {
        return false;
    }
    text[length]              = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* Who may look into whom is not in it: that is tried. Neither is the namespace of IPC: nothing of it is used. */
void hte_host_identity(char text[HTE_HOST_MAX + 1])
{
    char        boot[BOOT_MAX];
    struct stat pids, users;

    text[0] = '\0';
    if (read_boot(boot, sizeof(boot)) && stat("/proc/self/ns/pid", &pids) == 0 &&
        stat("/proc/self/ns/user", &users) == 0) {
        snprintf(text, HTE_HOST_MAX + 1, "%s/%llu/%llu", boot, (unsigned long long)pids.st_ino,
                 (unsigned long long)users.st_ino);
    }
}
