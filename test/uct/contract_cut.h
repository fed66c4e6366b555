/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTRACT_CUT_H_
#define CONTRACT_CUT_H_

/*
 * Hardware under the transport, and how a rail of it is cut. contract_cut_fake.c: made-up hardware of
 * test/glue, linked into the program; contract_cut_command.c: whatever there is, cut by commands.
 */

/* Before the transport is opened: make the hardware, and fill in the settings that are not given. */
void hardware_begin(void);
int  hardware_end(void); /* objects left behind */

int  cut_available(void);
void cut_arm(void); /* what is posted from now on will be under way at the strike */
void cut_strike(void);
void cut_moved(void);  /* waits until the endpoints have */
void cut_over(void);   /* ... and the strike met work: something was replayed, or retired by proof */
void cut_repair(void); /* waits until there is a standby again */

#endif
