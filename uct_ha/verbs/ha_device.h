/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_DEVICE_H_
#define HA_DEVICE_H_

/*
 * An open device, and what of it is in use. Some drivers (Soft-RoCE) do not let a device go as long as
 * a process has anything of it open: to take the card out, or to load its driver anew, waits for that. So
 * a device that is gone is closed as soon as nothing of it is in use: its memory regions, then the
 * protection domain and the context. Of the regions only the keys remain, for those who hold them.
 *
 *   users    completion queues, queue pairs, address handles, who listens to events; any call that
 *            needs the context
 *   regions  are no users
 *
 * For the files of this folder only. Threads: any. The lock is held for moments only, and no device
 * command is given under it.
 */

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

struct ha_device {
    struct ibv_context *ctx;
    struct ibv_pd      *pd;
    char                path[IBV_SYSFS_PATH_MAX];
    ino_t               node; /* of its folder in sysfs, 0: it has none */
    dev_t               sysfs;
    pthread_mutex_t     lock;
    unsigned            users;
    int                 gone, failed, closed;
    struct ha_mr       *regions;
};

struct ha_mr {
    struct ha_device *device;
    struct ibv_mr    *region; /* NULL: the device is gone, and knows it no more */
    struct ha_mr     *next, **before;
    uint32_t          lkey, rkey;
};

/* `ctx` and `pd` are owned from here on. */
void ha_device_init(struct ha_device *device, struct ibv_context *ctx, struct ibv_pd *pd);

/* Nobody uses it and no region is left. */
void ha_device_end(struct ha_device *device);

/* 0, or -ENODEV: it is gone. The last one who leaves a device that is gone closes it, which may take a while. */
int  ha_device_use(struct ha_device *device);
void ha_device_leave(struct ha_device *device);

/* Nobody begins to use it from here on. `failed`: it answers no more. */
void ha_device_be_gone(struct ha_device *device, int failed);

/* The kernel has taken its name away, or has it for another device: it is being removed, and waits for who has it
 * open. Not a device command. */
int ha_device_is_removed(const struct ha_device *device);

/* Regions. `flags`: of ibv_reg_mr(). -ENODEV: it has failed, or nobody uses it any more. */
int  ha_device_reg(struct ha_device *device, void *addr, size_t length, int flags, struct ha_mr **mr_p);
void ha_device_dereg(struct ha_mr *mr);

#endif
