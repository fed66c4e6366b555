# SPDX-License-Identifier: BSD-3-Clause
"""Deliberate faults of the glue, as in glue_mutants.py: what an operation is made of, memory, outages, who is due for
what, terms, and the choice of a proof. Of files that had none.

Not here, because nothing observable is broken by them, or only figures are:
  failures taken with the success  what the first one said is proved by packet numbers
  before them, marks likewise
  a standby that is looked at      slower
  rarely though it had something
  a dead endpoint's lane, its      nobody asks for it any more
  places in lists, what it had out
  a key of any rail, an address    a second condition of the same look-up refuses it
  below the memory
  an outage that begins anew, or   the line in the log, and its figures
  ends with any lane; alarms that
  were false
  a lane that is parked too        the made-up card flushes at once
  shortly
  refused options that are asked   the peer is lost by then
  for again
  an interface that leaves before  the last of its conditions holds it back as long
  all is settled
  a shared receive of a lane that  it is found, as those that a queue pair took along: lane/repost.h
  is gone and is not given back"""

PARTS = [
    # ---- what an operation is made of ----
    ("am-iov-overlaps", "the parts of a short message are laid over each other", "test_short_in_parts", [
        ("        memcpy(out.bytes + offset, iov[i].buffer, iov[i].length * iov[i].count);\n        offset += iov[i].length * iov[i].count;",
         "        memcpy(out.bytes + offset, iov[i].buffer, iov[i].length * iov[i].count);")]),
    ("am-zcopy-without-header", "a message without copy loses its header", "test_messages_both_ways", [
        ("    memcpy(desc->data, header, header_length);\n", "")]),
    ("am-zcopy-too-long", "a message without copy may be longer than the peer's receives", "test_longest_messages", [
        ("    if (ucs_unlikely(length > flow->road.lanes->pool.seg_size ||\n", "    if (ucs_unlikely(0 ||\n")]),
    ("am-short-too-long", "a short message may be longer than the card takes inline", "test_longest_messages", [
        ("    if (ucs_unlikely(length + sizeof(header) > flow->road.lanes->max_inline)) {", "    if (0) {")]),
    ("am-zcopy-without-credit", "a message without copy costs no credit", "test_credit_of_each_kind", [
        ("iov, iovcnt, length - header_length);\n    flow->tx.sent++;", "iov, iovcnt, length - header_length);")]),
    ("am-bcopy-without-credit", "a copied message costs no credit", "test_credit_of_each_kind", [
        ("    out.txop->desc = desc;\n    flow->tx.sent++;", "    out.txop->desc = desc;")]),
    ("am-short-without-credit", "a short message costs no credit", "test_credit_of_each_kind", [
        ("    flow->tx.sent++;\n    uct_ha_go_short(flow, go, &out, 1);", "    uct_ha_go_short(flow, go, &out, 1);")]),
    ("iov-without-memory", "a piece without registration is sent", "test_bad_gather_list", [
        ("        if (iov[i].memh == UCT_MEM_HANDLE_NULL && iov[i].length * iov[i].count != 0) {", "        if (0) {")]),
    ("amo-card-any-op", "the card is asked for what it does not execute", "test_hw_refuses", [
        ("    if (size != sizeof(uint64_t) || (op != UCT_ATOMIC_OP_ADD && op != UCT_ATOMIC_OP_CSWAP)) {",
         "    if (size != sizeof(uint64_t)) {")]),
    ("amo-card-any-size", "the card is asked for 32 bits", "test_hw_refuses", [
        ("    if (size != sizeof(uint64_t) || (op", "    if ((op")]),
    ("amo-card-anywhere", "the card is asked for a word that is not aligned", "test_hw_refuses", [
        ("    if (remote_addr % sizeof(uint64_t) != 0) {", "    if (0) {")]),
    ("amo-while-purging", "an atomic goes out while its endpoint is purged", "test_purge_with_pending_posts", [
        ("    if (flow->purging) {\n        return flow->tx.dead ? flow->status : UCS_ERR_CANCELED;\n    }\n", "")]),
    ("amo-refusal-forgotten", "a flush does not wait for an atomic that was refused", "test_failure_with_pending_posts", [
        ("        flow->amo_refused = 1;\n", "")]),

    # ---- polling ----
    ("poll-shared-uncounted", "shared receives are not counted as consumed", "test_shared_grows_when_low", [
        ("place, &shared->chain);\n        uct_ha_shared_consumed(shared);", "place, &shared->chain);")]),

    # ---- flows ----
    ("resume-forgets-credit", "credits that were due when there was no room are not told later", "test_credits_wait_for_room", [
        ("    if (flow->credit_due) {\n        uct_ha_tx_credit(flow);\n    }\n    uct_ha_amo_resume", "    uct_ha_amo_resume")]),
    ("puts-not-counted", "PUTs to a peer that counts bring no immediate data", "test_old_totals_are_not_taken", [
        ("    flow->put_counts    = (peer->caps & HA_CAP_COUNTED) != 0;", "    flow->put_counts    = 0;")]),

    # ---- memory ----
    ("standby-not-registered", "memory whose key was given away is not known to the standby", "test_failover_with_many_regions", [
        ("    ret = uct_ha_reg_on(mem, duo->rail_no[1]);\n    if (ret < 0) {\n        log_reg_error(__atomic", "    ret = 0;\n    if (ret < 0) {\n        log_reg_error(__atomic")]),
    ("key-of-the-first-twice", "a key names the first rail's registration for both", "test_get_across", [
        ("    put_be32(packed->key[1], key[1]);", "    put_be32(packed->key[1], key[0]);")]),
    ("key-of-a-gone-rail", "memory that was registered after a card had gone has no name for atomics", "test_atomics_after_the_card", [
        ("    put_be32(packed->key[0], key[0] != 0 ? key[0] : key[1]);", "    put_be32(packed->key[0], key[0]);")]),
    ("exposed-for-ever", "atomics by message reach memory that was taken back", "test_atomics_reach_what_is_exposed", [
        ("            uct_ha_exposed_remove(i, ha_mr_rkey(mem->mr[i]));\n", "            ;\n")]),
    ("exposed-beyond", "atomics by message reach beyond registered memory", "test_atomics_reach_what_is_exposed", [
        ("             address - entry->start <= entry->length - size;", "             1;")]),
    ("local-memory-exposed", "memory that is only sent from is open to atomics by message", "test_atomics_reach_what_is_exposed", [
        ("    if ((mem->access & HA_ACCESS_REMOTE_ATOMIC) &&\n        uct_ha_exposed_add(", "    if (uct_ha_exposed_add(")]),
    ("rail-kept-open", "a rail stays open after its last registration", "test_nothing_is_left_behind", [
        ("    if (--place->stats.mrs == 0) {\n        ha_rail_close(place->rail);\n    }", "    --place->stats.mrs;")]),
    ("memory-on-the-gone-first", "memory cannot be registered once the first card is gone", "test_memory_after_the_card", [
        ("    if (ret < 0 && ha_rail_is_gone(duo->rail[0]) && duo->rail[1] != NULL) {", "    if (0) {")]),

    # ---- outages, fences ----
    ("outage-of-standby", "a standby that dies is told as an outage", "test_standby_dies_alone", [
        ("    if (lane->act == 0 || conn->outage_at != 0) {", "    if (conn->outage_at != 0) {")]),
    ("silence-of-probes-only", "how long a lane was silent is what its rail's probes say", "test_acks_lost", [
        ("        silent = ucs_max(silent, now - conn->rto_since);", "        ;")]),

    # ---- who is due ----
    ("due-never-again", "who was looked at once is not looked at again", "test_due_lists", [
        ("    ucs_list_del(&due->touched_link);\n    due->touched = 0;", "    ucs_list_del(&due->touched_link);")]),
    ("due-earlier-lost", "who leaves the heap takes others' time with him", "test_due_first", [
        ("        put(dues, due->at, last);\n        up(dues, last);\n        down(dues, last);", "        put(dues, due->at, last);")]),
    ("due-earlier-unnoticed", "an earlier time is not noticed", "test_due_first", [
        ("    up(dues, due);\n    down(dues, due);\n}", "    down(dues, due);\n}")]),
    ("due-later-unnoticed", "a later time of the first keeps the second waiting", "test_due_first", [
        ("    up(dues, due);\n    down(dues, due);\n}", "    up(dues, due);\n}")]),
    ("due-wants-the-last", "of two things to be sent only the later one is", "test_due_lists", [
        ("    due->want |= (uint8_t)want;", "    due->want = (uint8_t)want;")]),
    ("attention-asleep", "who sleeps is not woken for what needs him", "test_sleep_through_failover", [
        ("    uct_ha_due_touch(&conn->due);\n    uct_ha_wake_progress(&conn->pairs->lanes->wake);", "    uct_ha_due_touch(&conn->due);")]),
    ("attention-todo-lost", "what is to be done is replaced by what comes next", "test_todo_is_kept", [
        ("    conn->todo |= (uint8_t)todo;", "    conn->todo = (uint8_t)todo;")]),

    # ---- looks, terms ----
    ("look-sees-flow", "a lane that stands still seems to move", "test_rail_that_only_carries_puts", [
        ("    int moved = psn != lane->look_psn && now < lane->look_at + RECENT * heartbeat;", "    int moved = 1;\n    (void)heartbeat;")]),
    ("look-sees-none", "a lane that moves seems to stand still", "test_rail_that_only_carries_puts", [
        ("    int moved = psn != lane->look_psn && now < lane->look_at + RECENT * heartbeat;", "    int moved = 0;\n    (void)heartbeat;")]),
    ("terms-reads-of-the-peer", "more READs are under way than the card takes", "test_sides_that_differ", [
        ("(uint8_t)ucs_min(RD_WANTED, limits->max_rd_init);", "(uint8_t)RD_WANTED;")]),
    ("terms-reads-for-the-peer", "the peer is promised more READs than the card answers", "test_sides_that_differ", [
        ("(uint8_t)ucs_min(RD_WANTED, limits->max_rd_resp);", "(uint8_t)RD_WANTED;")]),
    ("failure-said-by-each", "each endpoint of a peer says that it failed", "test_failure_is_said_per_peer", [
        ("    if (peer->told_at != 0 && now - peer->told_at < TELL_AGAIN_NS) {", "    if (0) {")]),
    ("reach-oneself", "an interface reaches itself", "test_not_to_oneself", [
        ("(uct_ha_addr_unpack_iface((const void *)iface_addr, &where) != 0 || where.cookie == iface->pairs.cookie)",
         "uct_ha_addr_unpack_iface((const void *)iface_addr, &where) != 0")]),
    ("zone-forgotten", "a rail's zone is not told", "test_other_zone_is_not_reachable", [
        ("        where.zone = ha_zone_hash(ha_zone_name(&pairs->zones, ha_rail_name(rail), netdev, where.addr.gid));", "        ;")]),

    # ---- choice of proof, leaving ----
    ("proof-unproved-is-psn", "a card whose packet numbers were not seen to be right proves by them", "test_auto_with_a_liar", [
        ("    if (mode == UCT_HA_PROOF_AUTO && test.verdict != UCT_HA_SELFTEST_PASSED) {", "    if (0) {")]),
    ("proof-liar-as-configured", "a liar proves by packet numbers where that was asked for", "test_psn_of_a_liar_is_refused", [
        ("    if (mode == UCT_HA_PROOF_PSN && test.verdict == UCT_HA_SELFTEST_FAILED) {", "    if (0) {")]),
    ("proof-of-one-for-both", "what one rail proves by is said of both", "test_count_on_one_side", [
        ("            iface->pairs.caps |= iface->lanes.proof[s] == HA_PROOF_COUNT ? HA_CAP_COUNTED : HA_CAP_LEDGER;", "            ;")]),
    ("atomics-by-a-counting-card", "atomics go by a card that proves by count", "test_hw_with_count_is_sw", [
        ("        if (iface->lanes.proof[s] == HA_PROOF_COUNT) {\n            ucs_warn(", "        if (0) {\n            ucs_warn(")]),
    ("leave-delivers", "a program is called while its interface leaves", "test_leave_while_peer_sends", [
        ("    iface->flows.discard = 1;\n", "")]),
]
