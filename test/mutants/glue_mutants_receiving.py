# SPDX-License-Identifier: BSD-3-Clause
"""Deliberate faults of the glue, as in glue_mutants.py: credits, receives, and those that lanes share."""

RECEIVING = [
    # ---- credits ----
    ("rx-old-totals-taken", "totals of messages that were held count", "test_old_totals_are_not_taken", [
        ("    if (ucs_unlikely(total != flow->tx_granted) && (int16_t)(total - flow->tx_granted) > 0) {",
         "    if (total != flow->tx_granted) {")]),
    ("reject-keeps-credit", "a refused PUT keeps its credit", "test_refused_put_gives_its_credit_back", [
        ("    } else if (ha_send_op_has_imm(txop->op)) {\n        tx->sent--;",
         "    } else if (0) {\n        tx->sent--;")]),
    ("amo-reply-not-held", "answers to atomics take no regard of credits", "test_answers_wait_for_credits", [
        ("    return uct_ha_tx_has_room(flow) && uct_ha_tx_has_credit(flow);",
         "    return uct_ha_tx_has_room(flow);")]),
    ("credit-waits-too-long", "credits are not told again before the last message about them was acknowledged",
     "test_credits_while_acks_stay_out", [
        (" &&\n           ha_log_op(&flow->tx.log, index)->state == HA_OP_WAIT;",
         ";")]),
    ("credit-never-alone", "credits travel with messages only", "test_credits", [
        ("    if (flow->tx.dead || flow->go.rx_told == flow->go.rx_consumed || credit_waits(flow)) {",
         "    if (1 || credit_waits(flow)) {")]),
    ("sends-without-credit", "messages take no regard of credits", "test_credits", [
        ("                     (message && !uct_ha_tx_has_credit(flow)) ||\n",
         "")]),
    # ---- receiving ----
    ("scarce-is-loss", "who waits for a receive of a process that computes is taken for lost",
     "test_shared_wait_is_no_loss", [
        ("    return conn->peer->scarce ? gone - gone / SCARCE_SLOWER : 0;", "    return 0;")]),
    ("scarce-untold", "who has too few receives does not say so", "test_shared_wait_is_no_loss", [
        ("    return told_once || shared->deaf ||", "    return 0 && told_once && shared->deaf &&")]),
    ("scarce-though-more-come", "who gets more receives as they are used says that there are too few",
     "test_shared_grows_when_low", [
        ("    return told_once || shared->deaf ||", "    return 1 || told_once || shared->deaf ||")]),
    ("scarce-for-ever", "who had few receives once says so for ever", "test_shared_wait_is_no_loss", [
        ("        shared->low = 0;\n", "        ;\n")]),
    ("scarce-said-once", "who had few receives once never says so again", "test_shared_wait_is_no_loss", [
        ("    if (half && !shared->watched && !shared->busy && !shared->deaf) {", "    if (0) {")]),
    ("scarce-before-asked", "the device is taken for asked before it is: what empties the queue meanwhile is not heard",
     "test_shared_asked_too_late", [
        (" && !shared->busy && posted != shared->asked;", " && !shared->busy;")]),
    ("deaf-asked-always", "a card that cannot say that few are left is asked with every packet", "test_shared_empty", [
        ("!shared->busy && !shared->deaf) {", "!shared->busy) {")]),
    ("shared-without-places", "receives that lanes share have no places in the completion queue", "test_shared_receives", [
        ("    uct_ha_room_take_receives(room_of(shared), shared->count - first);\n", "")]),
    ("spare-of-unseen", "a job gives away places that sends may need", "test_places_of_shared_receives", [
        ("ucs_max(room->log_len, room->sends) : logs);", "ucs_max(room->log_len, room->sends) : room->log_len);")]),
    ("spare-of-sends", "places of what is under way are given away", "test_places_of_shared_receives", [
        ("(progress ? ucs_max(room->log_len, room->sends) : logs);", "(progress ? room->log_len : logs);")]),
    ("spare-though-refused", "receives wait for a completion queue that the device will not make deeper",
     "test_places_of_shared_receives", [
        ("    unsigned depth = room->refused ? room->depth : depth_limit(room);", "    unsigned depth = depth_limit(room);")]),
    ("held-mixes-places", "what makes room for more held messages loses their order", "test_held_messages_as_the_window_grows", [
        ("        held[i % count] = lane->held[i % lane->held_len];", "        held[i % lane->held_len] = lane->held[i % lane->held_len];")]),
    ("held-not-more", "a lane that there is has no room for what a larger window lets come early", "test_many_cuts", [
        ("            status = uct_ha_ring_hold_more(road->lane[s], window + UCT_HA_RX_RESERVE);", "            status = 0;")]),
    ("long-rings-take-all", "the first few rings of their own grow as long as there is memory", "test_long_windows_leave_memory", [
        ("owns && window > LONG_WINDOW ? left / LONG_PART : left", "left")]),
    ("long-rings-if-shared", "windows of shared receives grow no further than rings of their own", "test_long_windows_leave_memory", [
        ("owns && window > LONG_WINDOW ? left / LONG_PART : left", "window > LONG_WINDOW ? left / LONG_PART : left")]),
    ("window-takes-memory", "a window that takes no buffers is held back for memory", "test_shared_windows_grow", [
        ("        buffers += is_own(road, s) ? more : uct_ha_shared_lacks(&lanes->shared[s], more);",
         "        buffers += more;")]),
    ("rx-put-keeps-receive", "the receive of a PUT that is counted never goes back", "test_count_flow_of_puts", [
        ("imm >> UCT_HA_IMM_CREDIT_SHIFT);\n    release(lane, place, imm);\n}",
         "imm >> UCT_HA_IMM_CREDIT_SHIFT);\n    (void)place;\n}")]),
    ("chain-told-early", "the peer hears of messages whose receives wait in a chain",
     "test_only_posted_receives_are_told", [
        ("    if (ucs_unlikely(--flow->road.rx_left == 0)) {\n",
         "    flow->go.rx_consumed++;\n    if (--flow->road.rx_left == 0) {\n"
         "        flow->go.rx_consumed = (uint16_t)(flow->go.rx_consumed - flow->road.rx_round);\n")]),
    ("chain-dies-with-lane", "what a lane that ended had in its chain is never told", "test_chains_of_lanes_that_ended", [
        ("    lane->road  = road;\n    lane->room  = &lanes->room[slot];",
         "    lane->road    = road;\n    road->rx_left = road->rx_round;\n    lane->room    = &lanes->room[slot];")]),
    ("chain-backwards", "what was consumed last is posted first", "test_shared_in_turn", [
        ("    *chain->end = recv;\n    chain->end  = &recv->next;\n",
         "    recv->next   = chain->first;\n    chain->first = recv;\n"
         "    for (chain->end = &chain->first; *chain->end != NULL;) {\n"
         "        chain->end = &(*chain->end)->next;\n    }\n")]),
    ("buffers-backwards", "the last buffer of a piece of memory is used first", "test_shared_in_turn", [
        ("        for (unsigned i = chunk->descs; i-- > 0;) {\n", "        for (unsigned i = 0; i < chunk->descs; i++) {\n")]),
    ("credit-keeps-receive", "the receive of a message that grants credits waits in the chain",
     "test_receives_go_back_in_chains", [
        ("        uct_ha_ring_free(place, lane->chain);\n        uct_ha_rx_repost(flow);\n",
         "        uct_ha_ring_free(place, lane->chain);\n")]),
    ("standby-never-looked-at", "completions of standbys are never polled", "test_standby_is_looked_at_rarely", [
        ("ucs_unlikely(iface->patience-- == 0 || slot ==", "ucs_unlikely(slot ==")]),
    ("standby-looked-at-always", "completions of standbys are polled each time", "test_standby_is_looked_at_rarely", [
        ("#define UCT_HA_POLL_RARELY 32", "#define UCT_HA_POLL_RARELY 1")]),
    ("stopping-not-looked-at", "flushes of a lane that is stopped are polled rarely", "test_all_queues_during_a_failover", [
        ("    if (lanes->stopping == 0 && (", "    if ((")]),
    ("rx-held-backwards", "held messages are not delivered", "test_many_cuts", [
        ("    uct_ha_rx_resume(flow);\n    uct_ha_tx_retire(flow);",
         "    uct_ha_tx_retire(flow);")]),
    # ---- messages that the user keeps ----
    ("keep-in-place", "a message that is kept stays where the next one comes to", "test_keep", [
        ("    uct_ha_place_fill(place, lanes->spare[slot], lanes, (int)slot);\n", "")]),
    ("keep-none-held", "a message that was held is not offered", "test_keep_held", [
        ("            uct_ha_rx_am(flow->flows, lane->slot, place, length, imm);\n",
         "            (void)uct_ha_iface_invoke_am(flow->flows->base, imm & UCT_HA_IMM_AM_MASK,\n"
         "                                         (void *)(uintptr_t)place->sge.addr, length, 0);\n")]),
    ("keep-short-ones", "short messages are offered, too", "test_keep_no_short_ones", [
        ("    if (length > UCT_HA_RX_SHORT && ", "    if (length > 64 && ")]),
    ("keep-without-end", "the user may keep any number of messages", "test_keep_no_more_than", [
        ("    if (pool->kept >= pool->kept_max) {", "    if (pool->kept_max == 0) {")]),
    ("keep-asks-each-time", "memory that is not to be had is asked for with each message", "test_keep_without_memory", [
        ("        pool->is_short = 1; /* not", "        pool->is_short = 0; /* not")]),
    ("keep-offer-costs", "a buffer is lost with each offer that is declined", "test_keep", [
        ("(ucs_likely(flows->lanes->spare[slot] != NULL) ||", "(0 ||")]),
    ("keep-never-back", "what the user gives back counts as kept", "test_keep", [
        ("    pool->kept--;\n", "")]),
    ("keep-no-headroom", "who takes it back is entered where the user's part begins", "test_keep", [
        ("    uct_recv_desc(data - pool->headroom) = &pool->taker;", "    uct_recv_desc(data) = &pool->taker;")]),
    # ---- receives that lanes share ----
    ("shared-number-at-once", "the number of a queue pair that is gone leads to the next one of that number at once",
     "test_shared_number_comes_again", [
        ("    if (entry == NULL || *entry != NULL) {", "    if (entry == NULL) {")]),
    ("shared-lost-for-ever", "receives that a dead queue pair took along are never looked for", "test_shared_lost_are_found", [
        ("    shared->marking = MARKED;\n}", "    shared->marking = QUIET;\n}")]),
    ("shared-low-unheard", "that few receives are left is not heard", "test_shared_grows_when_low", [
        ("    shared->soft = ucs_min(2 * shared->soft, shared->most);", "    shared->soft = ucs_min(shared->soft, shared->most);")]),
    ("shared-low-once", "that few receives are left is lost while a job brings more", "test_shared_low_again", [
        ("        shared->again = 1; /* the", "        shared->again = 0; /* the")]),
    ("shared-low-in-vain", "who wanted nothing when the card spoke is never told again", "test_shared_watched_again", [
        ("        shared->watched = 0; /* it says", "        shared->watched = 1; /* it says")]),
    ("shared-chain-for-all", "a chain may be longer than the queue", "test_shared_empty", [
        ("chain_for(ucs_min(shared->wanted, shared->soft));", "chain_for(shared->wanted);")]),
    ("shared-never-wanted-less", "what a connection may send is wanted after its end", "test_shared_receives", [
        ("        uct_ha_shared_want(&road->lanes->shared[slot], -(int32_t)ring->count);\n", "")]),
    ("shared-no-slack", "chains are at the cost of those who were promised a receive", "test_shared_receives", [
        ("ucs_min(wanted + chain_for(wanted), shared->soft)", "ucs_min(wanted, shared->soft)")]),
    ("shared-refused-once", "what the card refused at first is not posted again", "test_refused_now_and_then", [
        ("    return is_refused(shared) || shared->count", "    return (0 && is_refused(shared)) || shared->count")]),
    ("closing-asks", "an interface that closes has the device asked", "test_shared_closing_asks_nothing", [
        ("    if (is_over(shared) || shared->wanted", "    if (shared->wanted")]),
    ("shared-wants-places", "a lane waits for places that sends hold", "test_shared_places_are_taken", [
        ("    if (uct_ha_room_is_deepest(room)) {", "    if (0) {")]),
    ("shared-wants-all-places", "a lane waits for places that are kept for connections to come",
     "test_completions_beside_shared_receives", [
        ("    uint32_t                  count = most_now(shared);", "    uint32_t                  count = shared->most;")]),
    ("short-never-ends", "a lane that lacks a message waits for it for ever", "test_message_lost_with_its_receive", [
        ("    return is_short(lane) && uct_ha_lane_delivered", "    return 0 && is_short(lane) && uct_ha_lane_delivered")]),
]
