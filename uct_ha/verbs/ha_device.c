/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static ino_t node_of(const struct ha_device *device)
{
    struct stat is;

    return stat(device->path, &is) == 0 ? is.st_ino : 0;
}

/* A process that has changed its root or lost sight of sysfs sees no device at all, and that says nothing: the folder
 * that has them all must be there. */
static int sees_sysfs(const struct ha_device *device)
{
    char        folder[sizeof(device->path)];
    char       *slash;
    struct stat is;

    snprintf(folder, sizeof(folder), "%s", device->path);
    slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder) {
        return 0;
    }
    *slash = '\0';
    return stat(folder, &is) == 0 && is.st_dev == device->sysfs;
}

void ha_device_init(struct ha_device *device, struct ibv_context *ctx, struct ibv_pd *pd)
{
    struct stat is;

    *device = (struct ha_device){.ctx = ctx, .pd = pd};
    snprintf(device->path, sizeof(device->path), "%s", ctx->device->dev_path);
    device->node  = node_of(device);
    device->sysfs = stat(device->path, &is) == 0 ? is.st_dev : 0;
    pthread_mutex_init(&device->lock, NULL);
}

static void close_device(struct ha_device *device)
{
    ibv_dealloc_pd(device->pd);
    ibv_close_device(device->ctx);
}

void ha_device_end(struct ha_device *device)
{
    if (!device->closed) {
        close_device(device);
    }
    pthread_mutex_destroy(&device->lock);
}

/* ---- regions ------------------------------------------------------------------ */

static void link_region(struct ha_device *device, struct ha_mr *mr)
{
    mr->device = device;
    mr->next   = device->regions;
    mr->before = &device->regions;
    if (mr->next != NULL) {
        mr->next->before = &mr->next;
    }
    device->regions = mr;
}

/* What the device knows it by; from here on it knows it no more. */
static struct ibv_mr *unlink_region(struct ha_mr *mr)
{
    struct ibv_mr *region = mr->region;

    *mr->before = mr->next;
    if (mr->next != NULL) {
        mr->next->before = mr->before;
    }
    mr->region = NULL;
    return region;
}

/* As ha_device_use(); but as long as anybody uses one that is being removed, a lane say, so that operations go out over
 * it, memory is made known to it as before. */
static int use_for_memory(struct ha_device *device)
{
    int status;

    pthread_mutex_lock(&device->lock);
    status = device->gone && (device->failed || device->users == 0) ? -ENODEV : 0;
    device->users += status == 0;
    pthread_mutex_unlock(&device->lock);
    return status;
}

int ha_device_reg(struct ha_device *device, void *addr, size_t length, int flags, struct ha_mr **mr_p)
{
    struct ha_mr *mr;
    int           status = use_for_memory(device);

    if (status != 0) {
        return status;
    }
    mr    = calloc(1, sizeof(*mr));
    errno = 0;
    if (mr != NULL) {
        mr->region = ibv_reg_mr(device->pd, addr, length, flags);
    }
    if (mr == NULL || mr->region == NULL) {
        status = mr == NULL ? -ENOMEM : errno != 0 ? -errno : -EIO;
        free(mr);
    } else {
        mr->lkey = mr->region->lkey;
        mr->rkey = mr->region->rkey;
        pthread_mutex_lock(&device->lock);
        link_region(device, mr);
        pthread_mutex_unlock(&device->lock);
        *mr_p = mr;
    }
    ha_device_leave(device);
    return status;
}

void ha_device_dereg(struct ha_mr *mr)
{
    struct ha_device *device = mr->device;
    struct ibv_mr    *region = NULL;

    pthread_mutex_lock(&device->lock);
    if (mr->region != NULL) {
        region = unlink_region(mr);
        device->users++; /* also of one that is gone: it is closed after us */
    }
    pthread_mutex_unlock(&device->lock);
    if (region != NULL) {
        (void)ibv_dereg_mr(region);
        ha_device_leave(device);
    }
    free(mr);
}

/* ---- users -------------------------------------------------------------------- */

int ha_device_use(struct ha_device *device)
{
    int status;

    pthread_mutex_lock(&device->lock);
    status = device->gone ? -ENODEV : 0;
    device->users += status == 0;
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Whoever holds a region may give it back meanwhile, and is a user as long as that takes. */
void ha_device_leave(struct ha_device *device)
{
    struct ibv_mr *region;
    int            last = 0;

    pthread_mutex_lock(&device->lock);
    device->users--;
    while (device->users == 0 && device->gone && device->regions != NULL) {
        region = unlink_region(device->regions);
        device->users++;
        pthread_mutex_unlock(&device->lock);
        (void)ibv_dereg_mr(region);
        pthread_mutex_lock(&device->lock);
        device->users--;
    }
    if (device->users == 0 && device->gone && !device->closed) {
        last = device->closed = 1;
    }
    pthread_mutex_unlock(&device->lock);
    if (last) {
        close_device(device);
    }
}

void ha_device_be_gone(struct ha_device *device, int failed)
{
    pthread_mutex_lock(&device->lock);
    device->gone = 1;
    device->failed |= failed;
    pthread_mutex_unlock(&device->lock);
}

int ha_device_is_removed(const struct ha_device *device)
{
    struct stat is;
    int         there = stat(device->path, &is) == 0;

    if (device->node == 0 || (there ? is.st_ino == device->node : errno != ENOENT)) {
        return 0; /* an error that says something else, says nothing */
    }
    return sees_sysfs(device);
}
