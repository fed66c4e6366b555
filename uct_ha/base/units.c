/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNIT_S       4.096e-6
#define EXPONENT_MAX 31

int uct_ha_auto_int_read(const char *buf, void *dest, const void *arg)
{
    if (strcasecmp(buf, "auto") == 0) {
        *(int *)dest = *(const int *)arg;
        return 1;
    }
    return ucs_config_sscanf_int(buf, dest, NULL);
}

int uct_ha_auto_uint_read(const char *buf, void *dest, const void *arg)
{
    if (strcasecmp(buf, "auto") == 0) {
        *(unsigned *)dest = (unsigned)*(const int *)arg;
        return 1;
    }
    return ucs_config_sscanf_uint(buf, dest, NULL);
}

int uct_ha_auto_write(char *buf, size_t max, const void *src, const void *arg)
{
    int value = *(const int *)src;

    if (value == *(const int *)arg) {
        (void)snprintf(buf, max, "auto");
    } else {
        (void)snprintf(buf, max, "%d", value);
    }
    return 1;
}

void uct_ha_auto_help(char *buf, size_t max, const void *arg)
{
    (void)snprintf(buf, max, "auto (%d) or a number", *(const int *)arg);
}

/* Only digits: an exponent. With a unit: a time. */
int uct_ha_exponent_read(const char *buf, void *dest, const void *arg)
{
    unsigned exponent = 1;
    double   seconds;

    (void)arg;
    if (strspn(buf, "0123456789") == strlen(buf)) {
        return ucs_config_sscanf_uint(buf, dest, NULL);
    }
    if (!ucs_config_sscanf_time(buf, &seconds, NULL) || !(seconds > 0)) {
        return 0;
    }
    while (exponent <= EXPONENT_MAX && UNIT_S * (double)(1ull << exponent) < seconds) {
        exponent++;
    }
    *(unsigned *)dest = exponent; /* one more than there is: the range check names it */
    return 1;
}

int uct_ha_exponent_write(char *buf, size_t max, const void *src, const void *arg)
{
    (void)arg;
    (void)snprintf(buf, max, "%u", *(const unsigned *)src);
    return 1;
}

void uct_ha_exponent_help(char *buf, size_t max, const void *arg)
{
    (void)arg;
    (void)snprintf(buf, max, "an exponent from 1 to 31, or a time such as 268ms");
}
