/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRONT_SAY_H_
#define FRONT_SAY_H_

/*
 * The one line of this process about why it has no ha_rc.
 */

/* Remember the first fact with its way out, and print what is remembered at the first call that is
 * to be printed. On stderr: UCX's own log cannot be used without knowing which UCX it is; but as
 * UCX's warnings, it is silenced by UCX_LOG_LEVEL=error. */
void front_say(int is_to_print, const char *way_out, const char *fact, ...) __attribute__((format(printf, 3, 4)));

/* What is remembered; NULL when nothing was said. */
const char *front_said(void);

#endif
