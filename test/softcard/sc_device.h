/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SC_DEVICE_H_
#define SC_DEVICE_H_

/* Read the environment anew: which devices there are, and of what kind. No device is open. */
void sc_device_forget(void);

#endif
