/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_provider.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VENDOR_RXE      0xffffffu /* Linux 5.9 and later; nothing before */
#define VENDOR_MELLANOX 0x0002c9u

/* Connect-IB and ConnectX-4 on; below are mlx4 and mthca. BlueField counts apart. */
static int is_mlx5_part(uint32_t part_id)
{
    return (part_id >= 0x1011 && part_id <= 0x10ff) || (part_id >= 0xa2d2 && part_id <= 0xa2ff);
}

/* Soft-RoCE first: until Linux 5.11 it showed the driver of the card beneath it. */
enum ha_provider ha_provider(const char *driver, uint32_t vendor_id, uint32_t part_id)
{
    if (vendor_id == VENDOR_RXE || vendor_id == 0) {
        return HA_PROVIDER_RXE;
    }
    if (strncmp(driver, "mlx5_", 5) == 0 ||
        (driver[0] == '\0' && vendor_id == VENDOR_MELLANOX && is_mlx5_part(part_id))) {
        return HA_PROVIDER_MLX5;
    }
    return HA_PROVIDER_OTHER;
}

void ha_provider_driver(const char *sysfs_path, char *driver, size_t size)
{
    char        path[PATH_MAX], target[PATH_MAX];
    const char *slash;
    ssize_t     length = -1;

    if (snprintf(path, sizeof(path), "%s/device/driver", sysfs_path) < (int)sizeof(path)) {
        length = readlink(path, target, sizeof(target) - 1);
    }
    target[length < 0 ? 0 : length] = '\0';
    slash                           = strrchr(target, '/');
    snprintf(driver, size, "%s", slash == NULL ? target : slash + 1);
}
