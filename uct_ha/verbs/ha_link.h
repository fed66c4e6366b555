/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_LINK_H_
#define HA_LINK_H_

/*
 * What a port can do, as UCX's own `rc` transports reckon it. UCX compares transports and
 * derives its thresholds from these numbers: with others it would choose differently for no
 * reason. Needs no libibverbs.
 */

/* Codes of the port (InfiniBand specification, PortInfo), and its link layer. */
struct ha_link {
    unsigned width, speed;
    int      ethernet;
};

/* Bytes per second after line coding, seconds. A code that is unknown counts as the slowest. */
double ha_link_wire_speed(const struct ha_link *link);
double ha_link_latency(const struct ha_link *link);

/* Bytes of a packet of a WRITE beside its data. */
unsigned ha_link_packet_extra(int ethernet);

/* Bytes per second of user data through the slot of the device at this place in sysfs; INFINITY
 * when the kernel does not say (no hardware). */
double ha_link_slot_rate(const char *sysfs_path);

#endif
