/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_link.h"

#include <math.h>
#include <stdio.h>

/* Bytes of a packet. */
enum {
    BTH       = 12,
    RETH      = 16,
    ICRC      = 4,
    VCRC      = 2,
    DELIMITER = 2,
    LRH       = 8, /* InfiniBand only */
    GRH       = 40,
    ETHERNET  = 14, /* RoCE only */
};

struct lane {           /* one lane of a link */
    double signal;      /* bits per second on the wire */
    double coded, bits; /* so many of them carry so many */
    double latency;
};

static struct lane lane_of(const struct ha_link *link)
{
    switch (link->speed) {
    case 2: /* DDR */
        return (struct lane){5e9, 10, 8, 2500e-9};
    case 4: /* QDR; 10 and 40 Gbit/s Ethernet says the same */
        return link->ethernet ? (struct lane){10.3125e9, 66, 64, 1300e-9} : (struct lane){10e9, 10, 8, 1300e-9};
    case 8: /* FDR-10 */
        return (struct lane){10.3125e9, 66, 64, 700e-9};
    case 16: /* FDR */
        return (struct lane){14.0625e9, 66, 64, 700e-9};
    case 32: /* EDR */
        return (struct lane){25.78125e9, 66, 64, 600e-9};
    case 64: /* HDR */
        return (struct lane){2 * 25.78125e9, 66, 64, 600e-9};
    case 128: /* NDR */
        return (struct lane){100e9, 66, 64, 600e-9};
    default: /* SDR */
        return (struct lane){2.5e9, 10, 8, 5000e-9};
    }
}

static unsigned lanes_of(const struct ha_link *link)
{
    switch (link->width) {
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    case 16:
        return 2;
    default:
        return 1;
    }
}

double ha_link_wire_speed(const struct ha_link *link)
{
    struct lane lane = lane_of(link);

    return lanes_of(link) * lane.signal * lane.bits / lane.coded / 8;
}

/* Ethernet switches take their time, too. */
double ha_link_latency(const struct ha_link *link)
{
    return lane_of(link).latency + (link->ethernet ? 200e-9 : 0);
}

unsigned ha_link_packet_extra(int ethernet)
{
    return BTH + RETH + ICRC + VCRC + DELIMITER + (ethernet ? GRH + ETHERNET : LRH);
}

/* ---- PCI Express -------------------------------------------------------------------- */

#define TLP_DATA 256.0 /* of a transaction packet; one control packet comes with four */

static double slot_rate(double gtps, unsigned lanes)
{
    int    old  = gtps < 6; /* generation 1 and 2: 8b/10b, other framing */
    double head = old ? 24 : 26, control = 16.0 / 4;
    double code = old ? 8.0 / 10 : 128.0 / 130;

    return gtps * 1e9 / 8 * lanes * code * TLP_DATA / (TLP_DATA + head + control);
}

static int read_number(const char *sysfs_path, const char *name, double *number)
{
    char  path[512];
    FILE *file;
    int   got = 0;

    snprintf(path, sizeof(path), "%s/device/%s", sysfs_path, name);
    file = fopen(path, "re");
    if (file != NULL) {
        got = fscanf(file, "%lf", number) == 1 && *number > 0;
        fclose(file);
    }
    return got;
}

double ha_link_slot_rate(const char *sysfs_path)
{
    double gtps, lanes; /* "8.0 GT/s PCIe", "16" */

    if (!read_number(sysfs_path, "current_link_speed", &gtps) ||
        !read_number(sysfs_path, "current_link_width", &lanes)) {
        return INFINITY;
    }
    return slot_rate(gtps, (unsigned)lanes);
}
