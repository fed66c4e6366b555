# SPDX-License-Identifier: BSD-3-Clause
# The transport: libuct_ha.so = glue (here, abi/) + core/ and topo/ (pure) + verbs/.

noinst_LTLIBRARIES += libha_core.la libha_topo.la libha_discover.la libha_verbs.la
lib_LTLIBRARIES    += libuct_ha.la
include_HEADERS    += %D%/uct_ha.h

# pure: libc only
libha_core_la_SOURCES = \
	%D%/core/ha_damp.h \
	%D%/core/ha_log.c \
	%D%/core/ha_log.h \
	%D%/core/ha_opts.c \
	%D%/core/ha_opts.h \
	%D%/core/ha_pace.h \
	%D%/core/ha_packet.c \
	%D%/core/ha_packet.h \
	%D%/core/ha_pair.c \
	%D%/core/ha_pair.h \
	%D%/core/ha_pair_internal.h \
	%D%/core/ha_pair_msg.c \
	%D%/core/ha_pair_rule.c \
	%D%/core/ha_proof.h \
	%D%/core/ha_psn.h \
	%D%/core/ha_rto.h \
	%D%/core/ha_beat.h %D%/core/ha_slow.h

# pure too: which rail backs which
libha_topo_la_SOURCES = \
	%D%/topo/ha_budget.c \
	%D%/topo/ha_budget.h \
	%D%/topo/ha_depths.c \
	%D%/topo/ha_depths.h \
	%D%/topo/ha_match.c \
	%D%/topo/ha_match.h \
	%D%/topo/ha_span.h \
	%D%/topo/ha_topo.c \
	%D%/topo/ha_topo.h \
	%D%/topo/ha_topo_groups.c \
	%D%/topo/ha_topo_pair.c \
	%D%/topo/ha_topo_pair.h \
	%D%/topo/ha_zone.c \
	%D%/topo/ha_zone.h

# the only place that knows hwloc
libha_discover_la_SOURCES = %D%/topo/ha_discover.c %D%/topo/ha_discover.h
if HAVE_HWLOC
libha_discover_la_SOURCES += %D%/topo/ha_discover_hwloc.c
else
libha_discover_la_SOURCES += %D%/topo/ha_discover_nohwloc.c
endif
libha_discover_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS)
libha_discover_la_LIBADD   = libha_topo.la $(HWLOC_LIBS) -lpthread

# the only place that knows libibverbs
libha_verbs_la_SOURCES = \
	%D%/verbs/ha_cq.c \
	%D%/verbs/ha_cq_priv.h \
	%D%/verbs/ha_facts.c \
	%D%/verbs/ha_facts.h \
	%D%/verbs/ha_gid.c \
	%D%/verbs/ha_gid.h \
	%D%/verbs/ha_mr.c \
	%D%/verbs/ha_provider.c \
	%D%/verbs/ha_provider.h \
	%D%/verbs/ha_qp.h \
	%D%/verbs/ha_rail.c \
	%D%/verbs/ha_rail.h \
	%D%/verbs/ha_rail_priv.h \
	%D%/verbs/ha_rc.c \
	%D%/verbs/ha_ud.c \
	%D%/verbs/ha_ud.h
libha_verbs_la_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
libha_verbs_la_LIBADD   = $(VERBS_LIBS) -lpthread

libuct_ha_la_SOURCES = \
	%D%/abi/ucx_1_13.h \
	%D%/abi/uct_ha_abi.h \
	%D%/abi/uct_ha_guard.c \
	%D%/abi/uct_ha_guard.h \
	%D%/uct_ha_addr.c \
	%D%/uct_ha_addr.h \
	%D%/uct_ha_amo.c \
	%D%/uct_ha_amo.h \
	%D%/uct_ha_component.c \
	%D%/uct_ha_config.c \
	%D%/uct_ha_config.h \
	%D%/uct_ha_conn.c \
	%D%/uct_ha_conn.h \
	%D%/uct_ha_ctl.c \
	%D%/uct_ha_ctl.h \
	%D%/uct_ha_ctl_async.c \
	%D%/uct_ha_ctl_msg.c \
	%D%/uct_ha_ctl_rail.c \
	%D%/uct_ha_ctl_send.c \
	%D%/uct_ha_desc.c \
	%D%/uct_ha_desc.h \
	%D%/uct_ha_ep.c \
	%D%/uct_ha_ep.h \
	%D%/uct_ha_ep_am.c \
	%D%/uct_ha_ep_amo.c \
	%D%/uct_ha_ep_rma.c \
	%D%/uct_ha_exposed.c \
	%D%/uct_ha_exposed.h \
	%D%/uct_ha_failover.c \
	%D%/uct_ha_fence.c \
	%D%/uct_ha_fence.h \
	%D%/uct_ha_failover.h \
	%D%/uct_ha_iface_setup.c \
	%D%/uct_ha_iface.c \
	%D%/uct_ha_iface.h \
	%D%/uct_ha_job.c \
	%D%/uct_ha_job.h \
	%D%/uct_ha_ledger.c \
	%D%/uct_ha_ledger.h \
	%D%/uct_ha_md.c \
	%D%/uct_ha_md.h \
	%D%/uct_ha_late.c \
	%D%/uct_ha_late.h \
	%D%/uct_ha_look.c \
	%D%/uct_ha_look.h \
	%D%/uct_ha_mem.c \
	%D%/uct_ha_mem.h \
	%D%/uct_ha_opts.c \
	%D%/uct_ha_opts.h \
	%D%/uct_ha_peer.c \
	%D%/uct_ha_peer.h \
	%D%/uct_ha_peer_path.c \
	%D%/uct_ha_pending.c \
	%D%/uct_ha_proof.c \
	%D%/uct_ha_proof.h \
	%D%/uct_ha_netdev.c \
	%D%/uct_ha_netdev.h \
	%D%/uct_ha_random.c \
	%D%/uct_ha_random.h \
	%D%/uct_ha_rails.c \
	%D%/uct_ha_rails.h \
	%D%/uct_ha_rcache.c \
	%D%/uct_ha_rcache.h \
	%D%/uct_ha_reg.c \
	%D%/uct_ha_reg.h \
	%D%/uct_ha_ring.c \
	%D%/uct_ha_ring.h \
	%D%/uct_ha_room.c \
	%D%/uct_ha_room.h \
	%D%/uct_ha_rx.c \
	%D%/uct_ha_rx.h \
	%D%/uct_ha_setup.c \
	%D%/uct_ha_setup.h \
	%D%/uct_ha_selftest.c \
	%D%/uct_ha_selftest.h \
	%D%/uct_ha_stats.c \
	%D%/uct_ha_stats.h \
	%D%/uct_ha_tcp.c \
	%D%/uct_ha_tcp.h \
	%D%/uct_ha_tell.c \
	%D%/uct_ha_tell.h \
	%D%/uct_ha_tx.c \
	%D%/uct_ha_tx.h \
	%D%/uct_ha_watch.c \
	%D%/uct_ha_watch.h
libuct_ha_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
libuct_ha_la_LIBADD   = libha_core.la libha_discover.la libha_verbs.la $(UCX_LIBS) -lpthread
# UCX keeps pointers into the library until the process ends: never unload it.
libuct_ha_la_LDFLAGS  = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-export-symbols-regex '^uct_ha_(rail_)?stats_get$$' -Wl,-z,nodelete
