# SPDX-License-Identifier: BSD-3-Clause
"""Deliberate faults of the engine, for run_engine_mutants: what decides, what moves, and what is asked of it. Those of
what comes from other processes are in engine_mutants_peers.py.

Each is (name, what is broken, its test, [(text, replacement)...]). A text is found wherever in engine/ it is. The
test is a program of engine/test, and one of its tests or a pattern of them: it has to notice by itself.

Not here, because no test without hardware sees them, or nothing observable is broken by them:
  an engine that ends under a call  memory used after its end, or never freed, is for the address sanitizer
  orphans, keys compared anew       requests that UCX keeps, and keys that matter, are of put and get in hardware
  who refuses before he answered    would need a firewall
  no bound on copies                windows are less, but for unusual settings
  canceled requests posted,         a cancel takes them out of the queue first; hte_enter() refuses a submit behind
  a submit behind the shutdown      the shutdown
  a receipt of too many bytes,      what is left of the operation never comes to nothing; the guard's page is gone by
  a board that is closed            then
  a queue that is not fair, a pack  slower
  of any size, a list checked anew
  each time, a submitter that wakes
  nobody for what he leaves, or
  comes before others
"""

from engine_mutants_peers import PEERS

MUTANTS = [
    # ---- what decides: core/ ----
    ("slice-seen-forgotten", "a WRITE that a flush covers before its own completion never ends", "test_core", [
        ("    if (slice->step == HTE_SLICE_POSTED || slice->step == HTE_SLICE_SEEN) {",
         "    if (slice->step == HTE_SLICE_POSTED) {")]),
    ("slice-flushed-at-once", "a flush ends a WRITE whose memory UCX still has", "test_core", [
        ("            return enter(slice, HTE_SLICE_SEEN, HTE_SLICE_NOTHING);",
         "            return enter(slice, HTE_SLICE_OVER, HTE_SLICE_COMPLETE);")]),
    ("slice-one-try-more", "a slice is tried once more than was asked for", "test_core", [
        ("    if (slice->fails++ >= slice->max_fails) {",
         "    if (slice->fails++ > slice->max_fails) {")]),
    ("piece-latest-error", "a later error takes the place of the first one", "test_core", [
        ("    if (piece->step <= HTE_PIECE_RUNNING) {", "    if (1) {")]),
    ("worse-code-of-timeout", "a time-out hides a failure", "test_core", [
        ("[HTE_TIMEOUT] = 4, [HTE_FAILED] = 5", "[HTE_TIMEOUT] = 5, [HTE_FAILED] = 4")]),
    ("pick-takes-paused", "a device that pauses is taken", "test_core", [
        ("    uint32_t good = all & ~bad & ~pick->paused;", "    uint32_t good = all & ~bad;")]),
    ("pick-takes-bad", "a slice goes again over the device that it failed on", "test_core", [
        ("    uint32_t bad  = pick->bad_rail < 0 ? 0 : 1u << pick->bad_rail;", "    uint32_t bad  = 0;")]),
    ("pause-not-doubled", "a device that fails again pauses no longer than before", "test_core", [
        ("health->last_pause == 0 ? rule->pause : 2 * health->last_pause", "rule->pause")]),
    ("pause-without-another", "the only device pauses", "test_core", [
        ("    if (!has_alternative || hte_rail_is_paused(health, now) ||",
         "    if (hte_rail_is_paused(health, now) ||")]),
    ("cut-rest-alone", "a small rest does not join the slice before it", "test_core", [
        ("(left > slice && left - slice > fragment)", "(left > slice)")]),
    ("cut-over-border", "a slice crosses the border of the target's memory", "test_core", [
        ("    return (length > remote_left) ? remote_left : length;", "    return length;")]),
    ("table-number-again", "a number finds what took its slot later", "test_core", [
        ("    slot->generation = slot->generation == table->gen_mask ? 1 : slot->generation + 1;\n", "")]),
    ("share-takes-all", "who comes first takes all of the pool", "test_shares:test_share", [
        ("share = all + mine < pool ? (pool - all - mine) / 2 : 0;",
         "share = all + mine < pool ? pool - all - mine : 0;")]),

    # ---- batches ----
    ("waiters-before-callback", "who waits for a batch is woken before its callback has run",
     "test_life:test_wait_outlasts_callback", [
        ("    if (atomic_fetch_sub(&batch->unfinished, count) == count) {\n        call_back(batch);\n    }\n"
         "    if (atomic_fetch_sub(&batch->untold, count) == count) {\n        wake_waiters(batch);\n    }",
         "    uint32_t last = atomic_fetch_sub(&batch->unfinished, count) == count;\n"
         "    if (atomic_fetch_sub(&batch->untold, count) == count) {\n        wake_waiters(batch);\n    }\n"
         "    if (last) {\n        call_back(batch);\n    }")]),
    ("free-before-callback", "a batch is freed while its callback runs", "test_life:test_free_outlasts_callback", [
        ("    if (!hte_batch_in_callback()) {\n        wait_for(batch, -1);\n    }\n", "")]),
    ("free-in-callback-waits", "a callback that frees its batch waits for itself", "test_life:test_eventfd_of_another", [
        ("    if (!hte_batch_in_callback()) {", "    if (1) {")]),
    ("eventfd-silent", "the end of a batch is not told to its eventfd", "test_engine:test_callback_and_eventfd", [
        ("    if (batch->eventfd >= 0) {\n        written", "    if (0) {\n        written")]),
    ("eventfd-of-the-caller", "a batch keeps the caller's descriptor, not one of its own", "test_life:test_eventfd_of_another", [
        ("eventfd < 0 ? -1 : fcntl(eventfd, F_DUPFD_CLOEXEC, 0)", "eventfd")]),
    ("status-forgets-worst", "a batch ends as COMPLETED whatever its requests did", "test_faults:test_kill_during_write", [
        ("    merge_worst(&batch->worst, code);\n", "")]),
    ("status-forgets-error", "a batch says no error", "test_faults:test_kill_during_write", [
        ("        atomic_compare_exchange_strong(&batch->first_error, &none, error);\n", "        (void)none;\n")]),
    ("task-best-piece", "a request that was divided ends as its last part did", "test_taken:test_half_lost", [
        ("        task_final(task, old & 0xff, -(old >> 8));", "        task_final(task, piece->code, piece->error);")]),
    ("batch-busy-freed", "a batch with unfinished requests is freed", "test_faults:test_unregister_in_flight", [
        ("    if (atomic_load(&batch->unfinished) > 0) {\n        error = hte_fail(HTE_ERR_BATCH_BUSY",
         "    if (0) {\n        error = hte_fail(HTE_ERR_BATCH_BUSY")]),
    ("batch-over-capacity", "a batch takes more requests than it has room for", "test_engine:test_too_many", [
        ("    if (submission->count > batch->capacity - first) {", "    if (0) {")]),
    ("divide-without-rest", "the last part of a divided request is as long as the others", "test_engine:test_runs", [
        ("i + 1 == count ? task->length - offset : share;", "share;")]),
    ("pack-unlikely", "requests that have nothing in common are one pack", "test_taken:test_in_turn", [
        ("next < end && next->likeness != HTE_UNLIKE && next->length <= small", "next < end && next->length <= small")]),
    ("pack-of-large", "a large request begins a pack", "test_packs:test_large", [
        ("    if (!task->is_plain || length > small) {", "    if (!task->is_plain) {")]),

    # ---- submitting ----
    ("taken-not-given-back", "a submission that is refused keeps what it had taken", "test_taken:test_refused", [
        ("    while (submission->done > 0) {\n        release_sides", "    while (0) {\n        release_sides")]),
    ("alikes-not-pinned", "requests as the one before them hold no registration", "test_taken:test_many_alike", [
        ("        hte_region_pin_many(like->region, like->untaken);\n", "")]),
    ("alikes-unchecked-there", "of requests as the one before them the target's memory is not checked",
     "test_packs:test_checked", [
        ("            !is_inside((uint64_t)request->local, length, addr, size) ||\n"
         "            !is_inside(request->target_offset, length, like.remote, like.size)) {",
         "            !is_inside((uint64_t)request->local, length, addr, size)) {")]),
    ("alikes-unchecked-here", "of requests as the one before them the local memory is not checked",
     "test_packs:test_checked", [
        ("            !is_inside((uint64_t)request->local, length, addr, size) ||\n", "")]),
    ("alikes-of-any-direction", "a READ after WRITEs is a WRITE", "test_taken:test_in_turn", [
        ("        if (request->opcode != like.opcode || request->target", "        if (request->target")]),
    ("alikes-of-any-target", "a request to another target goes to the one of the request before it",
     "test_taken:test_in_turn", [
        ("request->opcode != like.opcode || request->target != like.target ||", "request->opcode != like.opcode ||")]),
    ("continues-on-one-side", "requests whose local memory is one range are one, whatever there is on the other side",
     "test_packs:test_half_continued", [
        ("request->local == local && request->target_offset == remote ?", "request->local == local ?")]),
    ("range-not-asked-again", "what the target registered later is refused", "test_engine:test_segment_changes", [
        ("    error = hte_segment_refresh(&engine->segments, engine->meta, segment);\n    if (error == HTE_ERR_SOCKET",
         "    error = HTE_OK;\n    if (error == HTE_ERR_SOCKET")]),
    ("zero-length-taken", "a request of length 0 is taken", "test_engine:test_bad_requests", [
        ("    if (request->length == 0) {\n        return hte_fail(HTE_ERR_ZERO_LENGTH", "    if (0) {\n        return hte_fail(HTE_ERR_ZERO_LENGTH")]),
    ("list-never-renewed", "a prepared list never learns that its target has changed", "test_lists:test_restarted", [
        ("    if (!hte_take_is_current(submission, list->edition)) {", "    if (0) {")]),
    ("list-released-in-use", "a list that is released forgets what its requests hold", "test_lists:test_released_early", [
        ("    atomic_fetch_add(&edition->refs, (uint32_t)edition->count);\n", "")]),
    ("notice-of-failed", "a batch that failed sends its notification", "test_taken:test_notified_when_all_is_well", [
        ("        atomic_store(&notice->is_void, true);\n", "")]),
    ("notice-too-early", "a notification goes out with the first request that ends", "test_taken:test_notified_when_all_is_well", [
        ("    if (atomic_fetch_sub(&notice->left, 1) != 1) {", "    if (0) {")]),
    ("notice-not-again", "a notification that the target could not take is not sent again", "test_doors:test_slow_target", [
        ("++notice->tries[target] < TRIES && is_worth_another_try(error)", "0")]),
    ("inbox-without-end", "notifications that nobody drains are kept without a bound", "test_taken:test_full_inbox", [
        ("    is_full = notify->n_inbox >= notify->max;", "    is_full = false;")]),

    # ---- registered memory ----
    ("unregister-in-use", "memory of unfinished requests is unregistered", "test_faults:test_unregister_in_flight", [
        ("    if (atomic_load(&(*region)->pins) > 0) {", "    if (0) {")]),
    ("register-by-halves", "of a batch of registrations that fails some stay", "test_engine:test_bad_memory", [
        ("        take_out(engine, regions, done);\n", "")]),
    ("register-twice", "memory is registered twice", "test_engine:test_bad_memory", [
        ("        if (addr < region->addr + region->length && region->addr < addr + memory->length) {\n"
         "            error = hte_fail(HTE_ERR_OVERLAP", "        if (0) {\n            error = hte_fail(HTE_ERR_OVERLAP"),
        ("    if (at < regions->count && regions->list[at]->addr < region->addr + region->length) {", "    if (0) {")]),
    ("register-unmapped", "memory that is not there is registered", "test_anew:test_register_what_is_not_there", [
        ("    error = error == HTE_OK ? check_mapped(memories, count) : error;\n", "")]),
    ("local-published", "memory for this process alone is shown to others", "test_doors:test_permissions", [
        ("        if (engine->regions.list[i]->permission != HTE_PERM_LOCAL) {\n            fill_buffer(",
         "        if (1) {\n            fill_buffer(")]),
    ("read-only-written", "UCX is asked to let others write to memory for reading", "test_doors:test_permissions", [
        ("    case HTE_PERM_GLOBAL_RO:\n        return local | UCP_MEM_MAP_PROT_REMOTE_READ;",
         "    case HTE_PERM_GLOBAL_RO:\n        return local | UCP_MEM_MAP_PROT_REMOTE_READ | UCP_MEM_MAP_PROT_REMOTE_WRITE;")]),
    ("shared-freed-registered", "memory of hte_memory_alloc() is freed while it is registered", "test_near:test_alloc", [
        ("        if (at < region->addr + region->length && region->addr < at + length) {", "        if (0) {")]),
    ("segment-closed-once", "the first close of a segment opened twice closes it", "test_engine:test_segments", [
        ("    if (segment != NULL && --segment->opens == 0) {", "    if (segment != NULL) {")]),

    # ---- threads: run/ ----
    ("queue-priority-reversed", "what is urgent comes last", "test_order:test_priorities", [
        ("    for (i = 0; i < HTE_PRIORITIES && count == 0; ++i) {\n        count = take_priority(queue, flows, i, max, taken);",
         "    for (i = 0; i < HTE_PRIORITIES && count == 0; ++i) {\n"
         "        count = take_priority(queue, flows, HTE_PRIORITIES - 1 - i, max, taken);")]),
    ("queue-rest-forgotten", "what a thread left of a target's requests is never taken", "test_shares:test_write", [
        ("        ++pieces;\n    }\n    atomic_fetch_sub(&queue->count, pieces);\n    if (count > 0) {\n        hte_ring_remove(&line->link);\n    }\n"
         "    if (count > 0 && !hte_ring_is_empty(&line->pieces)) {",
         "        ++pieces;\n    }\n    atomic_fetch_sub(&queue->count, pieces);\n    if (count > 0) {\n        hte_ring_remove(&line->link);\n    }\n"
         "    if (0) {")]),
    ("queue-keeps-canceled", "canceled requests stay in the queue until there is room for them", "test_shares:test_cancel", [
        ("        if (atomic_load(&HTE_OBJECT_OF(link, struct hte_piece, link)->task->is_canceled)) {", "        if (0) {")]),
    ("flow-never-resumed", "a target without room gets none any more", "test_packs:test_mixture", [
        ("        if (hte_flow_room(flows, flow) > 0) {\n            hte_ring_remove(link);", "        if (0) {\n            hte_ring_remove(link);")]),
    ("flow-window-ignored", "UCX is given more than the window", "test_order:test_window_of_reads", [
        ("    flows->with_ucx += slice->op.units;\n    slice->flow->with_ucx += slice->op.units;\n", "    (void)flows;\n    (void)slice;\n"),
        ("    flows->with_ucx -= slice->op.units;\n    slice->flow->with_ucx -= slice->op.units;\n    flows->is_sated = false;",
         "    (void)slice;\n    flows->is_sated = false;")]),
    ("flow-sated-for-ever", "a thread without room does not look again when there is some", "test_shares:test_write", [
        ("    hte_flow_uncount(flows, slice);\n    flows->is_sated = false;", "    hte_flow_uncount(flows, slice);"),
        ("    slice->flow->with_ucx -= slice->op.units;\n    flows->is_sated = false;", "    slice->flow->with_ucx -= slice->op.units;")]),
    ("full-window-spins", "a thread that waits for room never sleeps", "test_shares:test_write", [
        ("return atomic_load(&queue->count) == 0 || (flows->is_sated && atomic_load(&queue->pushes) == flows->seen);",
         "(void)flows;\n    return atomic_load(&queue->count) == 0;")]),
    ("piece-border-once", "the border of the local memory is looked up once only", "test_engine:test_borders", [
        ("    if (local < piece->local_end) {\n        return;", "    if (piece->local_end > 0) {\n        return;")]),
    ("piece-border-there", "the border of the target's memory is looked up once only", "test_engine:test_borders", [
        ("    if (remote < buffer->addr || remote - buffer->addr >= buffer->length) {", "    if (remote < buffer->addr) {")]),
    ("copy-over-itself", "a copy within the process overwrites what it has still to read", "test_engine:test_local_overlap", [
        ("    return (uintptr_t)to - (uintptr_t)from < length;", "    return (void)from, (void)to, (void)length, false;")]),
    ("pack-falls-together", "a request that the target refuses takes its neighbours with it", "test_packs:test_bad_there", [
        ("    if (slice->joined > 1 && is_refusal(error)) {", "    if (0) {")]),
    ("pack-lost-together", "what breaks a connection breaks it for all that go together, each time", "test_packs:test_given_up", [
        ("    slice->joined_fails = state->fails;\n    go_alone(poster, slice);\n    return true;", "    return false;")]),
    ("pack-first-for-all", "a request of a pack that is lost alone ends the others, too", "test_packs:test_bad_there", [
        ("        over(poster, slice, 1, hte_code_of(error), error);", "        over(poster, slice, slice->count, hte_code_of(error), error);")]),
    ("pack-tells-others", "the end of a pack is told of its neighbour in memory", "test_packs:test_mixture", [
        ("poster->n_done > 0 && task == poster->done + poster->n_done && task->batch", "poster->n_done > 0 && task->batch")]),
    ("route-forgets-bad", "what failed on a device is sent over it again", "test_doors:test_failing_device", [
        ("        .bad_rail  = slice->op.state.bad_rail,", "        .bad_rail  = -1,"),
        ("        .paused    = hte_rails_paused(lane->rails, lane->now) |\n"
         "                  hte_conns_unusable(lane, slice->task->segment, slice->task->view, slice->op.is_gpu),",
         "        .paused    = 0,")]),
    ("rail-never-charged", "a device that fails is never left alone", "test_doors:test_failing_device", [
        ("        hte_rail_charge(lane->rails, (unsigned)bad_rail, lane->now);\n", "")]),
    ("load-of-one-thread", "a device's load is what this thread has on it", "test_doors:test_load_of_all_threads", [
        ("atomic_load_explicit(&lane->rails->rail[i].inflight, memory_order_relaxed); /* all threads' */",
         "lane->rail[i].inflight;")]),
    ("timeout-never", "what takes too long is waited for for ever", "test_faults:test_pause_and_timeout", [
        ("    if (run->settings->slice_timeout_ms > 0) {", "    if (0) {")]),
    ("timeout-of-waiting-never", "what waits to be posted is waited for for ever", "test_deaths:test_stop_target_and_time_out", [
        ("    return timeout > 0 && conn->by_letters &&", "    return 0 && timeout > 0 && conn->by_letters &&")]),
    ("destroy-waits-for-paused", "the end of an engine waits for a peer that is stopped", "test_faults:test_destroy_while_paused", [
        ("        hte_conns_break_all(lane, HTE_ERR_CANCELED);\n", ""),
        ("    return lane->now > worker->stop_at + GOODBYE_NS ||\n           (hte_worker_is_bare", "    return (hte_worker_is_bare")]),
    ("shutdown-twice", "an engine that was shut down is ended once more", "test_life:test_calls_after_shutdown", [
        ("!hte_engine_is_foreign(engine) && !engine->is_ended) {", "!hte_engine_is_foreign(engine)) {")]),
    ("child-ends-engine", "a child of fork() ends its parent's engine", "test_fork:test_child_is_refused", [
        ("    if (engine != NULL && !hte_engine_is_foreign(engine)) {\n        hte_shutdown(engine);",
         "    if (engine != NULL) {\n        hte_shutdown(engine);"),
        ("    if (engine != NULL && !hte_engine_is_foreign(engine) && !engine->is_ended) {",
         "    if (engine != NULL && !engine->is_ended) {")]),
] + PEERS
