/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_UNITS_H_
#define UCT_HA_UNITS_H_

/* Values of knobs as the field writes them: `auto` where a number means "choose", and the card's exponent as a time. */

#include "abi/uct_ha_abi.h"

/* `auto` or a number; the first argument is an int or unsigned, the third points to the int that means auto. */
int  uct_ha_auto_int_read(const char *buf, void *dest, const void *arg);
int  uct_ha_auto_uint_read(const char *buf, void *dest, const void *arg);
int  uct_ha_auto_write(char *buf, size_t max, const void *src, const void *arg);
void uct_ha_auto_help(char *buf, size_t max, const void *arg);

/* An exponent, or a time with its unit: the lowest exponent whose 4.096 us * 2^n is at least that long. */
int  uct_ha_exponent_read(const char *buf, void *dest, const void *arg);
int  uct_ha_exponent_write(char *buf, size_t max, const void *src, const void *arg);
void uct_ha_exponent_help(char *buf, size_t max, const void *arg);

#define UCT_HA_TYPE_AUTO_INT(_value)                                                                      \
    {                                                                                                     \
        .read = uct_ha_auto_int_read, .write = uct_ha_auto_write, .clone = ucs_config_clone_int,          \
        .release = ucs_config_release_nop, .help = uct_ha_auto_help, UCT_HA_CONFIG_NO_DOC.arg = &(_value) \
    }
#define UCT_HA_TYPE_AUTO_UINT(_value)                                                                     \
    {                                                                                                     \
        .read = uct_ha_auto_uint_read, .write = uct_ha_auto_write, .clone = ucs_config_clone_uint,        \
        .release = ucs_config_release_nop, .help = uct_ha_auto_help, UCT_HA_CONFIG_NO_DOC.arg = &(_value) \
    }
#define UCT_HA_TYPE_EXPONENT                                                                             \
    {                                                                                                    \
        .read = uct_ha_exponent_read, .write = uct_ha_exponent_write, .clone = ucs_config_clone_uint,    \
        .release = ucs_config_release_nop, .help = uct_ha_exponent_help, UCT_HA_CONFIG_NO_DOC.arg = NULL \
    }

#endif
