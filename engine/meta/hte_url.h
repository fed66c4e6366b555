/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_URL_H_
#define HTE_URL_H_

/* scheme://[[user]:password@]place[/path], taken apart. Pure. */

#include "base/hte_why.h"

#define HTE_URL_MAX 2048

struct hte_url {
    char scheme[16];
    char user[256], password[1024]; /* %xx decoded; "" = none */
    /* host[:port], or several with commas or semicolons; lower checks are the user's */
    char place[HTE_URL_MAX];
    char path[HTE_URL_MAX]; /* with its slash; "" = none */
};

int hte_url_parse(const char *text, struct hte_url *url, struct hte_why *why);

#endif
