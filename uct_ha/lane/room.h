/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ROOM_H_
#define UCT_HA_ROOM_H_

/*
 * Room in the completion queue of a rail, one for all lanes of an interface. A
 * queue that overruns is lost, so every completion that may come has a place:
 *
 *   reserved   receives that are posted, and the marker of each lane: they may
 *              all come at once, when a rail is lost; and one send of each lane, that tells
 *              when silent ones hold all the places
 *   sends      posted and not known to have succeeded, silent ones too, since all of
 *              them come when their lane is flushed: counted one by one. As long as the device
 *              allows, the queue holds the full log of every lane; where it does
 *              not (Soft-RoCE ends at 32767), sends share what is left and wait
 *              in their logs for it
 *
 * A lane that is gone keeps its places until its queue pair has been destroyed
 * and the queue was seen empty after that: not every device takes completions of
 * a destroyed queue pair back.
 *
 * Progress changes it, under wake.lock, but for `sends`, which is its own, and uct_ha_room_later(). A job that brings
 * receives for all lanes changes it, too.
 */

#include "base/wake.h"
#include "verbs/ha_qp.h"

struct uct_ha_room {
    struct ha_rail     *rail;
    struct ha_cq       *cq;
    struct uct_ha_wake *wake;
    unsigned            log_len; /* sends that a lane may have under way */
    unsigned            depth, reserved, lanes;
    unsigned            logs;                /* of log_len, that all lanes together may fill */
    unsigned            coming, coming_logs; /* of lanes that are being built */
    unsigned            asked;               /* so deep it will be when the jobs that were asked are done */
    unsigned            sends, sends_max;
    unsigned            sends_go; /* atomic: below so many there is room for one and its mark */
    unsigned            parked;   /* places of lanes that are gone */
    int                 refused;  /* the device made it no deeper, when it was asked last */
    int                 lent;     /* the queue is another room's: the card of this one is gone */
    unsigned            freed;    /* atomic: of these, destroyed */
};

/* A queue for one lane, to begin with; rail, log_len and wake are filled in. 0 or a
 * negative errno value. */
int  uct_ha_room_open(struct uct_ha_room *room);
void uct_ha_room_close(struct uct_ha_room *room);

/* The card is gone, and no lane of it is left: its queue is destroyed by a job, and progress looks into that of
 * `other` instead, where it finds that one's completions. */
void uct_ha_room_leave(struct uct_ha_room *room, const struct uct_ha_room *other, const void *owner, unsigned rail_no);

/* No lane uses the queue, and none is being built for it. */
static inline int uct_ha_room_is_idle(const struct uct_ha_room *room)
{
    return room->lanes == 0 && room->parked == 0 && room->coming == 0;
}

/* Places for a new lane with all of its ring (`receives`; of those that lanes share none), whose sends may fill `logs`,
 * or for more receives: the latter at most in half of what the device allows. 0, -ENOSPC, or -EAGAIN: when lanes that
 * are gone will have been destroyed. */
int uct_ha_room_add_lane(struct uct_ha_room *room, unsigned receives, unsigned logs);
int uct_ha_room_add_receives(struct uct_ha_room *room, unsigned receives);

/* A lane is being built, of so many receives and logs; it is no longer. Without logs: receives that all lanes share. */
void uct_ha_room_expect(struct uct_ha_room *room, unsigned receives, unsigned logs);
void uct_ha_room_forget(struct uct_ha_room *room, unsigned receives, unsigned logs);

/* How deep the queue should be to take all that are being built, 0: it is, or a job was asked to make it so. To do
 * it is a device command, for a job: progress is told, and adds the lanes then without one. */
unsigned uct_ha_room_ask(struct uct_ha_room *room);

/* To do it. Without the lock. 0 or what the device said. */
int uct_ha_room_deepen(const struct uct_ha_room *room, unsigned depth);

/* What came of it; `depth` 0: the device has refused. */
void uct_ha_room_deepened(struct uct_ha_room *room, unsigned depth);

/* The device makes the queue no deeper. */
int uct_ha_room_is_deepest(const struct uct_ha_room *room);

/* Places that more receives which all lanes share may take now, whatever is under way; and as far as the device goes:
 * half of that. For who is not `progress` there are those that no log may ever need. */
unsigned uct_ha_room_spare(const struct uct_ha_room *room, int progress);
unsigned uct_ha_room_could_spare(const struct uct_ha_room *room);
void     uct_ha_room_take_receives(struct uct_ha_room *room, unsigned receives);

/* So many are to come, as uct_ha_room_expect() and uct_ha_room_ask(); the queue is as deep, or what the device said. */
unsigned uct_ha_room_ask_for(struct uct_ha_room *room, unsigned receives);
void     uct_ha_room_have(struct uct_ha_room *room, unsigned receives, unsigned depth, int status);

/* Such a lane has its places, and its log. */
int uct_ha_room_fits(const struct uct_ha_room *room, unsigned receives);

/* It could be deeper, and should be for those that are being built. */
int uct_ha_room_may_grow(const struct uct_ha_room *room);

/* A lane that never came to life gives back what uct_ha_room_add_lane() took. */
void uct_ha_room_undo_lane(struct uct_ha_room *room, unsigned receives, unsigned logs);

/* A lane is no longer looked up: what it has under way keeps its places, which are returned. */
unsigned uct_ha_room_park(struct uct_ha_room *room, unsigned receives, unsigned sends, unsigned logs);

/* Its queue pair is destroyed. Any thread. */
void uct_ha_room_later(struct uct_ha_room *room, unsigned places);

/* Places of destroyed lanes are free once the queue is empty: take them, poll, and then
 * release them, or put them back for the next time. */
unsigned uct_ha_room_take_freed(struct uct_ha_room *room);
void     uct_ha_room_release(struct uct_ha_room *room, unsigned freed);
void     uct_ha_room_put_back(struct uct_ha_room *room, unsigned freed);

/* For an operation and its mark. */
static inline int uct_ha_room_for_send(const struct uct_ha_room *room)
{
    return room->sends < __atomic_load_n(&room->sends_go, __ATOMIC_RELAXED);
}

#endif
