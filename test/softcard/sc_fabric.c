/* SPDX-License-Identifier: BSD-3-Clause */
#include "sc_fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sc_lock.h"

#define MAGIC 0x73630002u

const char *sc_fabric_dir(void)
{
    static char dir[200];
    const char *wanted = getenv("SOFTCARD_DIR");

    if (wanted != NULL && *wanted != '\0') {
        snprintf(dir, sizeof(dir), "%s", wanted);
    } else {
        snprintf(dir, sizeof(dir), "/dev/shm/softcard-%u", (unsigned)getuid());
    }
    return dir;
}

static void fabric_path(char *path, size_t size)
{
    snprintf(path, size, "%s/fabric", sc_fabric_dir());
}

static void inbox_path(char *path, size_t size, int place, uint32_t life)
{
    snprintf(path, size, "%s/inbox.%d.%u", sc_fabric_dir(), place, life);
}

/* All changes of membership happen under this lock of the folder. */
static int lock_dir(void)
{
    int fd = open(sc_fabric_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void *map_file(const char *path, size_t size, int flags)
{
    int   fd  = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    void *map = MAP_FAILED;

    if (fd >= 0 && (!(flags & O_CREAT) || ftruncate(fd, (off_t)size) == 0)) {
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    return map == MAP_FAILED ? NULL : map;
}

/* Of a folder that somebody else made: mine, and nobody else may write there? */
static int dir_is_mine(const char *dir)
{
    struct stat st;

    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() && (st.st_mode & 022) == 0;
}

struct sc_fabric *sc_fabric_open(int create)
{
    const char       *dir    = sc_fabric_dir();
    struct sc_fabric *fabric = NULL;
    char              path[256];
    int               lock;

    if (create) {
        (void)mkdir(dir, 0700);
    }
    if (!dir_is_mine(dir)) {
        errno = errno != 0 ? errno : EPERM;
        return NULL;
    }
    fabric_path(path, sizeof(path));
    lock = lock_dir();
    if (lock >= 0) {
        fabric = map_file(path, sizeof(*fabric), create ? O_CREAT : 0);
        if (fabric != NULL && fabric->magic != MAGIC) {
            fabric->random = 88172645463325252ull;
            fabric->magic  = MAGIC;
        }
        close(lock);
    }
    return fabric;
}

void sc_fabric_close(struct sc_fabric *fabric)
{
    munmap(fabric, sizeof(*fabric));
}

/* In clock ticks since boot; 0: no such process. */
static uint64_t process_started(pid_t pid)
{
    char     path[64], text[512], *at;
    uint64_t started = 0;
    FILE    *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    at = fgets(text, sizeof(text), file) != NULL ? strrchr(text, ')') : NULL;
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    if (at != NULL) {
        started = strtoull(at, NULL, 10);
    }
    fclose(file);
    return started;
}

static int is_alive(const struct sc_member *member)
{
    return member->pid != 0 && process_started(member->pid) == member->started;
}

static void vacate(struct sc_fabric *fabric, int place)
{
    char path[256];

    inbox_path(path, sizeof(path), place, fabric->member[place].life);
    (void)unlink(path);
    fabric->member[place].life++;
    fabric->member[place].pid = 0;
}

/* How many are left, without those who died. */
static int reap(struct sc_fabric *fabric)
{
    int alive = 0;

    for (int i = 0; i < SC_PROCS_MAX; i++) {
        if (fabric->member[i].pid != 0 && !is_alive(&fabric->member[i])) {
            vacate(fabric, i);
        }
        alive += fabric->member[i].pid != 0;
    }
    return alive;
}

/* Of those who all died: their faults are not for us. */
static void forget_faults(struct sc_fabric *fabric)
{
    fabric->faulty = 0;
    memset(fabric->port, 0, sizeof(fabric->port));
    memset(fabric->rule, 0, sizeof(fabric->rule));
    memset(fabric->verb, 0, sizeof(fabric->verb));
    fabric->bad_verbs = 0;
}

int sc_fabric_join(struct sc_fabric *fabric, uint32_t host, struct sc_inbox **inbox)
{
    int  lock = lock_dir(), place;
    char path[256];

    if (lock < 0 || fabric->gone) {
        if (lock >= 0) {
            close(lock);
        }
        errno = ESTALE;
        return -1;
    }
    if (reap(fabric) == 0 && !fabric->kept) {
        forget_faults(fabric);
    }
    for (place = 0; place < SC_PROCS_MAX && fabric->member[place].pid != 0; place++) {
    }
    if (place == SC_PROCS_MAX) {
        close(lock);
        errno = EUSERS;
        return -1;
    }
    inbox_path(path, sizeof(path), place, fabric->member[place].life);
    *inbox = map_file(path, sizeof(**inbox), O_CREAT | O_TRUNC);
    if (*inbox != NULL) {
        fabric->member[place].host   = host;
        fabric->member[place].asleep = 0;
        memset(fabric->member[place].objects, 0, sizeof(fabric->member[place].objects));
        fabric->member[place].started = process_started(getpid());
        __atomic_store_n(&fabric->member[place].pid, getpid(), __ATOMIC_RELEASE);
    } else {
        place = -1;
    }
    close(lock);
    return place;
}

static void remove_files(struct sc_fabric *fabric)
{
    char path[256];

    fabric->gone = 1; /* who has it mapped opens it anew */
    fabric_path(path, sizeof(path));
    (void)unlink(path);
    (void)rmdir(sc_fabric_dir());
}

void sc_fabric_leave(struct sc_fabric *fabric, int place)
{
    int lock = lock_dir();

    vacate(fabric, place);
    if (lock < 0) {
        return;
    }
    if (reap(fabric) == 0 && !fabric->kept) {
        remove_files(fabric);
    }
    close(lock);
}

void sc_fabric_remove(struct sc_fabric *fabric)
{
    int lock = lock_dir();

    fabric->kept = 0;
    if (lock >= 0) {
        if (reap(fabric) == 0) {
            remove_files(fabric);
        }
        close(lock);
    }
}

struct sc_inbox *sc_fabric_map(int place, uint32_t life)
{
    char path[256];

    inbox_path(path, sizeof(path), place, life);
    return map_file(path, sizeof(struct sc_inbox), 0);
}

void sc_fabric_unmap(struct sc_inbox *inbox)
{
    munmap(inbox, sizeof(*inbox));
}

void sc_member_ring(struct sc_member *member)
{
    __atomic_fetch_add(&member->bell, 1, __ATOMIC_SEQ_CST);
    sc_futex_wake(&member->bell);
}

void sc_fabric_tell_all(struct sc_fabric *fabric)
{
    __atomic_fetch_add(&fabric->epoch, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < SC_PROCS_MAX; i++) {
        if (fabric->member[i].pid != 0) {
            sc_member_ring(&fabric->member[i]);
        }
    }
}
