/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_MESSAGES_H_
#define UCT_HA_MESSAGES_H_

/*
 * Every line that the library writes carries a number, "ha_rc [HA-104]: ...". This is the table of
 * them: number, name, what the line says, what to do. scripts/make_pages makes docs/errors.md of it,
 * and ./check fails when a line of the source has a number that is not here, or no number.
 *
 * 1xx rails that are lost and come back, 2xx endpoints that fail (200 + enum ha_fail), 3xx settings
 * and set-up, 4xx the UCX of the program, 5xx operations.
 */

#define UCT_HA_MESSAGES(_X)                                                                                            \
    _X(101, PORT, "failover: the port went down, or the device said that a queue pair died",                           \
       "Look at the cable, the port and the switch port of that rail (rdma link, ibv_devinfo).")                       \
    _X(102, COMPLETION, "failover: the card gave up, its retries were not answered",                                   \
       "Port up, packets lost: look at the switch, at PFC or ECN, at error counters of the port.")                     \
    _X(103, FLUSH, "failover: a queue pair went into error by itself",                                                 \
       "The other end was stopped, or the card is in trouble: look at the peer's log and at dmesg.")                   \
    _X(104, HEARTBEAT, "failover: the rail is silent while the other one answers",                                     \
       "The port is up and nothing comes: look at the switch, VLAN or cable on the way; ping the peer by it.")         \
    _X(105, RTO, "failover: work was under way and nothing moved for UCX_HA_RC_RTO",                                   \
       "The rail answers and work stands: look at PFC pauses and the load of the peer; see RTO in docs/tuning.md.")    \
    _X(106, CONNECT, "failover: a queue pair could not be connected",                                                  \
       "ping the peer's address of that rail; compare GIDs, VLAN and MTU of both hosts.")                              \
    _X(107, PROGRAM, "failover: the program did something illegal, its lane had to be replaced",                       \
       "No rail is to blame: the program used a bad key, address or length, and got the error.")                       \
    _X(108, SLOW, "failover: the rail answers, but slower than it used to, or not always (SLOW_RAIL, LOSSY_RAIL)",     \
       "Look for errors and a lower speed of the port (rdma link, ethtool), and for congestion on that rail.")         \
    _X(109, NOT_READY, "failover: the peer had no receive posted for too long",                                        \
       "No rail is to blame: the peer's program is slow; UCX_HA_RC_RNR_RETRY_COUNT and RX_QUEUE_LEN.")                 \
    _X(110, FAILBACK, "work went back to the preferred rail, which was well for long enough",                          \
       "Nothing: UCX_HA_RC_FAILBACK asked for it. Said at level info.")                                                \
    _X(111, MOVED, "one endpoint moved to another rail: the detail of the summaries 101 to 119",                       \
       "Nothing. Said at level info (UCX_LOG_LEVEL=info), one line per endpoint.")                                     \
    _X(112, BARE, "endpoints have been without a standby for UCX_HA_RC_STANDBY_WARN, 60 s; again after twice as long", \
       "The next failure of their rail stops them. docs/operations.md, 'Why does the standby not come back?'.")        \
    _X(113, BACK, "endpoints that were without a standby for long have one again", "Nothing. Said at level info.")     \
    _X(114, UNPROTECTED, "the process ends, and endpoints of it had no standby for long",                              \
       "They would not have survived the loss of their rail: ha_info --check on both hosts; look for HA-112 and "      \
       "HA-309.")                                                                                                      \
    _X(119, OTHER, "failover for another reason", "Look at the reason in the line and at the peer's log.")             \
    _X(120, GONE, "a network card has failed or is being removed, for good as far as this process goes",               \
       "Look at dmesg. Programs that start later use the card if it is back; this one goes on over the other rail.")   \
    _X(121, IN_DOUBT, "operations end with an error: whether they were executed cannot be known",                      \
       "PROOF=count and ATOMICS=sw have no such doubt (docs/tuning.md); with a card that has failed it is possible.")  \
    _X(122, STALLED, "a peer is silent, but its host answers for it: it is stopped, or gets no processor",             \
       "Look at its host: kill -STOP, a debugger, swap, a full processor. Waited for six times UCX_HA_RC_DEAD_PEER.")  \
    _X(190, TRACE, "a step of set-up or failover", "Asked for by UCX_HA_RC_TRACE=y.")                                  \
    _X(201, FAIL_DEADLINE, "endpoint failed: no lane until the failover deadline",                                     \
       "Both rails were gone for UCX_HA_RC_DEAD_PEER: repair one; raise it if longer outages are to be waited for.")   \
    _X(202, FAIL_CONNECT, "endpoint failed: no lane until the connect deadline",                                       \
       "No rail reached the peer within UCX_HA_RC_CONNECT_TIMEOUT: are the ports ACTIVE, does ping reach the peer?")   \
    _X(203, FAIL_PROOF_WINDOW, "endpoint failed: proof outside of the posted window",                                  \
       "Exactly-once could not be kept, so the endpoint was ended: report it, with the device's name. PROOF=count.")   \
    _X(204, FAIL_PROOF_ACKED, "endpoint failed: proof below what was acknowledged", "As 203.")                         \
    _X(205, FAIL_PROOF_MOVED, "endpoint failed: proof moved after the fence", "As 203.")                               \
    _X(206, FAIL_COUNT, "endpoint failed: message count differs from the proof", "As 203.")                            \
    _X(207, FAIL_GENERATION, "endpoint failed: peer is more than one generation ahead",                                \
       "Please report it, with the logs of both sides (UCX_HA_RC_TRACE=y).")                                           \
    _X(208, FAIL_PEER_FAILED, "endpoint failed: ended by the peer", "Look at the peer's log: its error came first.")   \
    _X(209, FAIL_PEER_DEAD, "endpoint failed: the peer is silent on every rail",                                       \
       "The peer's process or host is dead, or every way to it: look there first.")                                    \
    _X(210, FAIL_CANCELED, "endpoint failed: ended by the user", "Nothing: the program asked for it.")                 \
    _X(211, FAIL_REFUSED, "endpoint failed: an operation without completion was refused",                              \
       "The program used a bad key or address in an operation that has no completion to say so.")                      \
    _X(212, FAIL_PROOF_KIND, "endpoint failed: the peer proves in another way than it offered",                        \
       "Install the same version on both hosts; else please report it.")                                               \
    _X(213, FAIL_PROOF_ORDER, "endpoint failed: ledger and message count of the proof contradict each other",          \
       "As 203; or use PROOF=count at the peer.")                                                                      \
    _X(214, FAIL_DOUBT, "endpoint failed: an operation without completion is in doubt",                                \
       "PROOF=ledger at the peer, ATOMICS=hw, or a card that failed under a short PUT: PROOF=count, ATOMICS=sw.")      \
    _X(215, FAIL_OPTIONS, "endpoint failed: the peer's connect options are refused",                                   \
       "The line before names the value: give both hosts the same settings and version.")                              \
    _X(216, FAIL_SINGLE, "endpoint failed: a standby is required, and there is none",                                  \
       "UCX_HA_RC_REQUIRE=y, found out after the endpoint was made: as 331, the line before gives the reason.")        \
    _X(299, FAIL_OTHER, "endpoint failed for another reason", "Please report it, with the logs of both sides.")        \
    _X(301, RANGE, "a setting is out of range",                                                                        \
       "Use a value of the range that the line names; docs/configuration.md.")                                         \
    _X(302, RAILS, "UCX_HA_RC_RAILS cannot be used", "The line names what is wrong; write device:port.")               \
    _X(303, GID_INDEX, "the chosen GID index holds no usable GID",                                                     \
       "UCX_HA_RC_GID_INDEX=-1 chooses; ibv_devinfo -v lists the table.")                                              \
    _X(304, NO_GID, "a rail has no usable GID, and is not used",                                                       \
       "Give its network interface an address, or set it up (ip link set ... up).")                                    \
    _X(305, PKEY, "the chosen partition key index is empty", "Choose another, or ask the subnet manager for one.")     \
    _X(306, NOT_OPENED, "a rail cannot be opened", "The line names the error: permissions of /dev/infiniband?")        \
    _X(307, NOT_USED, "a rail is not used, its port and its standby's are down", "Repair one of them.")                \
    _X(308, TOO_MANY, "more rails than the library has room for", "Name those to use: UCX_HA_RC_RAILS.")               \
    _X(309, SINGLE, "no failover with a peer: its second rail and ours do not meet, or it has only one",               \
       "Give the peer a second rail; UCX_HA_RC_RAILS and UCX_HA_RC_ZONES name what reaches what.")                     \
    _X(310, ADDRESS, "a peer's address is of another version", "Install the same version on both hosts.")              \
    _X(311, QP_REFUSED, "the device refuses a queue pair of this size",                                                \
       "Lower UCX_HA_RC_TX_QUEUE_LEN or RX_QUEUE_LEN; ulimit -l unlimited.")                                           \
    _X(312, WR_FEW, "the device's queue pairs are too small", "Leave it out by UCX_HA_RC_RAILS.")                      \
    _X(313, RTO_RAISED, "UCX_HA_RC_RTO is raised to what the hardware retries",                                        \
       "Nothing; or lower UCX_HA_RC_TIMEOUT and RETRY_COUNT as well.")                                                 \
    _X(314, RETRY7, "UCX_HA_RC_RETRY_COUNT=7 means for ever on this device, 6 is used", "Set it to 6 yourself.")       \
    _X(315, EVENT_FD, "no event descriptor", "Too many open files: ulimit -n.")                                        \
    _X(316, CQ, "a completion queue cannot be created", "A limit of the device or of locked memory: ulimit -l.")       \
    _X(317, NO_REACH, "two rails cannot talk to each other", "The line gives the reason; by design with two fabrics.") \
    _X(318, PROOF_PSN, "UCX_HA_RC_PROOF=psn, but the device does not report packet numbers exactly",                   \
       "Use auto or count.")                                                                                           \
    _X(319, ATOMICS_SW, "UCX_HA_RC_ATOMICS=hw is not possible on this device, sw is used", "Set sw everywhere.")       \
    _X(320, ATOMICS_TWO, "atomics through two cards are not atomic to each other", "Use ATOMICS=sw if words meet.")    \
    _X(321, CLASSES, "the peer uses another service level or traffic class",                                           \
       "Give the same UCX_HA_RC_SL and TRAFFIC_CLASS to all processes.")                                               \
    _X(322, OPTIONS, "the connect options of a peer are impossible", "Give both hosts the same settings.")             \
    _X(323, VERSION, "a packet of a peer is of another version", "Use the same libuct_ha.so on all hosts.")            \
    _X(324, NO_UD, "no control queue pair on a rail, its control packets take another way",                            \
       "Usually the locked-memory limit: ulimit -l unlimited.")                                                        \
    _X(325, NO_CONTROL, "nothing can carry control packets", "ulimit -l unlimited; UCX_HA_RC_CONTROL, TCP_INTERFACE.") \
    _X(326, RCACHE, "no registration cache", "UCX_HA_RC_RCACHE=try goes on without it.")                               \
    _X(327, REGISTER, "memory cannot be registered", "Raise the locked-memory limit: ulimit -l unlimited.")            \
    _X(328, LEDGER_ROOM, "no room for the marks of a peer that proves by ledger",                                      \
       "Lower UCX_HA_RC_TX_QUEUE_LEN, or UCX_HA_RC_PROOF=count there.")                                                \
    _X(329, CQ_ROOM, "no room in the completion queue for one more connection",                                        \
       "Lower UCX_HA_RC_RX_QUEUE_INIT, RX_MEM or TX_QUEUE_LEN.")                                                       \
    _X(330, QP_ROOM, "no queue pair or receive buffers for one more connection",                                       \
       "ulimit -l unlimited; lower UCX_HA_RC_RX_QUEUE_INIT, SEG_SIZE or TX_QUEUE_LEN.")                                \
    _X(331, REQUIRED, "UCX_HA_RC_REQUIRE=y, and there is no standby",                                                  \
       "Give host and peer a second rail, or do not require it.")                                                      \
    _X(332, NO_RAIL, "a port is not used: it cannot carry reliable connections",                                       \
       "Nothing, if others are; else see UCX's own transports for this device.")                                       \
    _X(333, CM, "rdmacm leads to a peer that cannot be connected to", "The line gives the reason and the remedy.")     \
    _X(341, STATS_FILE, "the statistics file cannot be written",                                                       \
       "Is its folder there, and writable for the user of the job?")                                                   \
    _X(401, UCX_BUILD, "the UCX of the program is not laid out as the one this was built for",                         \
       "The line says how it differs and which UCX to use: each case has its own way out.")                            \
    _X(402, UCX_OTHER, "the program uses a UCX that this ucx-ha has no transport for, or ucx-ha is incomplete",        \
       "The line names the way out; ldd shows whose UCX it is. 'libuct_ha_1_N.so: cannot open': built without UCX "    \
       "1.N, see configure --with-ucx in docs/porting.md.")                                                            \
    _X(501, AMO_HW, "the peer's card executes atomics and cannot execute this one", "ATOMICS=sw on all sides.")        \
    _X(502, AMO_ALIGN, "the address of an atomic is not a multiple of its size", "The program has to align it.")       \
    _X(503, REJECTED, "an operation was rejected", "The program used a wrong address, length or key.")                 \
    _X(504, LATE_MEMORY, "memory of an operation cannot be registered on the new rail", "ulimit -l unlimited.")        \
    _X(505, AMO_DROPPED, "an atomic request of a peer was dropped", "Version or key is wrong at the peer.")            \
    _X(506, AMO_STRAY, "an answer to an atomic that was not asked", "Please report it.")                               \
    _X(507, AMO_REFUSED, "an atomic was refused by its target", "The program used a wrong key or address.")            \
    _X(508, AMO_MALFORMED, "a malformed atomic message was dropped", "Install the same version on both hosts.")        \
    _X(509, NO_FENCE, "the device does not stop a queue pair", "The card is in trouble: dmesg, firmware.")             \
    _X(510, BAD_PROOF, "the peer's proof is impossible", "A device that misreports? UCX_HA_RC_PROOF=count there.")     \
    _X(511, LOST_FACT, "more facts at once than there is room for", "Please report it.")                               \
    _X(512, MUTE_DOUBT, "an operation that has no completion is in doubt, its endpoint ends", "As 214.")

enum uct_ha_message {
#define UCT_HA_MESSAGE_ENUM(_number, _name, _says, _do) UCT_HA_MSG_##_name = (_number),
    UCT_HA_MESSAGES(UCT_HA_MESSAGE_ENUM)
#undef UCT_HA_MESSAGE_ENUM
};

/* What to do about the message of this number, "" when there is none. */
const char *uct_ha_message_remedy(unsigned number);

#endif
