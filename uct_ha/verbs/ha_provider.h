/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PROVIDER_H_
#define HA_PROVIDER_H_

/*
 * Which family a device is of, where that changes how its retries count. Names do
 * not tell: rdma-core renames devices ("rocep59s0f0" is an mlx5), users too. Needs
 * no libibverbs.
 */

#include <stddef.h>
#include <stdint.h>

enum ha_provider {
    HA_PROVIDER_OTHER,
    HA_PROVIDER_MLX5,
    HA_PROVIDER_RXE, /* Soft-RoCE, or a device that names no vendor, as old ones of it did */
};

/* `driver`: of the device's bus, see ha_provider_driver(); `vendor_id` and `part_id` as
 * ibv_query_device() says. */
enum ha_provider ha_provider(const char *driver, uint32_t vendor_id, uint32_t part_id);

/* "mlx5_core" for the device at this place in sysfs; "" for one without hardware. */
void ha_provider_driver(const char *sysfs_path, char *driver, size_t size);

#endif
