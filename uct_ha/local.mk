# SPDX-License-Identifier: BSD-3-Clause
# libuct_ha.so, which everybody loads = front/, and nothing else. The transport, which that loads:
# libuct_ha_1_<minor>.so = glue (uct, data, ctl, pair, lane, mem, base; abi) + core/ and topo/ (pure) + verbs/.

noinst_LTLIBRARIES += libha_core.la libha_topo.la libha_discover.la libha_verbs.la
lib_LTLIBRARIES    += libuct_ha.la
include_HEADERS    += %D%/uct_ha.h
man_MANS           += docs/man/ha_rc.7
EXTRA_DIST         += \
	%D%/abi/README.md \
	%D%/base/README.md \
	%D%/core/README.md \
	%D%/ctl/README.md \
	%D%/data/README.md \
	%D%/lane/README.md \
	%D%/mem/README.md \
	%D%/pair/README.md \
	%D%/topo/README.md \
	%D%/uct/README.md \
	%D%/verbs/README.md

# pure: libc only
libha_core_la_SOURCES = \
	%D%/core/ha_damp.h \
	%D%/core/ha_log.c \
	%D%/core/ha_log.h \
	%D%/core/ha_opts.c \
	%D%/core/ha_opts.h \
	%D%/core/ha_pace.h \
	%D%/core/ha_name.c \
	%D%/core/ha_name.h \
	%D%/core/ha_packet.c \
	%D%/core/ha_packet.h \
	%D%/core/ha_pair.c \
	%D%/core/ha_pair.h \
	%D%/core/ha_pair_msg.c \
	%D%/core/ha_pair_msg.h \
	%D%/core/ha_pair_msg_internal.h \
	%D%/core/ha_pair_rule.c \
	%D%/core/ha_pair_rule.h \
	%D%/core/ha_proof.h \
	%D%/core/ha_psn.h \
	%D%/core/ha_state.c \
	%D%/core/ha_state.h \
	%D%/core/ha_state_internal.h \
	%D%/core/ha_rto.h \
	%D%/core/ha_seal.c %D%/core/ha_seal.h \
	%D%/core/ha_beat.h %D%/core/ha_lossy.h %D%/core/ha_probe.h %D%/core/ha_slow.h

# pure too: which rail backs which
libha_topo_la_SOURCES = \
	%D%/topo/ha_budget.c \
	%D%/topo/ha_budget.h \
	%D%/topo/ha_depths.c \
	%D%/topo/ha_depths.h \
	%D%/topo/ha_match.c \
	%D%/topo/ha_match.h \
	%D%/topo/ha_near.c \
	%D%/topo/ha_near.h \
	%D%/topo/ha_span.h \
	%D%/topo/ha_topo.c \
	%D%/topo/ha_topo.h \
	%D%/topo/ha_topo_groups.c \
	%D%/topo/ha_topo_pair.c \
	%D%/topo/ha_topo_pair.h \
	%D%/topo/ha_zone.c \
	%D%/topo/ha_zone.h

# the only place that knows hwloc
libha_discover_la_SOURCES = %D%/topo/ha_discover.c %D%/topo/ha_discover.h %D%/topo/ha_discover_hwloc.h
if HAVE_HWLOC
libha_discover_la_SOURCES += %D%/topo/ha_discover_hwloc.c
else
libha_discover_la_SOURCES += %D%/topo/ha_discover_nohwloc.c
endif
libha_discover_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS)
libha_discover_la_LIBADD   = libha_topo.la $(HWLOC_LIBS) -lpthread

# the only place that knows libibverbs
libha_verbs_la_SOURCES = \
	%D%/verbs/ha_addr.h \
	%D%/verbs/ha_cq.c \
	%D%/verbs/ha_cq_priv.h \
	%D%/verbs/ha_device.c \
	%D%/verbs/ha_device.h \
	%D%/verbs/ha_facts.c \
	%D%/verbs/ha_facts.h \
	%D%/verbs/ha_gid.c \
	%D%/verbs/ha_gid.h \
	%D%/verbs/ha_link.c \
	%D%/verbs/ha_link.h \
	%D%/verbs/ha_mr.c \
	%D%/verbs/ha_provider.c \
	%D%/verbs/ha_provider.h \
	%D%/verbs/ha_qp.h \
	%D%/verbs/ha_rail.c \
	%D%/verbs/ha_rail.h \
	%D%/verbs/ha_rail_event.c \
	%D%/verbs/ha_rail_priv.h \
	%D%/verbs/ha_trial.c \
	%D%/verbs/ha_trial.h \
	%D%/verbs/ha_rc.c \
	%D%/verbs/ha_srq.c \
	%D%/verbs/ha_ud.c \
	%D%/verbs/ha_ud.h
libha_verbs_la_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
libha_verbs_la_LIBADD   = $(VERBS_LIBS) -lpthread

# the transport: compiled once for each UCX that configure was pointed at
glue_sources = \
	%D%/abi/adapt.c \
	%D%/abi/adapt.h \
	%D%/abi/adapt_ucs.c \
	%D%/uct_ha_counters.h \
	%D%/abi/uct_ha_abi.h \
	%D%/abi/uct_ha_guard.c \
	%D%/abi/uct_ha_guard.h \
	%D%/abi/ucx_1_13.h \
	%D%/abi/ucx_1_14_on.h \
	%D%/abi/ucx_common.h \
	%D%/abi/ucx_md_rcache.h \
	%D%/abi/ucx_v2.h \
	%D%/base/config.c \
	%D%/base/config.h \
	%D%/base/hash.c \
	%D%/base/hash.h \
	%D%/base/line.h \
	%D%/base/job.c \
	%D%/base/job.h \
	%D%/base/messages.c \
	%D%/base/messages.h \
	%D%/base/now.c \
	%D%/base/now.h \
	%D%/base/random.c \
	%D%/base/random.h \
	%D%/base/slab.c \
	%D%/base/slab.h \
	%D%/base/stats.c \
	%D%/base/stats.h \
	%D%/base/units.c \
	%D%/base/units.h \
	%D%/base/wake.c \
	%D%/base/wake.h \
	%D%/mem/duo.c \
	%D%/mem/duo.h \
	%D%/mem/exposed.c \
	%D%/mem/exposed.h \
	%D%/mem/rails.c \
	%D%/mem/rails.h \
	%D%/mem/rcache.c \
	%D%/mem/rcache.h \
	%D%/mem/reg.c \
	%D%/mem/reg.h \
	%D%/mem/rkey.h \
	%D%/lane/chain.h \
	%D%/lane/desc.c \
	%D%/lane/desc.h \
	%D%/lane/fence.c \
	%D%/lane/fence.h \
	%D%/lane/lane.c \
	%D%/lane/lane.h \
	%D%/lane/lanes.h \
	%D%/lane/ledger.c \
	%D%/lane/ledger.h \
	%D%/lane/look.c \
	%D%/lane/look.h \
	%D%/lane/repost.c \
	%D%/lane/repost.h \
	%D%/lane/ring.c \
	%D%/lane/ring.h \
	%D%/lane/road.h \
	%D%/lane/room.c \
	%D%/lane/room.h \
	%D%/lane/number.c \
	%D%/lane/number.h \
	%D%/lane/selftest.c \
	%D%/lane/selftest.h \
	%D%/lane/shared.c \
	%D%/lane/shared.h \
	%D%/lane/settle.c \
	%D%/lane/settle.h \
	%D%/pair/attend.c \
	%D%/pair/attend.h \
	%D%/pair/attention.c \
	%D%/pair/attention.h \
	%D%/pair/awake.c \
	%D%/pair/awake.h \
	%D%/pair/cold.c \
	%D%/pair/cold.h \
	%D%/pair/conn.c \
	%D%/pair/conn.h \
	%D%/pair/due.c \
	%D%/pair/due.h \
	%D%/pair/fact.c \
	%D%/pair/fact.h \
	%D%/pair/failover.c \
	%D%/pair/failover.h \
	%D%/pair/lost.c \
	%D%/pair/lost.h \
	%D%/pair/outage.c \
	%D%/pair/outage.h \
	%D%/pair/pairs.c \
	%D%/pair/pairs.h \
	%D%/pair/peer.c \
	%D%/pair/peer.h \
	%D%/pair/report.c \
	%D%/pair/report.h \
	%D%/pair/setup.c \
	%D%/pair/setup.h \
	%D%/pair/tell.c \
	%D%/pair/tell.h \
	%D%/pair/twins.c \
	%D%/pair/twins.h \
	%D%/pair/txlog.c \
	%D%/pair/txlog.h \
	%D%/pair/where.c \
	%D%/pair/where.h \
	%D%/data/amo.c \
	%D%/data/amo.h \
	%D%/data/end.c \
	%D%/data/end.h \
	%D%/data/flow.c \
	%D%/data/flow.h \
	%D%/data/late.c \
	%D%/data/late.h \
	%D%/data/pending.c \
	%D%/data/pending.h \
	%D%/data/resume.c \
	%D%/data/resume.h \
	%D%/data/retire.c \
	%D%/data/retire.h \
	%D%/data/rx.c \
	%D%/data/rx.h \
	%D%/data/go.c \
	%D%/data/go.h \
	%D%/data/tx.c \
	%D%/data/tx.h \
	%D%/ctl/async.c \
	%D%/ctl/async.h \
	%D%/ctl/bad.c \
	%D%/ctl/bad.h \
	%D%/ctl/beat.c \
	%D%/ctl/beat.h \
	%D%/ctl/check.c \
	%D%/ctl/check.h \
	%D%/ctl/ctl.h \
	%D%/ctl/flush.c \
	%D%/ctl/flush.h \
	%D%/ctl/look.c \
	%D%/ctl/look.h \
	%D%/ctl/msg.c \
	%D%/ctl/msg.h \
	%D%/ctl/netdev.c \
	%D%/ctl/netdev.h \
	%D%/ctl/open.c \
	%D%/ctl/open.h \
	%D%/ctl/path.c \
	%D%/ctl/path.h \
	%D%/ctl/port.c \
	%D%/ctl/port.h \
	%D%/ctl/prom.c \
	%D%/ctl/prom.h \
	%D%/ctl/prom_text.c \
	%D%/ctl/prom_text.h \
	%D%/ctl/fall.c \
	%D%/ctl/fall.h \
	%D%/ctl/rail.c \
	%D%/ctl/rail.h \
	%D%/ctl/send.c \
	%D%/ctl/send.h \
	%D%/ctl/stall.c \
	%D%/ctl/stall.h \
	%D%/ctl/standby.c \
	%D%/ctl/standby.h \
	%D%/ctl/tcp.c \
	%D%/ctl/tcp.h \
	%D%/ctl/terms.c \
	%D%/ctl/terms.h \
	%D%/ctl/timer.c \
	%D%/ctl/timer.h \
	%D%/ctl/watch.c \
	%D%/ctl/watch.h \
	%D%/uct/accept.c \
	%D%/uct/accept.h \
	%D%/uct/addr.c \
	%D%/uct/addr.h \
	%D%/uct/addr_cm.c \
	%D%/uct/addr_cm.h \
	%D%/uct/choose.c \
	%D%/uct/choose.h \
	%D%/uct/component.c \
	%D%/uct/control.c \
	%D%/uct/control.h \
	%D%/uct/domain.h \
	%D%/uct/ep.c \
	%D%/uct/ep.h \
	%D%/uct/ep_am.c \
	%D%/uct/ep_am.h \
	%D%/uct/ep_amo.c \
	%D%/uct/ep_amo.h \
	%D%/uct/ep_rma.c \
	%D%/uct/ep_rma.h \
	%D%/uct/iface.h \
	%D%/uct/iface_ops.c \
	%D%/uct/iface_ops.h \
	%D%/uct/iface_setup.c \
	%D%/uct/iface_setup.h \
	%D%/uct/iov.c \
	%D%/uct/iov.h \
	%D%/uct/leave.c \
	%D%/uct/leave.h \
	%D%/uct/md.c \
	%D%/uct/md.h \
	%D%/uct/md_mem.c \
	%D%/uct/md_mem.h \
	%D%/uct/poll.c \
	%D%/uct/poll.h \
	%D%/uct/progress.c \
	%D%/uct/progress.h \
	%D%/uct/reach.c \
	%D%/uct/reach.h \
	%D%/uct/totals.c \
	%D%/uct/totals.h
# UCX keeps pointers into the library until the process ends: never unload it.
glue_ldflags = $(AM_LDFLAGS) -module -avoid-version -no-undefined \
	-export-symbols-regex '^uct_ha_((rail_)?stats_get|refusal)$$' -Wl,-z,nodelete
glue_libs    = libha_core.la libha_discover.la libha_verbs.la

include %D%/minors.mk
EXTRA_DIST += %D%/minor.mk.in

# libc only: it is in processes that never heard of UCX
libuct_ha_la_SOURCES = \
	%D%/front/attach.c \
	%D%/front/attach.h \
	%D%/front/front.c \
	%D%/front/say.c \
	%D%/front/say.h \
	%D%/front/ucx.c \
	%D%/front/ucx.h
nodist_libuct_ha_la_SOURCES = $(front_symbols)
# own objects, as in the tests the glue is linked without the front
libuct_ha_la_CPPFLAGS = $(AM_CPPFLAGS)
libuct_ha_la_LIBADD   = -ldl
libuct_ha_la_LDFLAGS  = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-export-symbols-regex '^uct_(ha_((rail_)?stats_get|refusal)|query_components)$$' -Wl,-z,nodelete

# what each minor's library needs of UCX, for the front to ask for
front_symbols   = %D%/front/minors.h
EXTRA_DIST     += %D%/abi/ucx.symbols scripts/ucx_symbols scripts/make_minors
BUILT_SOURCES  += $(front_symbols)
CLEANFILES     += $(front_symbols)
%D%/front/minors.h: %D%/abi/ucx.symbols scripts/ucx_symbols
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(top_srcdir)/scripts/ucx_symbols --header $(UCX_KNOWN) >$@.tmp && mv $@.tmp $@
# nothing but libuct_ha.so and the transports
transports: $(front_symbols)
	$(MAKE) $(AM_MAKEFLAGS) libuct_ha.la `for m in $(UCX_MINORS); do echo libuct_ha_$${m%%=*}.la; done`
