/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "hte_board.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/hte_now.h"

#define PAGE 4096

/* ---- life ---- */

static struct hte_board_page *map_page(int fd)
{
    void *page;

    if (ftruncate(fd, sizeof(struct hte_board_page)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return NULL;
    }
    page = mmap(NULL, sizeof(struct hte_board_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static struct hte_guard *map_guard(void)
{
    struct hte_guard *guard = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (guard == MAP_FAILED) {
        return NULL;
    }
    if (madvise(guard, PAGE, MADV_DONTFORK) != 0 ||
        getrandom(&guard->secret, sizeof(guard->secret), 0) != sizeof(guard->secret)) {
        munmap(guard, PAGE);
        return NULL;
    }
    guard->secret = (guard->secret & INT64_MAX) | 1;
    return guard;
}

static void let_go(struct hte_board *board)
{
    if (board->page != NULL) {
        munmap(board->page, sizeof(*board->page));
    }
    if (board->guard != NULL) {
        munmap(board->guard, PAGE);
    }
    if (board->fd >= 0) {
        close(board->fd);
    }
    *board = (struct hte_board){.fd = -1};
}

void hte_board_open(struct hte_board *board)
{
    *board       = (struct hte_board){.next = 1};
    board->fd    = memfd_create("hte_board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    board->page  = board->fd < 0 ? NULL : map_page(board->fd);
    board->guard = board->page == NULL ? NULL : map_guard();
    if (board->guard == NULL) {
        let_go(board);
        return;
    }
    board->page->version = HTE_BOARD_VERSION;
    board->page->secret  = board->guard->secret;
    atomic_store(&board->page->is_open, true);
}

/* ---- waiting for neighbours ---- */

static bool is_gone(const struct hte_seat *seat)
{
    pid_t owner = atomic_load(&seat->owner);

    return owner <= 0 || (kill(owner, 0) != 0 && errno == ESRCH);
}

static void await_seat(struct hte_seat *seat, uint64_t end)
{
    static const struct timespec pause = {.tv_nsec = 50000};
    uint64_t                     busy  = atomic_load(&seat->busy);

    while (busy % 2 == 1 && atomic_load(&seat->busy) == busy && !is_gone(seat) && hte_now() < end) {
        nanosleep(&pause, NULL);
    }
}

static void await_neighbours(struct hte_board *board)
{
    uint64_t end  = hte_now() + HTE_BOARD_PATIENCE_NS;
    uint32_t used = atomic_load(&board->page->seats_used), i;

    for (i = 0; i < used && i < HTE_BOARD_SEATS; ++i) {
        await_seat(&board->page->seats[i], end);
    }
}

void hte_board_close(struct hte_board *board)
{
    if (board->page != NULL) {
        atomic_store(&board->page->is_open, false);
        await_neighbours(board);
        let_go(board);
    }
}

/* ---- slots ---- */

void hte_board_add(struct hte_board *board, struct hte_region *region)
{
    uint32_t i, at;

    if (board->page == NULL || region->permission == HTE_PERM_LOCAL) {
        return;
    }
    for (i = 0; i < HTE_BOARD_SLOTS; ++i) {
        at = (board->next + i) % HTE_BOARD_SLOTS;
        if (at != 0 && atomic_load(&board->page->slots[at]) == 0) {
            atomic_store(&board->page->slots[at], region->id);
            region->slot = at;
            board->next  = at + 1;
            return;
        }
    }
}

void hte_board_remove(struct hte_board *board, struct hte_region *const *regions, size_t count)
{
    bool   had_any = false;
    size_t i;

    for (i = 0; i < count; ++i) {
        if (regions[i]->slot != 0 && board->page != NULL) {
            atomic_store(&board->page->slots[regions[i]->slot], 0);
            regions[i]->slot = 0;
            had_any          = true;
        }
    }
    if (had_any) {
        await_neighbours(board);
    }
}

/* ---- seats ---- */

static bool take(struct hte_board_page *page, uint32_t index, int32_t from)
{
    uint32_t used = atomic_load(&page->seats_used);

    while (used <= index && !atomic_compare_exchange_weak(&page->seats_used, &used, index + 1)) {
    }
    if (!atomic_compare_exchange_strong(&page->seats[index].owner, &from, (int32_t)getpid())) {
        return false;
    }
    if (atomic_load(&page->seats[index].busy) % 2 == 1) {
        atomic_fetch_add(&page->seats[index].busy, 1); /* of one that was killed */
    }
    return true;
}

/* First those that are free, then those whose process is gone. */
struct hte_seat *hte_board_sit(struct hte_board_page *page)
{
    uint32_t i;
    int32_t  owner;

    for (i = 0; i < HTE_BOARD_SEATS; ++i) {
        if (atomic_load(&page->seats[i].owner) == 0 && take(page, i, 0)) {
            return &page->seats[i];
        }
    }
    for (i = 0; i < HTE_BOARD_SEATS; ++i) {
        owner = atomic_load(&page->seats[i].owner);
        if (is_gone(&page->seats[i]) && take(page, i, owner)) {
            return &page->seats[i];
        }
    }
    return NULL;
}

void hte_board_rise(struct hte_seat *seat)
{
    atomic_store(&seat->owner, 0);
}
