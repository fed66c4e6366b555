# SPDX-License-Identifier: BSD-3-Clause
"""Deliberate faults of the glue, for run_glue_mutants.

Each is (name, what is broken, its test, [(text, replacement)...]). A text is found wherever in
the glue it is. The test is a name or pattern of test_glue's and has to notice by itself.

Not here, because nothing observable is broken by them:
  settle on the first flush      a device flushes receives in the error state only: any flush is behind the barrier
  a fence forgets fetches        an executed fetch is never executed again, and one that was not holds up what follows
  held messages bypassed         rx_slot changes only where what is held is delivered before the next poll
  no attention while closing     the flushes of the lane follow its messages in the queue, and ask for it
  destroy of any generation      the core ends a lane before it begins the next one of that slot
  drained without the marker,    with nothing under way: the marker only says so
  connection number not kept,    defensive: a full table is tried again, a tag names one peer, answers come in order,
  peer of a record, answer's id, and a burst that was cut short goes on at the next flush
  burst of state packets cut
"""

from glue_mutants_parts import PARTS
from glue_mutants_receiving import RECEIVING

MUTANTS = [
    # ---- order: fences, flushes ----
    ("fence-ignored", "what follows a fence does not wait for the data of earlier READs", "test_fence_across", [
        ("    if (ucs_unlikely(ha_log_is_held(&flow->tx.log))) {",
         "    if (0) {")]),
    ("fence-of-interface-ignored", "a fence of the interface is none for its endpoints", "test_interface_fence_across", [
        ("    return flow->fence_next || flow->go.fence_seen != flow->flows->fence_seq;",
         "    return flow->fence_next;")]),
    ("fence-of-endpoint-ignored", "a fence of the endpoint is none", "test_fence_across", [
        ("    uct_ha_ep_flow(tl_ep)->fence_next = 1;\n",
         "    (void)tl_ep;\n")]),
    ("flush-ignores-amo", "a flush ends before atomics by message are answered", "test_flush_awaits_atomics", [
        (" ||\n            (int32_t)(flow->amo_done - flush->amo) < 0 ||",
         " ||")]),
    ("flush-forgets-amo-at-once", "a flush that is asked for later ignores atomics by message", "test_flush_awaits_atomics", [
        ("ha_log_used(&flow->tx.log) == 0 && uct_ha_flow_atomics(flow) == 0 && !uct_ha_flow_ends(flow)",
         "ha_log_used(&flow->tx.log) == 0 && !uct_ha_flow_ends(flow)")]),
    ("flush-waits-as-a-post", "a flush that waits behind an atomic without result is taken for one",
     "test_purge_of_a_flush_behind_posts", [
        ("        flow->amo_refused = 0;\n        return UCS_ERR_NO_RESOURCE;\n    }\n    if (ha_log_used",
         "        return UCS_ERR_NO_RESOURCE;\n    }\n    if (ha_log_used"),
        ("    flow->amo_refused = 0; /* it was about this one */\n", "")]),
    ("memory-on-a-gone-card-fails", "an operation whose card is gone fails instead of waiting for the other one",
     "test_memory_on_a_dead_card_unnoticed", [
        ("    if (status == -ENXIO && !ha_rail_is_gone(flow->road.lanes->rail[slot])) {",
         "    if (status == -ENXIO) {")]),
    ("destroy-forgets-who-waits", "an endpoint that is destroyed tells nobody", "test_destroy_tells_who_waits", [
        ("    txop->more->unpack = NULL;\n    if (comp != NULL) {",
         "    txop->more->unpack = NULL;\n    if (0) {")]),
    ("destroy-forgets-a-flush", "an endpoint that is destroyed tells no flush", "test_destroy_behind_a_cancel", [
        ("        free(flush);\n        uct_ha_completion_invoke(comp, UCS_ERR_CANCELED);",
         "        free(flush);\n        (void)comp;")]),
    ("flush-one-early", "a flush does not stand for the newest operation", "test_flush_completion", [
        ("        flush->index = flow->tx.log.tail;",
         "        flush->index = flow->tx.log.tail - 1;")]),
    ("amo-not-outstanding", "the interface's flush does not count atomics by message", "test_flush_awaits_atomics", [
        ("    request->id  = flow->amo_issued++;\n    flow->flows->outstanding++;",
         "    request->id  = flow->amo_issued++;"),
        ("    flow->amo_done++;\n    flow->flows->outstanding--;",
         "    flow->amo_done++;")]),
    # ---- barrier: settle, drain, close ----
    ("settle-one-read", "a process that computes proves by one read", "test_late_packet_between_reads", [
        ("lane->answer == 0 && lane->reads > 0 && lane->answer_psn == lane->last_read;", "lane->answer == 0;")]),
    ("final-answer-once", "a device that refuses the answer which would be the proof is not asked again",
     "test_proof_at_the_third_final_try", [
        ("        if (!is_asked_again(lane)) {", "        (void)is_asked_again;\n        if (1) {")]),
    ("look-once", "a rail whose port could not be looked at stays down", "test_look_that_fails", [
        ("        } else if (!ha_rail_up(entry->rail) && !ha_rail_is_gone(entry->rail)) {", "        } else if (0) {")]),
    ("forgotten-is-silent", "who does not close is not told that his connection is forgotten", "test_one_sided_end", [
        ("    if (record->dst_ep != HA_EP_ANY) {\n        answer_ended(peer, record);",
         "    if ((record->state.flags & OVER) && record->dst_ep != HA_EP_ANY) {\n        answer_ended(peer, record);")]),
    ("never-told-again", "a peer that is heard again is told nothing", "test_one_sided_end", [
        ("    if (ucs_likely(peer->retells == 0)) {", "    if (1) {")]),
    ("close-lane-no-reread", "the proof is not read again when a lane is closed", "test_card_that_goes_on_after_its_proof", [
        ("    uct_ha_settle_read(lane, &event);\n    lane->closing = 0;",
         "    event.proof    = conn->pair.lane[lane->slot].proof;\n    event.psn      = conn->pair.lane[lane->slot].rxpsn;\n    event.received = conn->pair.lane[lane->slot].received;\n    lane->closing = 0;")]),
    ("close-lane-lost-ignored", "a lane whose last messages are lost is waited for, for ever", "test_message_lost_with_its_receive", [
        ("(done != lane->close_k && !lost)", "done != lane->close_k + 0 * lost")]),
    ("drain-while-sends-run", "a lane counts as drained although its queue pair still sends",
     "test_successes_behind_a_slow_fence", [
        ("    if (uct_ha_lane_sends(lane) > 0 && (uct_ha_lane_may_run(lane) || lane->lanes->gone[lane->slot])) {",
         "    if (0) {"),
        ("    if (uct_ha_lane_sends(lane) == 0) { /* nothing is out",
         "    if (uct_ha_lane_sends(lane) == 0 || uct_ha_lane_may_run(lane)) { /* nothing is out")]),
    ("drain-without-marker-busy", "a lane is drained at once, whatever is under way",
     "test_successes_behind_a_slow_fence", [
        ("    if (uct_ha_lane_sends(lane) == 0) { /* nothing is out",
         "    if (1) { /* nothing is out")]),
    ("park-not-at-all", "a queue pair is destroyed at once", "test_queue_pairs_rest", [
        ("#define PARK_NS      2000000000ull", "#define PARK_NS      0ull")]),
    ("count-before-flushed", "receives are counted before the last was polled", "test_count_waits_for_progress", [
        ("((lane->proof == HA_PROOF_PSN && lane->fence_fails == 0) ||",
         "(lane->fence_fails == 0 ||")]),
    # ---- triggers ----
    ("qp-fatal-any-qpn", "an event of one queue pair takes another one of its rail along", "test_each_dies_without_srq", [
        (" && ha_rc_qpn(conn->road->lane[slot]->rc) == qpn) {",
         " && qpn != 0) {")]),
    ("port-down-one-lane", "a port that goes down takes one connection only", "test_port_takes_all_lanes", [
        ("        conn = pairs->table[fall->next++];\n", "        conn = fall->next++ > 0 ? NULL : pairs->table[0];\n")]),
    ("port-down-first-ones", "of those who work on a port that goes down only the first ones are told", "test_all_are_told", [
        ("    if (fall->next >= pairs->table_len) {\n        fall->at = 0;", "    if (fall->next > 0) {\n        fall->at = 0;")]),
    ("no-answer-asked", "a state that is sent again asks for no answer", "test_states_are_silent_in_the_end", [
        ("            header.flags |= due->want ? HA_PACKET_WANT : 0;\n", "")]),
    ("no-answer-given", "who is asked for an answer has none, if he hears no news", "test_states_are_silent_in_the_end", [
        ("        want         = 1;\n", "")]),
    ("slow-though-it-moves", "a slow rail is left though nobody's work falls behind", "test_slow_rail", [
        ("(slow && ha_lossy_stalls(&rail->lossy))", "slow")]),
    # ---- silent operations ----
    ("tails-of-all", "of thousands of connections each is looked at each time", "test_tails_of_thousands", [
        ("    if (!all && flows->count > MANY && is_too_early(flows)) {", "    if (0 && is_too_early(flows)) {")]),
    ("flush-without-tail", "a flush waits for somebody else to have it told", "test_flush_has_a_tail", [
        ("    uct_ha_tx_tail(flow);\n    if (comp != NULL) {\n        flush = malloc", "    if (comp != NULL) {\n        flush = malloc")]),
    ("iface-flush-without-tail", "a flush of the interface does so", "test_flush_of_the_interface_has_a_tail", [
        ("    uct_ha_tx_tails(&iface->flows, 1);\n    return UCS_INPROGRESS;", "    return UCS_INPROGRESS;")]),
    ("destroy-without-tail", "a destroyed endpoint does so", "test_destroyed_endpoint_has_a_tail", [
        ("    uct_ha_tx_tail(flow);\n    uct_ha_late_keep(flow);", "    uct_ha_late_keep(flow);")]),
    ("sleep-without-tail", "who goes to sleep is not told", "test_who_goes_to_sleep_is_told", [
        ("    uct_ha_tx_tails(&iface->flows, 1); /* who sleeps", "    /* who sleeps")]),
    ("silent-for-ever", "silence that nobody waits for is never ended", "test_tail_after_a_while", [
        ("        uct_ha_tx_tails(&iface->flows, 0);\n", "        (void)iface;\n"),
        ("    conn->todo |= UCT_HA_TODO_TAIL;\n", "    (void)conn;\n")]),
    ("silent-for-who-looks-seldom", "who looks seldom is told late", "test_silence_is_no_alarm", [
        ("    conn->todo |= UCT_HA_TODO_TAIL;\n", "    (void)conn;\n")]),
    ("rto-counts-silent", "silence is an alarm", "test_silence_is_no_alarm", [
        ("told  = uct_ha_txlog_is_told(conn->tx);", "told  = head != tail;")]),
    ("log-of-silence", "a full log may be silent", "test_streams_of_silence", [
        ("ucs_min(TELL_EVERY, depths.sends / 4);", "TELL_EVERY;"),
        ("    return ucs_min(lane->tell_every, (flow->tx.log.mask + 1) / 2);", "    return lane->tell_every;")]),
    ("count-silent", "operations towards a peer that counts are silent", "test_counting_peers_are_told_each", [
        ("view->offer == HA_PROOF_PSN ? pairs->lanes->tell_every : 0;", "pairs->lanes->tell_every;")]),
    ("success-of-one", "a success gives back one place in the queue, whatever it stands for", "test_places_of_the_silent", [
        ("ucs_max(ended, before + 1);", "ucs_min(ended, before + 1);")]),
    ("silent-hold-the-queue", "a lane has no place of its own when silent sends hold all", "test_places_of_the_silent", [
        ("    if (ucs_unlikely(!room && !has_own_place(flow, lane))) {", "    (void)has_own_place;\n    if (ucs_unlikely(!room)) {")]),
    # ---- packet numbers ----
    ("path-mtu-own", "the peer's MTU does not count", "test_rails_of_different_mtu", [
        ("ucs_min(conn->pair.lane[slot].mtu, view->mtu)", "conn->pair.lane[slot].mtu")]),
    ("psn-room-unchecked", "more is posted than packet numbers can tell apart", "test_packet_numbers_run_out", [
        ("!ha_log_psn_room(&flow->tx.log, slot, npsn)",
         "lane->log_mtu > 1u << 20 && op == NULL")]),
    ("connect-swaps-psn", "a lane is connected with the wrong first packet numbers", "test_acks_lost", [
        (".recv_psn = view->psn, .send_psn = lane->psn,", ".recv_psn = lane->psn, .send_psn = view->psn,")]),
    ("log-lane-not-started", "the log does not hear of a new generation", "test_many_cuts", [
        ("    ha_log_lane_start(&conn->tx->log, slot, gen, lane->psn);\n",
         "")]),
    # ---- ledger ----
    ("ledger-word-gen-unchecked", "a mark of another generation proves", "test_mark_of_another_lane", [
        ("    return word == mark(lane, (uint32_t)word) ? 0 : -EPROTO;", "    return 0;")]),
    ("ledger-begin-own-psn", "the ledger begins with the own packet number", "test_ledger_many_cuts", [
        ("uct_ha_ledger_begin(lane, view->psn);", "uct_ha_ledger_begin(lane, lane->psn);")]),
    ("mark-number-offbyone", "a mark tells one operation less", "test_ledger_many_cuts", [
        ("flow->tx.log.lane[lane->slot].nxt + 1) != 0) {",
         "flow->tx.log.lane[lane->slot].nxt) != 0) {")]),
    # ---- sending ----
    ("fill-sge-wrong-slot", "an operation goes out with the key of the other rail", "test_cut_here", [
        ("piece->length, piece->mem->lkey[rail_no]);", "piece->length, piece->mem->lkey[rail_no & ~1u]);")]),
    ("gets-never-back", "what GETs have brought counts as under way", "test_get_bytes", [
        ("    uct_ha_flow_got(flow, txop);\n    if (more != NULL", "    if (more != NULL")]),
    ("gets-free", "GETs of one piece are not counted", "test_get_bytes", [
        ("        flow->flows->gets_left -= out.length;\n", "")]),
    ("gets-of-bounce-free", "GETs to a bounce buffer are not counted", "test_get_bytes", [
        ("    flow->flows->gets_left -= (int64_t)length;\n", "")]),
    ("gets-busy", "who waits for GETs is told to try again", "test_get_bytes", [
        ("        !uct_ha_flow_fenced_atomics(flow) && flow->flows->gets_left > 0) {",
         "        !uct_ha_flow_fenced_atomics(flow)) {")]),
    ("rkey-wrong-slot", "an operation goes out with the remote key of the other rail", "test_cut_here", [
        ("uct_ha_rkey_at(&out->txop->rkey, slot);", "uct_ha_rkey_at(&out->txop->rkey, 0 * slot);")]),
    ("imm-told-without-total", "messages do not tell how many were consumed", "test_messages_both_ways", [
        ("    return imm | (uint32_t)flow->go.rx_consumed << UCT_HA_IMM_CREDIT_SHIFT;",
         "    return imm;")]),
    ("kills-max-1", "a card that fails once at an operation makes it fail", "test_card_fails", [
        ("#define KILLS_MAX 3 ", "#define KILLS_MAX 1 ")]),
    ("post-failure-ignored", "a post that is refused is forgotten", "test_one_post_is_refused", [
        ("    if (status != -ENOMEM && status != -EAGAIN) {\n        uct_ha_flow_stop(flow);",
         "    if (0) {\n        uct_ha_flow_stop(flow);")]),
    ("canceled-is-success", "what the end of an endpoint cancels succeeds", "test_both_rails_down", [
        ("    case HA_RESULT_CANCELED:\n        return flow->status;",
         "    case HA_RESULT_CANCELED:\n        return UCS_OK;")]),
    ("pending-last-again", "a request that found no room is put behind the others", "test_pending", [
        ("    ucs_list_add_head(&flow->pending, &priv->list);",
         "    (void)priv;")]),
    ("purge-ends-nothing", "an atomic without result that waits is purged like any other", "test_purge_with_pending_posts", [
        ("        if (cb != NULL && !(priv->amo && end_atomic(flow, priv))) {",
         "        (void)end_atomic;\n        if (cb != NULL) {")]),
    ("fence-forgets-atomics", "what a card executes overtakes atomics by message that are before a fence",
     "test_fence_behind_an_atomic", [
        ("    return end - flow->amo_done - 1u < uct_ha_flow_atomics(flow);",
         "    return end == flow->amo_done + UINT32_MAX / 2;")]),
    ("fence-forgets-atomics-later", "a message behind the fence makes it forget the atomics before it",
     "test_fence_behind_an_atomic", [
        ("        flow->amo_fence  = flow->amo_issued;\n", "")]),
    ("fence-taken-by-a-tail", "the short way is open behind a fence that a flush has taken",
     "test_fence_behind_an_atomic_and_a_flush", [
        ("        uct_ha_flow_close_go(flow); /* who may go now depends on these atomics */\n", "")]),
    ("buffers-all-small", "thousands of bounce buffers are on as many pages", "test_many_buffers", [
        (">= FEW &&", ">= 4000000000u &&")]),
    ("buffers-all-or-none", "a huge page that cannot be registered is the end of it", "test_many_buffers", [
        ("    return chunk != NULL ? chunk : make_chunk(pool, 0);", "    return chunk != NULL || huge ? chunk : make_chunk(pool, 0);")]),
    ("late-no-registration", "memory that the new rail does not know makes the operation fail", "test_large_across", [
        ("        status = uct_ha_reg_on(mem, rail_no);", "        status = -ENOMEM;")]),
    ("late-keep-nothing", "operations of a destroyed endpoint use memory that was taken back", "test_memory_taken_back", [
        ("    uct_ha_late_keep(flow);\n",
         "")]),
    # ---- completion queues ----
    # ---- device commands ----
    ("psn-asked-under-lock", "the packet number is asked for under the control lock", "test_any_command_hangs", [
        ("    uct_ha_job_post(UCT_HA_JOB_FENCE, lane->lanes->rail_no[lane->slot], &lane->job);\n}\n\nvoid uct_ha_settle_read(",
         "    (void)ask_run;\n    lane->asking = 0;\n    lane->answer = ha_rc_final_psn(lane->rc, &lane->answer_psn);\n    lane->lanes->answered(lane);\n}\n\nvoid uct_ha_settle_read(")]),
    ("port-recycled-under-lock", "the control port is brought up again under the control lock", "test_any_command_hangs", [
        ("    uct_ha_job_post(UCT_HA_JOB_PORT, ctl->lanes->rail_no[slot], &recycle->super);",
         "    recycle->busy = 0;\n    (void)recycle_run;\n    if (ha_ud_recycle(ctl->ud[slot]) == 0) {\n        (void)ha_ud_arm(ctl->ud[slot]);\n    }")]),
    ("way-let-go-under-lock", "an address handle is destroyed under the control lock", "test_any_command_hangs", [
        ("        uct_ha_job_post(UCT_HA_JOB_PORT, peer->pairs->lanes->rail_no[slot], &rail->way->super);",
         "        let_go_run(&rail->way->super);")]),
    ("port-looked-at-by-the-handler", "a port is looked at on the async thread", "test_any_command_hangs", [
        ("        uct_ha_job_post(UCT_HA_JOB_PORT, entry->rail_no, &entry->look);",
         "        pthread_mutex_unlock(&lock);\n        look_run(&entry->look);\n        pthread_mutex_lock(&lock);")]),
    ("buffers-registered-under-lock", "receive buffers of a new lane are registered under the control lock",
     "test_no_shared_queue", [
        ("        } else if ((desc = uct_ha_desc_at_hand(&road->lanes->pool)) == NULL) {",
         "        } else if ((desc = uct_ha_desc_alloc(&road->lanes->pool)) == NULL) {")]),
    ("proof-kept-for-the-close", "what the device said first stands for what it says at the close",
     "test_card_that_goes_on_after_its_proof", [
        ("uct_ha_settle_wants_answer(lane) && !lane->reread) {", "uct_ha_settle_wants_answer(lane) && !lane->settled) {")]),
    ("standby-without-a-way", "a standby whose rail nothing leads by goes on as one", "test_standby_without_a_way", [
        ("    if (!rail->lives) {\n        uct_ha_fall_standbys_locked(peer, slot);",
         "    if (0) {\n        uct_ha_fall_standbys_locked(peer, slot);")]),
    ("dead-neighbours-first", "who was looked for in vain stands before who answers", "test_dead_neighbours_wait", [
        ("    return rail->ah_fails == 0 ? UCT_HA_JOB_RESOLVE : UCT_HA_JOB_RETRY;",
         "    return UCT_HA_JOB_RESOLVE;")]),
    ("heard-among-the-dead", "who was looked for in vain and is heard stands behind those who are not",
     "test_dead_neighbours_wait", [
        ("    if (rail->ah_fails > 0 && now >= rail->first_at &&", "    if (0 &&")]),
    # ---- control packets ----
    ("msg-record-unchecked", "records that contradict the pair are believed", "test_forged_packets", [
        ("    if (ha_packet_record_check(&conn->pair, &record->state) != 0) {", "    if (0) {")]),
    ("msg-tag-unchecked", "a record of another pair is believed", "test_forged_packets", [
        ("conn->peer == peer && conn->tag == record->tag ? conn : NULL;", "conn->peer == peer ? conn : NULL;")]),
    # ---- detection, waking, pacing ----
    ("data-is-no-sign", "data that flows is no sign of life", "test_rail_that_only_carries_puts", [
        ("    if (rail->missed + 1 >= limit && rail->flows) {", "    if (0) {")]),
    ("pace-nobody", "all standbys are built at once", "test_standbys_are_paced", [
        ("    if (ha_pair_tx_slot(&conn->pair) != !slot || conn->pair.view[slot].gen == gen) {", "    if (1 || gen == 0) {")]),
    ("pace-everybody", "who has no lane at all waits as well", "test_first_lanes_are_not_paced", [
        ("    if (ha_pair_tx_slot(&conn->pair) != !slot || conn->pair.view[slot].gen == gen) {", "    if (gen == 0) {")]),
    # ---- atomics ----
    ("amo-unchecked", "an owner whose card does atomics does them as well", "test_message_to_hw_owner", [
        ("    if (flow->flows->card_atomics) {\n        return ENOTSUP;", "    if (0) {\n        return ENOTSUP;")]),
    ("amo-any-key", "an atomic needs no key", "test_sw_wrong_key", [
        ("    return EACCES;\n", "    return 0;\n")]),
    ("ring-leave-frees-early", "receive buffers are free while their queue pair lives", "test_buffers_of_a_lane_that_hangs", [
        ("        lane->left = *ring;\n    } else {", "    }\n    {")]),
    # ---- and of each room one more ----
    ("room-unlimited", "sends take no regard of the completion queue", "test_sends_wait_for_places", [
        ("    return room->sends < __atomic_load_n(&room->sends_go, __ATOMIC_RELAXED);", "    return room->sends_max > 0;")]),
    ("rx-held-first", "messages of the new lane are delivered before those of the old one", "test_old_totals_are_not_taken", [
        ("    } else if (uct_ha_flow_of(lane->road)->rx_slot == lane->slot &&", "    } else if (1 ||")]),
    ("room-park-forgets-sends", "sends of a lane that is gone give their places back at once",
     "test_places_of_a_parked_lane", [
         ("    unsigned places = receives + sends + LANE_EXTRA;", "    unsigned places = receives + LANE_EXTRA;"),
         ("    room->reserved += sends;\n    room->lanes--;", "    room->lanes--;")]),
    ("room-reclaim-no-poll", "places are given away while completions are in the queue",
     "test_places_are_given_from_an_empty_queue", [
         ("        if (uct_ha_poll_slot(iface, slot) == 0) {\n            pthread_mutex_lock",
          "        if (1) {\n            pthread_mutex_lock")]),
    ("wake-user-never", "who sleeps is not woken for the control part", "test_owner_is_woken", [
        ("    if (__atomic_load_n(&wake->pending, __ATOMIC_ACQUIRE) && __atomic", "    if (0 && __atomic")]),
    ("bye-unanswered", "a good-bye is not answered", "test_good_bye_is_answered", [
        ("    uct_ha_send_bye_locked(peer, 0);\n}", "}")]),
    ("mac-changed-unnoticed", "a way that has become silent is not looked up anew",
     "test_hardware_address_changes_silently", [
        ("    } else if (now >= rail->fresh_at && !rail->renewed) {", "    } else if (0) {")]),
    ("mark-room-not-counted", "marks take no places in the completion queue", "test_ledger_many_cuts", [
        ("    uct_ha_lane_sent(lane);\n    if (uct_ha_ledger_mark(", "    if (uct_ha_ledger_mark(")]),
    ("msg-cookie-unchecked", "packets for another instance are taken", "test_forged_packets", [
        ("    if (header->dst_cookie != ctl->pairs->cookie || !key_of(", "    if (!key_of(")]),
    ("send-only-first-rail", "control packets leave by the first rail only", "test_old_totals_are_not_taken", [
        ("            sent += is_hopeless(peer, s) == hopeless ?", "            sent += s == 0 && is_hopeless(peer, s) == hopeless ?")]),
    ("send-never-again-there", "a rail that did not answer is not even tried with what is sent again",
     "test_states_go_everywhere_again", [
        (" && (hopeless == 0 || again || sent == 0); s++)", " && (hopeless == 0 || sent == 0); s++)")]),
    ("send-hopelessly", "the first word goes by a rail that is known to be dead, too", "test_states_go_everywhere_again", [
        (" && (hopeless == 0 || again || sent == 0); s++)", "; s++)")]),
    # ---- seals and numbers of control packets ----
    ("seal-not-compared", "whatever seal a packet has, it is believed", "test_seals_of_others", [
        ("    return differs == 0;\n", "    return differs <= 0xff;\n")]),
    ("seal-half-compared", "half of a seal is enough", "test_every_byte_is_sealed", [
        ("    for (size_t i = 0; i < HA_SEAL_LEN; i++) {", "    for (size_t i = 0; i < HA_SEAL_LEN / 2; i++) {")]),
    ("seal-not-asked", "packets are taken without a look at their seal", "test_flood_of_strangers", [
        ("    if (!ha_seal_is_whole(&key, data, length)) {", "    if (0) {")]),
    ("seal-forgets-header", "the seal is over the records only", "test_every_byte_is_sealed", [
        ("    ha_put((uint8_t *)packet + length, ha_siphash(key, packet, length));",
         "    ha_put((uint8_t *)packet + length, ha_siphash(key, (uint8_t *)packet + 32, length - 32));"),
        ("    ha_put(seal, ha_siphash(key, packet, length));",
         "    ha_put(seal, ha_siphash(key, (const uint8_t *)packet + 32, length - 32));")]),
    ("key-not-directed", "both directions have one key", "test_turned_around", [
        ("    ha_put(text + 1, from);\n    ha_put(text + 9, to);",
         "    ha_put(text + 1, from < to ? from : to);\n    ha_put(text + 9, from < to ? to : from);")]),
    ("key-of-all", "the key is the same for all who speak to an instance", "test_turned_around", [
        ("    ha_put(text + 1, from);\n    ha_put(text + 9, to);",
         "    (void)from, (void)to;\n    memset(text, 0, sizeof(text));")]),
    ("key-own-ignored", "the receiver's secret is always taken", "test_only_one_has_an_address", [
        ("        secret = &peer->secret;\n    }\n    *key", "    }\n    *key")]),
    ("key-unknown-is-zero", "a peer whose secret is not known seals by none", "test_own_without_address", [
        ("        if (peer == NULL || !peer->secret_known) {", "        if (peer == NULL) {")]),
    ("number-not-compared", "packets are taken again and again", "test_brought_again", [
        ("    return peer != NULL ? uct_ha_peer_hear(peer, carrier, header->number)",
         "    return peer != NULL ? uct_ha_peer_hear(peer, carrier, header->number) | 1")]),
    ("number-not-remembered", "the window does not remember what it lets through late", "test_overtaken", [
        ("    window->heard |= 1ull << behind;\n", "")]),
    ("window-off-by-one", "the window is one number too long", "test_overtaken", [
        ("    if (number == 0 || behind >= HA_WINDOW || (window->heard >> behind & 1)) {",
         "    if (number == 0 || behind > HA_WINDOW || (behind < HA_WINDOW && window->heard >> behind & 1)) {")]),
    ("window-too-short", "the window is one number too short", "test_overtaken", [
        ("    if (number == 0 || behind >= HA_WINDOW || (window",
         "    if (number == 0 || behind >= HA_WINDOW - 1 || (window")]),
    ("carrier-not-compared", "a packet may be moved to another carrier", "test_brought_again", [
        ("    if (header->carrier != carrier) {", "    if (0) {")]),
    ("late-header-taken", "rails and ports are as the packet says that comes last", "test_overtaken_addresses", [
        ("    if (header->number > peer->newest) {", "    if (1) {")]),
    ("request-heard-once-per-carrier", "the packet that makes a peer is news by other carriers", "test_request_brought_again", [
        ("    uct_ha_peer_heard_until(peer, header->number);\n", "")]),
    ("dead-ask-again", "what a forgotten peer has said is news", "test_request_of_the_dead", [
        (": header->number > uct_ha_peer_heard(pairs, header->src_cookie);", ": 1;")]),
    ("forgotten-without-numbers", "who is forgotten is forgotten altogether", "test_request_of_the_dead", [
        ("    if (peer->next_sn != 0 || peer->newest != 0) {", "    if (0) {")]),
    ("numbers-begin-anew", "packets to a peer that is met again have the old numbers", "test_numbers_outlive_peers", [
        ("    peer->told    = pairs->told;\n", "")]),
    ("numbers-not-kept", "numbers of packets to a forgotten peer are forgotten", "test_numbers_outlive_peers", [
        ("    peer->pairs->told = ucs_max(peer->pairs->told, peer->told);\n", "")]),
    ("good-bye-again", "a good-bye is news as often as it comes", "test_good_bye_again", [
        ("    return peer != NULL ? uct_ha_peer_hear(peer, carrier, header->number)",
         "    return peer != NULL ? uct_ha_peer_hear(peer, carrier, header->number) || header->type == HA_PACKET_BYE")]),
    ("good-bye-of-nobody", "a good-bye is taken from whom nobody knows any more", "test_good_bye_again", [
        ("    if (peer == NULL && header->type != HA_PACKET_STATE) {", "    if (0) {")]),
    ("good-bye-to-another", "a good-bye to the instance before is one to this", "test_good_bye_of_the_living", [
        ("    if (header->dst_cookie != ctl->pairs->cookie || !key_of(", "    if (!key_of("),
        ("    if (!ha_seal_is_whole(&key, data, length)) {", "    if (0) {")]),
    ("end-again", "the end of a connection is news as often as it comes", "test_end_again", [
        ("    return peer != NULL ? uct_ha_peer_hear(peer, carrier, header->number)",
         "    return peer != NULL ? uct_ha_peer_hear(peer, carrier, header->number) || header->count > 0")]),
    ("end-of-the-one-before", "the end of a connection ends the one that has its place", "test_end_again", [
        ("conn->peer == peer && conn->tag == record->tag ? conn : NULL;", "conn->peer == peer ? conn : NULL;"),
        ("    if (ha_packet_record_check(&conn->pair, &record->state) != 0) {", "    if (0) {")]),
    ("end-answered-for-ever", "two that have forgotten a connection tell each other without an end",
     "test_end_is_answered_once", [
        ("    if (record->state.flags == OVER && record->state.seen_flags == OVER) {", "    if (0) {")]),
    ("dropped-proves", "what is not believed proves a TCP connection", "test_brought_again", [
        ("    if (!is_genuine(ctl, peer, carrier, &header, data, length)) {\n        return 0;",
         "    if (!is_genuine(ctl, peer, carrier, &header, data, length)) {\n        return 1;")]),
    ("callers-stay", "who connects by TCP and says nothing stays", "test_silent_callers", [
        ("    while (uct_ha_tcp_due(tcp) <= now) {", "    while (uct_ha_tcp_due(tcp) <= now && now == 0) {")]),
    ("callers-without-number", "any number of callers may wait", "test_silent_callers", [
        ("        if (tcp->unproven == UNPROVEN_MAX) {", "        if (0) {")]),
    ("callers-must-prove-twice", "who has said what is for us is sent away as well", "test_silent_callers", [
        ("            in->proven = 1;\n            tcp->unproven--;", "            in->proven = 0;")]),
    ("callers-not-freed", "what was kept of a caller is never given back", "test_thousand_strangers", [
        ("    unwatch_close(in->fd);\n    free(in);\n", "    unwatch_close(in->fd);\n")]),
    ("callers-not-closed", "a caller who hangs up keeps its descriptor", "test_thousand_strangers", [
        ("    unwatch_close(in->fd);\n    free(in);\n",
         "    (void)ucs_async_remove_handler(in->fd, 0);\n    free(in);\n")]),
    ("walks-all", "the timer asks every connection each time", "test_work_does_not_grow", [
        ("    while ((conn = uct_ha_due_next_touched(&ctl->pairs->dues)) != NULL) {",
         "    struct uct_ha_conn *each;\n    ucs_list_for_each (each, &ctl->pairs->conns, list) {\n        uct_ha_due_touch(&each->due);\n    }\n    while ((conn = uct_ha_due_next_touched(&ctl->pairs->dues)) != NULL) {")]),
    ("sleeps-for-ever", "who posts while it sleeps is not looked at", "test_idle_connections_sleep", [
        ("        if (ucs_unlikely(!__atomic_load_n(&flow->tx.awake, __ATOMIC_RELAXED))) {", "        if (0) {"),
        ("    flow->go.sends[slot]++;\n    if (ucs_unlikely(!__atomic_load_n(&flow->tx.awake, __ATOMIC_RELAXED))) {",
         "    flow->go.sends[slot]++;\n    if (0) {")]),
    ("sleeps-through-the-short-way", "who posts by the short way while it sleeps is not looked at",
     "test_idle_connections_sleep", [
        ("    flow->go.sends[slot]++;\n    if (ucs_unlikely(!__atomic_load_n(&flow->tx.awake, __ATOMIC_RELAXED))) {",
         "    flow->go.sends[slot]++;\n    if (0) {")]),
    ("never-sleeps", "the timer looks at idle connections", "test_idle_connections_sleep", [
        ("        leave(awake);\n    }\n}\n\nvoid uct_ha_awake_begin", "    }\n}\n\nvoid uct_ha_awake_begin")]),
    ("wakes-in-alarm", "the time that it has slept counts as lack of progress", "test_idle_connections_sleep", [
        ("4 * CHECK_NS || conn->awake.fresh) {", "4 * CHECK_NS) {")]),
    ("loss-uncounted", "probes without an answer are forgotten", "test_lossy_rail_is_left", [
        ("        ha_lossy_ask(&peer->rail[slot].lossy);\n", "")]),
    ("stalls-uncounted", "work that stands still is not seen", "test_lossy_rail_is_left", [
        ("            ha_lossy_work(&peer->rail[s].lossy, peer->rail[s].moved, peer->rail[s].slow.last);",
         "            ha_lossy_work(&peer->rail[s].lossy, 1u << 20, 0);")]),
    ("rto-ignores-length", "a long operation is no excuse", "test_long_operation", [
        (" + bytes / SLOWEST_BYTES_PER_MS * MSEC;", " + 0 * bytes;")]),
    ("lanes-outlive-address", "lanes live on when the address they were made with is gone", "test_address_of_an_idle_standby_changes", [
        ("    if (moved && !kept) {", "    if (0 && moved && !kept) {")]),
    ("ring-one-lane", "a window grows on one lane only", "test_credits_after_failover", [
        ("        if (extend_lane(road, s, ", "        if (s == 0 && extend_lane(road, s, ")]),
    ("flush-overtakes", "a flush ends before what waits for room has gone out", "test_flush_waits_behind_requests", [
        ("    } else if (waits_behind(flow)) {", "    } else if (0 && waits_behind(flow)) {")]),
    ("iface-flush-overtakes", "nothing is out, so an interface is flushed, though something waits for room",
     "test_flush_of_the_interface_waits_for_requests", [
        ("    if (iface->flows.outstanding == 0 && ucs_list_is_empty(&iface->flows.pending)) {",
         "    if (iface->flows.outstanding == 0) {")]),
    ("card-kept", "the queue of a card that is removed is not let go", "test_card_removed", [
        ("    return lanes->slots == HA_SLOTS && lanes->left[slot] && !lanes->left[!slot] && !lanes->room[slot].lent;",
         "    return 0 && lanes->left[slot] && lanes->room[slot].lent;")]),
    ("port-kept", "the control port of a card that is removed is not let go", "test_card_removed", [
        ("        post(&ctl->leave[slot], ctl, slot, leave_run);", "        (void)leave_run;")]),
    ("removal-unseen", "a card that is removed without a word is not left", "test_card_removed", [
        ("        if (entry->fd >= 0 && ha_rail_check(entry->rail)) {", "        if (0 && ha_rail_check(entry->rail)) {")]),
    ("events-for-all", "events of queue pairs go to all interfaces of the rail", "test_events_of_others", [
        ("        if (watch->rail == rail && (event->owner == NULL || event->owner == watch->owner)) {",
         "        if (watch->rail == rail) {")]),
    ("fatal-not-found", "a queue pair that dies where receives are shared is not found", "test_standby_dies_alone", [
        ("        return uct_ha_number_find_locked(&ctl->lanes->shared[slot], qpn);", "        return NULL;")]),
    ("missing-answer-wakes", "who waits for an answer is looked at all the time", "test_missing_answer_keeps_nobody_awake", [
        ("    uct_ha_path_check(peer, now);\n    return due;",
         "    uct_ha_path_check(peer, now);\n    return due || peer->rail[0].waiting;")]),
    ("rounds-apart", "the thread wakes up once for heartbeats and once for who is awake", "test_rounds_come_together", [
        ("        ctl->check_at = ctl->heartbeat_at;\n", "")]),
    ("way-ages-unborn", "the life of a way begins before it is found", "test_slow_way_after_silence", [
        ("            rail->fresh_at = uct_ha_now() + ctl->fresh_ns;\n", "")]),
    # ---- the ring of operations ----
    ("opens-before-the-waiting", "a limit that was reached lets new ones overtake those that wait for room",
     "test_pending_is_not_overtaken", [
        ("    return flow->flows->dispatching == flow && room > 0;", "    return room;")]),
    ("limit-left-behind", "the limit of PUTs stays where it is while only messages go", "test_limits_keep_up", [
        ("    flow->go.limit[0] = tail + (uct_ha_flow_fenced_atomics(flow) ? 0 : left);",
         "    flow->go.limit[0] = message ? flow->go.limit[0] : tail + (uct_ha_flow_fenced_atomics(flow) ? 0 : left);")]),
    ("waits-without-holding", "the short way stays open to new ones while others wait", "test_puts_wait_behind_messages", [
        ("    ucs_list_add_tail(&flow->pending, &priv->list);\n    uct_ha_flow_hold_go(flow);\n",
         "    ucs_list_add_tail(&flow->pending, &priv->list);\n")]),
    ("turn-never-ends", "what was opened for one whose turn it is stays open after it", "test_puts_wait_behind_messages", [
        ("    uct_ha_flow_hold_go(flow); /* the turn is over, whether it was taken or not */\n", "")]),
    ("opens-what-was-closed", "the short way opens by its limits, whatever it was closed for", "test_credits_after_failover", [
        ("    flow->opens_on                        = 0;\n", "")]),
    ("ring-mixes-places", "what grows puts an operation at the place of another", "test_ring_grows", [
        ("        i = index & (2 * length - 1);", "        i = index & (length - 1);")]),
    ("ring-forgets-more", "what grows forgets the bytes of longer operations", "test_ring_grows", [
        ("    *more    = *from->more;\n", "")]),
    ("ring-keeps-more", "what grows leaves the pieces of operations in the ring before", "test_ring_grows", [
        ("    to->more = more;\n", ""),
        ("    free(more);\n    return 0;\n", "    memset(more, 0xee, length * sizeof(*more));\n    return 0;\n")]),
    ("ring-stays-short", "the ring never grows", "test_ring_grows", [
        ("    if (length == tx->length) {", "    if (length >= 64) {")]),
    ("ring-of-silence", "operations that fill the ring tell of nothing", "test_ring_grows", [
        ("    return ucs_min(lane->tell_every, (flow->tx.log.mask + 1) / 2);", "    return lane->tell_every;")]),
    ("ring-remembered", "a GET that was bounced looks for its pieces where its entry was", "test_get_across_as_the_log_grows", [
        ("        more->unpack_arg = to;\n", "        ;\n"),
        ("    free_ring(tx->slab, old, length);\n    free(more);\n", "    memset(old, 0xee, length * sizeof(*old));\n    free(more);\n")]),
    ("let-go-of-bytes", "who lets go of an endpoint changes what has to go out yet", "test_destroy_during_failover", [
        ("    if (txop->pieces == 0 || uct_ha_txop_is_copy(txop)) {\n        return; /* its bytes",
         "    if (txop->pieces > 0 && uct_ha_txop_is_copy(txop)) {\n        return; /* its bytes")]),
    ("peer-down-builds", "a lane is built where the peer's port is down", "test_nothing_is_built_where_the_peer_is_down", [
        ("           peer->rail[slot].peer_up && !peer->pairs->down[slot];", "           !peer->pairs->down[slot];")]),
    ("peer-up-unheard", "that the peer's port is up again is not heard", "test_nothing_is_built_where_the_peer_is_down", [
        ("    peer->rail[slot].peer_up = up != 0;", "    peer->rail[slot].peer_up &= up != 0;")]),
    ("wake-left-readable", "who was woken is woken for ever", "test_owner_is_woken", [
        ("    if (__atomic_load_n(&wake->written, __ATOMIC_ACQUIRE) != 0 && read", "    if (0 && read")]),
    ("own-pause-late", "deadlines are looked at before the own pause is forgiven", "test_own_pause_is_forgiven", [
        ("        uct_ha_stall_forgive_locked(ctl, now); /* before", "        /* before")]),
    ("own-pause-rails", "the rails are not forgiven what was not heard", "test_own_pause_is_forgiven", [
        ("            peer->rail[s].last_rx    = ucs_min(peer->rail[s].last_rx + pause, now);\n", "")]),
    # ---- cold connections ----
    ("cold-never", "all have a standby, however many there are", "test_cold_ones_move", [
        ("lanes->config->standbys && has_twin(lanes);", "lanes->config->standbys && 0;")]),
    ("cold-without-twin", "who has no twin is cold, too", "test_first_ones_are_not_cold", [
        ("lanes->config->standbys && has_twin(lanes);", "lanes->config->standbys;")]),
    ("cold-once", "after a failover there is a standby for good", "test_cold_ones_move", [
        ("    hold  = uct_ha_cold_hold(conn, slot, hold);\n", "")]),
    ("cold-unprotected", "a cold connection is said to be without protection", "test_cold_ones_move", [
        ("    if (conn->counted_spare || uct_ha_cold_is_well(conn)) {", "    if (conn->counted_spare) {")]),
    ("cold-is-always-well", "nobody is told that a cold one has nowhere to go", "test_cold_ones_move", [
        ("slot != HA_NO_SLOT && uct_ha_peer_rail_usable(conn->peer, !slot);", "slot != HA_NO_SLOT;")]),
    ("cold-never-suspects", "a silent rail is not suspected again when the other lane is built",
     "test_cold_one_leaves_a_silent_rail", [
        ("    if (had_spare || !conn->counted_spare || slot", "    if (1 || had_spare || !conn->counted_spare || slot")]),
    ("cold-stays-away", "work of a cold one does not go back", "test_cold_ones_go_back", [
        ("    return conn->cold && (slot != HA_PREFERRED_SLOT || conn->pair.cfg.failback == 0) ?", "    return conn->cold ?")]),
] + RECEIVING + PARTS
