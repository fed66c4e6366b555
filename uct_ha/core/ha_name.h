/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_NAME_H_
#define HA_NAME_H_

/* In words, for the log: enum ha_cause, ha_fail, ha_lane_status, ha_proof. */
const char *ha_cause_name(unsigned cause);
const char *ha_fail_name(unsigned fail);
const char *ha_lane_status_name(unsigned st);
const char *ha_proof_name(unsigned kind);

#endif
