# SPDX-License-Identifier: BSD-3-Clause
"""Deliberate faults of the engine, as in engine_mutants.py: connections, what goes over them, and neighbours on one
host."""

PEERS = [
    # ---- connections: wire/ ----
    ("flush-of-all", "a flush ends what was posted after it", "test_order:test_flush_covers", [
        ("        if (op->seq > seq) {\n            return;\n        }\n", "")]),
    ("flush-failed-is-well", "a flush that failed confirms what it was to confirm", "test_doors:test_breakdowns", [
        ("    if (status == UCS_OK) {\n        hte_conn_succeeded(conn);\n        covered(conn, flush->seq);",
         "    if (1) {\n        hte_conn_succeeded(conn);\n        covered(conn, flush->seq);")]),
    ("flush-never-dry", "the last WRITEs of all are never confirmed", "test_engine:test_write_then_read", [
        ("outlook == HTE_OUTLOOK_DRY || (outlook", "(outlook"),
        ("    return conn->uncovered * SHARE >= lane->window;", "    return conn->uncovered * SHARE > lane->window;")]),
    ("flush-never-stuck", "who has no slices left waits for a flush that nobody sends", "test_shares:test_many_hang", [
        (" || (outlook == HTE_OUTLOOK_STUCK && conn->flushes_out == 0)) {", ") {")]),
    ("break-not-closed", "a connection that broke is used further", "test_doors:test_breakdowns", [
        ("        conn->step  = HTE_CONN_BROKEN;\n        conn->error = error;", "        conn->error = error;")]),
    ("break-forgets-uncovered", "WRITEs that no flush confirmed before their connection broke are taken for done",
     "test_doors:test_breakdowns", [
        ("        hte_op_fail(op, conn->error);\n    }\n}\n\n/* What UCX has of it, it will keep",
         "        hte_op_event(op, HTE_SLICE_FLUSHED, HTE_OK);\n    }\n}\n\n/* What UCX has of it, it will keep")]),
    ("backoff-none", "a peer that refuses is asked again at once", "test_doors:test_cut_descriptors", [
        ("    conn->retry_at = conn->lane->now + (backoff < BACKOFF_MAX_NS ? backoff : BACKOFF_MAX_NS);",
         "    (void)backoff;")]),
    ("hopeless-never", "a peer that refuses is asked for ever", "test_doors:test_cut_descriptors", [
        ("    return conn->step == HTE_CONN_IDLE && conn->strikes > conn->lane->retry_count && conn->lane->now < conn->retry_at;",
         "    return false;")]),
    ("refresh-never", "a target is never looked at again", "test_faults:test_restarted_target", [
        ("    if (atomic_exchange(&segment->is_refreshing, true)) {\n        return;", "    if (1) {\n        return;")]),
    ("deserted-never", "a process that has ended is waited for as long as a transport does", "test_orphans:test_kill_writes", [
        ("presence == HTE_PRESENCE_NOBODY && segment->was_there", "false && presence == HTE_PRESENCE_NOBODY")]),
    ("other-process-written", "what was meant for a process that has ended goes to the next one of its name",
     "test_faults:test_restarted_target", [
        ("    if (view->incarnation != task->view->incarnation) {\n        *error", "    if (0) {\n        *error"),
        ("    return conn->segment == segment && conn->incarnation == view->incarnation && conn->is_gpu == is_gpu;",
         "    (void)view;\n    return conn->segment == segment && conn->is_gpu == is_gpu;")]),
    ("stale-keys-used", "what is sent again is not checked against the target's new description",
     "test_doors:test_stale_descriptor", [
        ("    } else if (view->serial != task->view->serial) {", "    } else if (0) {")]),
    ("keys-of-any-edition", "memory that was registered anew is accessed with the keys of before",
     "test_order:test_keys_of_an_edition", [
        ("    return keys != NULL && keys->view->serial == view->serial ? keys : hte_keys_renew(newest, view);",
         "    return keys != NULL ? keys : hte_keys_renew(newest, view);")]),
    ("blob-not-padded", "UCX reads beyond an address or key that a peer has cut short", "test_doors:test_breakdowns", [
        ("    char *copy = malloc(blob->length + PADDING);", "    char *copy = malloc(blob->length);"),
        ("        memset(copy + blob->length, 0, PADDING);\n", "")]),
    ("nobody-never", "a dead peer that UCX does not notice is waited for for ever", "test_orphans:test_kill_writes", [
        ("    return conn->is_unguarded &&\n", "    return 0 && conn->is_unguarded &&\n")]),
    ("cancel-in-flight-never", "what is posted to a stopped peer is never given up", "test_deaths:test_stop_target_and_cancel", [
        ("            give_up(op, HTE_ERR_CANCELED);\n", "            (void)op;\n")]),
    ("sweep-never", "a connection to a closed segment is kept", "test_order:test_closed_segment", [
        ("    hte_conns_sweep(lane);\n", "")]),
    ("sweep-too-much", "a connection in use is closed because it rests", "test_order:test_closed_segment", [
        ("!hte_ring_is_empty(&conn->posted) || !is_obsolete(conn)) {", "!hte_ring_is_empty(&conn->posted)) {")]),
    ("require-ignored", "what must not go another way does", "test_near:test_require", [
        ("        return conn->way == HTE_WAY_RDMA;\n    case", "        return true;\n    case"),
        ("        return conn->way == HTE_WAY_SAME_HOST;\n", "        return true;\n")]),

    # ---- letters ----
    ("letter-of-any-region", "a letter to memory that was registered anew is obeyed", "test_letters:test_of_another_registration", [
        ("    if (region == NULL || region->id != id || region->is_gpu) {", "    if (region == NULL || region->is_gpu) {")]),
    ("letter-beyond", "a letter reaches beyond registered memory", "test_spoiled:test_spoiled", [
        ("        if (!hte_region_has(region, (uint64_t)ranges[i].iov_base, ranges[i].iov_len)) {", "        if (0) {")]),
    ("letter-writes-read-only", "a letter writes to memory for reading", "test_letters:test_read_only", [
        ("    if (region->permission == HTE_PERM_GLOBAL_RW || (!is_write && region->permission == HTE_PERM_GLOBAL_RO)) {",
         "    (void)is_write;\n    if (region->permission != HTE_PERM_LOCAL) {")]),
    ("letter-list-unchecked", "a letter lists more ranges than it has bytes for", "test_spoiled:test_spoiled", [
        ("        if (part.length == 0 || part.length > left) {\n            return 0;\n        }\n", "")]),
    ("letter-rest-unchecked", "a letter has more bytes than its ranges", "test_spoiled:test_spoiled", [
        ("    return left == 0 ? count : 0;", "    return count;")]),
    ("letter-of-before-obeyed", "a letter that was given up is obeyed when it comes at last", "test_letters:test_late_letter", [
        ("    if (epoch == origin->epoch) {\n        return HTE_OK;\n    }\n    pthread_rwlock_unlock(&origin->lock);\n    return HTE_ERR_CANCELED;",
         "    return HTE_OK;")]),
    ("letter-epoch-stays", "who gives up a WRITE does not say so", "test_letters:test_given_up", [
        ("            atomic_fetch_add(&lane->rails->epoch, 1); /* and what is still on its way to the target */\n", "")]),
    ("letter-not-voided", "a letter that has not left is sent after its request was given up", "test_letters:test_not_sent", [
        ("            letter->head.region = 0; /* of no registration */\n", "")]),
    ("receipt-of-another", "a refusal in a receipt is taken for the one before it", "test_letters:test_refused_at_the_end", [
        ("last->token == token && last->error == (uint32_t)-error", "last->token == token")]),
    ("answer-of-another", "an answer of another connection is taken", "test_letters:test_wrong_answers", [
        ("    return op != NULL && op->conn->id == conn ? op : NULL;", "    (void)conn;\n    return op;")]),
    ("answer-beyond", "an answer reaches beyond what was asked for", "test_letters:test_wrong_answers", [
        (" else if (length > op->unanswered || head->offset > op->length - length) {", " else if (length > op->unanswered) {")]),
    ("answer-to-a-write", "bytes are written into the memory of a WRITE", "test_letters:test_wrong_answers", [
        ("    if (op == NULL || op->state.is_write) {\n        return;", "    if (op == NULL) {\n        return;")]),
    ("token-again", "an answer that comes late is taken for another request's", "test_letters:test_late_answer", [
        ("    ++slot->generation;\n", "")]),
    ("guest-forgotten-unnoticed", "receipts that the peer has forgotten are waited for for ever", "test_letters:test_forgotten", [
        ("    if (conn->guest != 0 && conn->guest != head->region) {", "    if (0) {")]),
    ("letter-lost-unnoticed", "a letter that UCX lost is taken for sent", "test_doors:test_lost_letters", [
        ("        op->move_error = conn->step == HTE_CONN_UP ? hte_error_of_ucs(status) : conn->error;\n        settle(op);",
         "        (void)op;")]),
    ("flush-letter-lost-unnoticed", "a letter that asks for receipts and was lost is waited for", "test_doors:test_lost_letters", [
        ("    if (letter->head.token == HTE_TOKEN_NONE && status != UCS_OK) {", "    if (0) {")]),

    # ---- neighbours: the same host without UCX ----
    ("stranger-looked-into", "a process that has the number of one that ended is looked into", "test_board:test_strangers", [
        ("        return secret == host->secret ? HTE_OK : HTE_ERR_DEAD_PEER;", "        return HTE_OK;"),
        ("page->version != HTE_BOARD_VERSION || page->secret != host->secret ||", "page->version != HTE_BOARD_VERSION ||")]),
    ("stranger-read", "memory of a process that has the number of one that ended is read", "test_board:*", [
        ("    if (!load->is_write && head != near->host.secret) {\n        return HTE_ERR_DEAD_PEER;\n    }\n", "")]),
    ("slot-unchecked", "memory that was unregistered is moved", "test_board:test_released", [
        ("        if (!is_valid(near, item->slot, item->region)) {\n            item->result = HTE_ERR_RANGE;\n        }\n", "")]),
    ("board-stays", "neighbours are not told of memory that was unregistered", "test_near:test_released_memory", [
        ("    hte_board_remove(&engine->board, regions, count);\n    error = hte_publish(engine);",
         "    error = hte_publish(engine);")]),
    ("neighbour-not-awaited", "memory is given back while a neighbour moves it", "test_board:*", [
        ("    while (busy % 2 == 1 && atomic_load(&seat->busy) == busy && !is_gone(seat) && hte_now() < end) {", "    while (0) {")]),
    ("neighbour-dead-awaited", "a neighbour that was killed while it moved is awaited for long", "test_board:*", [
        ("atomic_load(&seat->busy) == busy && !is_gone(seat) && hte_now() < end", "atomic_load(&seat->busy) == busy && hte_now() < end")]),
    ("seat-of-dead-kept", "the seat of a process that ended is nobody's any more", "test_board:test_seats", [
        ("        if (is_gone(&page->seats[i]) && take(page, i, owner)) {", "        if (0 && take(page, i, owner)) {")]),
    ("seat-busy-inherited", "who takes the seat of one that was killed while it moved seems to move", "test_board:test_seats", [
        ("    if (atomic_load(&page->seats[index].busy) % 2 == 1) {", "    if (0) {")]),
    ("map-any-file", "another file than the one that was described is mapped", "test_board:test_files", [
        ("    if (stat.st_ino == buffer->file_inode && buffer->file_offset <= size &&", "    if (buffer->file_offset <= size &&")]),
    ("map-beyond-file", "memory beyond the end of its file is mapped", "test_board:test_files", [
        ("        buffer->length <= size - buffer->file_offset) {", "        1) {")]),
    ("map-unsealed", "a file that may shrink is mapped", "test_board:test_files", [
        ("    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, stat) != 0) {",
         "    if (seals < 0 || fstat(file, stat) != 0) {")]),
    ("map-after-release", "a mapping of memory that was unregistered is used", "test_board:*", [
        ("    if (buffer->file_inode == 0 || !is_valid(near, buffer->slot, buffer->id)) {", "    if (buffer->file_inode == 0) {"),
        ("        if (!is_valid(near, item->slot, item->region)) {\n            item->result = HTE_ERR_RANGE;\n        }\n", "")]),
    ("fault-always-there", "local memory that is not mapped is said to be the target's", "test_anew:test_read_into_what_may_not_be_written", [
        ("            return HTE_ERR_MEMORY;\n        }\n    }\n    return HTE_ERR_RANGE;",
         "            return HTE_ERR_RANGE;\n        }\n    }\n    return HTE_ERR_RANGE;")]),
    ("fault-of-the-first", "of several that go together the one after the first is blamed", "test_board:test_some_bad", [
        ("            item[from].result = fault_of(load, &item[from], (uint64_t)done);\n            *next             = from + 1;",
         "            item[from].result = HTE_OK;\n            *next             = from + 1;")]),
    ("large-moved-once", "of what is larger than one move only the first part is moved", "test_near:test_larger_than_one_move", [
        ("        load.remote[1]      = (struct iovec){.iov_base = (void *)(op->remote + at), .iov_len = length};",
         "        load.remote[1]      = (struct iovec){.iov_base = (void *)(op->remote), .iov_len = length};")]),
]
