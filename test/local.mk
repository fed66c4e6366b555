# SPDX-License-Identifier: BSD-3-Clause
# `make check`: unit tests (cmocka) and the simulator. Tests that need a lab
# are run by test/run_lab_tests. Add a test: its name to unit_tests, and its
# sources below.

if HAVE_CMOCKA
unit_tests = \
	test/unit/test_abi \
	test/unit/test_addr \
	test/unit/test_budget \
	test/unit/test_config \
	test/unit/test_core_damp \
	test/unit/test_core_fence \
	test/unit/test_core_log \
	test/unit/test_core_merge \
	test/unit/test_core_pace \
	test/unit/test_core_packet \
	test/unit/test_core_pair \
	test/unit/test_core_start \
	test/unit/test_core_proof \
	test/unit/test_core_recovery \
	test/unit/test_core_rto \
	test/unit/test_core_seal \
	test/unit/test_core_short \
	test/unit/test_core_beat \
	test/unit/test_core_lossy \
	test/unit/test_core_probe \
	test/unit/test_probes \
	test/unit/test_stall \
	test/unit/test_core_slow \
	test/unit/test_depths \
	test/unit/test_info \
	test/unit/test_link \
	test/unit/test_match \
	test/unit/test_netdev \
	test/unit/test_opts \
	test/unit/test_md \
	test/unit/test_reg \
	test/unit/test_provider \
	test/unit/test_topo \
	test/unit/test_trial \
	test/unit/test_device \
	test/unit/test_job \
	test/unit/test_chain \
	test/unit/test_slab \
	test/unit/test_topo_pair \
	test/unit/test_zone \
	test/unit/test_setup \
	test/glue/test_glue
check_PROGRAMS += $(unit_tests)
TESTS          += $(unit_tests)

unit_cppflags = $(AM_CPPFLAGS) $(UCX_CFLAGS) $(CMOCKA_CFLAGS)
unit_libs     = $(CMOCKA_LIBS)

test_unit_test_abi_SOURCES  = test/unit/test_abi.c uct_ha/abi/uct_ha_guard.c
test_unit_test_abi_CPPFLAGS = $(unit_cppflags)
test_unit_test_abi_LDADD    = $(unit_libs) $(UCX_LIBS) -lpthread

test_unit_test_addr_SOURCES  = test/unit/test_addr.c uct_ha/uct/addr.c uct_ha/uct/addr_cm.c uct_ha/pair/where.c
test_unit_test_addr_CPPFLAGS = $(unit_cppflags)
test_unit_test_addr_LDADD    = libha_topo.la libha_core.la $(unit_libs)

test_unit_test_budget_SOURCES  = test/unit/test_budget.c
test_unit_test_budget_CPPFLAGS = $(unit_cppflags)
test_unit_test_budget_LDADD    = libha_topo.la $(unit_libs)

test_unit_test_config_SOURCES  = test/unit/test_config.c uct_ha/base/config.c uct_ha/base/units.c uct_ha/abi/adapt_ucs.c
test_unit_test_config_CPPFLAGS = $(unit_cppflags)
test_unit_test_config_LDADD    = libha_topo.la $(unit_libs) $(UCX_LIBS)

# as test_core_log
test_unit_test_core_fence_SOURCES  = test/unit/test_core_fence.c
test_unit_test_core_fence_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_fence_LDADD    = $(unit_libs)

# compiles ha_log.c itself, with packet numbers of 4 bits
test_unit_test_core_log_SOURCES  = test/unit/test_core_log.c
test_unit_test_core_log_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_log_LDADD    = $(unit_libs)

test_unit_test_core_merge_SOURCES  = test/unit/test_core_merge.c
test_unit_test_core_merge_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_merge_LDADD    = libha_core.la $(unit_libs)

test_unit_test_core_pace_SOURCES  = test/unit/test_core_pace.c
test_unit_test_core_pace_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_pace_LDADD    = $(unit_libs)

test_unit_test_core_packet_SOURCES  = test/unit/test_core_packet.c
test_unit_test_core_packet_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_packet_LDADD    = libha_core.la $(unit_libs)

test_unit_test_core_damp_SOURCES  = test/unit/test_core_damp.c
test_unit_test_core_damp_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_damp_LDADD    = $(unit_libs)

test_unit_test_core_pair_SOURCES  = test/unit/test_core_pair.c \
	test/unit/pair_world.c test/unit/pair_world.h
test_unit_test_core_pair_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_pair_LDADD    = libha_core.la $(unit_libs)

test_unit_test_core_start_SOURCES  = test/unit/test_core_start.c \
	test/unit/pair_world.c test/unit/pair_world.h
test_unit_test_core_start_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_start_LDADD    = libha_core.la $(unit_libs)

# as test_core_log
test_unit_test_core_proof_SOURCES  = test/unit/test_core_proof.c
test_unit_test_core_proof_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_proof_LDADD    = $(unit_libs)

test_unit_test_core_recovery_SOURCES  = test/unit/test_core_recovery.c \
	test/unit/pair_world.c test/unit/pair_world.h
test_unit_test_core_recovery_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_recovery_LDADD    = libha_core.la $(unit_libs)

test_unit_test_core_rto_SOURCES  = test/unit/test_core_rto.c
test_unit_test_core_rto_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_rto_LDADD    = $(unit_libs)

test_unit_test_core_lossy_SOURCES  = test/unit/test_core_lossy.c
test_unit_test_core_lossy_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_lossy_LDADD    = $(unit_libs)

test_unit_test_probes_SOURCES  = test/unit/test_probes.c test/unit/probes_world.c \
	test/unit/probes_world.h uct_ha/ctl/bad.c uct_ha/ctl/beat.c uct_ha/ctl/fall.c uct_ha/ctl/stall.c \
	uct_ha/pair/awake.c
test_unit_test_probes_CPPFLAGS = $(unit_cppflags)
test_unit_test_probes_LDADD    = $(unit_libs) $(UCX_LIBS)

test_unit_test_stall_SOURCES  = test/unit/test_stall.c test/unit/probes_world.c \
	test/unit/probes_world.h uct_ha/ctl/bad.c uct_ha/ctl/beat.c uct_ha/ctl/fall.c uct_ha/ctl/stall.c \
	uct_ha/pair/awake.c
test_unit_test_stall_CPPFLAGS = $(unit_cppflags)
test_unit_test_stall_LDADD    = $(unit_libs) $(UCX_LIBS)
test_unit_test_core_probe_SOURCES  = test/unit/test_core_probe.c
test_unit_test_core_probe_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_probe_LDADD    = $(unit_libs)

test_unit_test_core_short_SOURCES  = test/unit/test_core_short.c
test_unit_test_core_short_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_short_LDADD    = $(unit_libs)

test_unit_test_core_seal_SOURCES  = test/unit/test_core_seal.c
test_unit_test_core_seal_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_seal_LDADD    = libha_core.la $(unit_libs)

test_unit_test_trial_SOURCES  = test/unit/test_trial.c uct_ha/verbs/ha_trial.c
test_unit_test_trial_CPPFLAGS = $(unit_cppflags) $(VERBS_CFLAGS)
test_unit_test_trial_LDADD    = $(unit_libs)

test_unit_test_chain_SOURCES  = test/unit/test_chain.c
test_unit_test_chain_CPPFLAGS = $(unit_cppflags)
test_unit_test_chain_LDADD    = $(unit_libs)

test_unit_test_slab_SOURCES  = test/unit/test_slab.c uct_ha/base/slab.c
test_unit_test_slab_CPPFLAGS = $(unit_cppflags)
test_unit_test_slab_LDADD    = $(unit_libs)

test_unit_test_job_SOURCES  = test/unit/test_job.c uct_ha/base/job.c
test_unit_test_job_CPPFLAGS = $(unit_cppflags)
test_unit_test_job_LDADD    = $(unit_libs) -lpthread

test_unit_test_device_SOURCES  = test/unit/test_device.c uct_ha/verbs/ha_device.c
test_unit_test_device_CPPFLAGS = $(unit_cppflags) $(VERBS_CFLAGS)
test_unit_test_device_LDADD    = $(unit_libs)

test_unit_test_core_beat_SOURCES  = test/unit/test_core_beat.c
test_unit_test_core_beat_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_beat_LDADD    = $(unit_libs)

test_unit_test_core_slow_SOURCES  = test/unit/test_core_slow.c
test_unit_test_core_slow_CPPFLAGS = $(unit_cppflags)
test_unit_test_core_slow_LDADD    = $(unit_libs)

md_sources = test/unit/md_world.c test/unit/md_world.h uct_ha/base/config.c uct_ha/base/units.c uct_ha/abi/adapt.c uct_ha/abi/adapt_ucs.c \
	uct_ha/mem/exposed.c uct_ha/uct/md.c uct_ha/uct/md_mem.c uct_ha/mem/duo.c uct_ha/mem/rails.c uct_ha/mem/rcache.c \
	uct_ha/mem/reg.c
test_unit_test_md_SOURCES  = test/unit/test_md.c $(md_sources)
test_unit_test_md_CPPFLAGS = $(unit_cppflags)
test_unit_test_md_LDADD    = libha_discover.la $(unit_libs) $(UCX_LIBS)

test_unit_test_reg_SOURCES  = test/unit/test_reg.c $(md_sources)
test_unit_test_reg_CPPFLAGS = $(unit_cppflags)
test_unit_test_reg_LDADD    = libha_discover.la $(unit_libs) $(UCX_LIBS)

test_unit_test_info_SOURCES  = test/unit/test_info.c $(info_judge_sources)
test_unit_test_info_CPPFLAGS = $(unit_cppflags)
test_unit_test_info_LDADD    = libha_topo.la libha_verbs.la $(unit_libs)

test_unit_test_netdev_SOURCES  = test/unit/test_netdev.c uct_ha/ctl/netdev.c
test_unit_test_netdev_CPPFLAGS = $(unit_cppflags)
test_unit_test_netdev_LDADD    = $(unit_libs)

test_unit_test_opts_SOURCES  = test/unit/test_opts.c
test_unit_test_opts_CPPFLAGS = $(unit_cppflags)
test_unit_test_opts_LDADD    = libha_core.la $(unit_libs)

test_unit_test_link_SOURCES  = test/unit/test_link.c uct_ha/verbs/ha_link.c
test_unit_test_link_CPPFLAGS = $(unit_cppflags)
test_unit_test_link_LDADD    = libha_topo.la $(unit_libs)

test_unit_test_match_SOURCES  = test/unit/test_match.c
test_unit_test_match_CPPFLAGS = $(unit_cppflags)
test_unit_test_match_LDADD    = libha_topo.la $(unit_libs)

test_unit_test_provider_SOURCES  = test/unit/test_provider.c uct_ha/verbs/ha_provider.c
test_unit_test_provider_CPPFLAGS = $(unit_cppflags)
test_unit_test_provider_LDADD    = $(unit_libs)

test_unit_test_depths_SOURCES  = test/unit/test_depths.c
test_unit_test_depths_CPPFLAGS = $(unit_cppflags)
test_unit_test_depths_LDADD    = libha_topo.la $(unit_libs)

test_unit_test_zone_SOURCES  = test/unit/test_zone.c
test_unit_test_zone_CPPFLAGS = $(unit_cppflags)
test_unit_test_zone_LDADD    = libha_topo.la $(unit_libs)

test_unit_test_topo_SOURCES  = test/unit/test_topo.c
test_unit_test_topo_CPPFLAGS = $(unit_cppflags)
test_unit_test_topo_LDADD    = libha_discover.la $(unit_libs)

test_unit_test_topo_pair_SOURCES  = test/unit/test_topo_pair.c
test_unit_test_topo_pair_CPPFLAGS = $(unit_cppflags)
test_unit_test_topo_pair_LDADD    = libha_topo.la $(unit_libs)

test_unit_test_setup_SOURCES  = test/unit/test_setup.c uct_ha/pair/setup.c
test_unit_test_setup_CPPFLAGS = $(unit_cppflags)
test_unit_test_setup_LDADD    = $(unit_libs)

# the whole transport over hardware made of memory, instead of uct_ha/verbs
test_glue_test_glue_SOURCES = $(glue_sources) \
	%D%/glue/fake_cq.c \
	%D%/glue/fake_mr.c \
	%D%/glue/fake_net.c \
	%D%/glue/fake_path.c \
	%D%/glue/fake_personality.c \
	%D%/glue/fake_priv.h \
	%D%/glue/fake_fault.c \
	%D%/glue/fake_rail.c \
	%D%/glue/fake_rc.c \
	%D%/glue/fake_srq.c \
	%D%/glue/fake_responder.c \
	%D%/glue/fake_ud.c \
	%D%/glue/fake_verbs.h \
	%D%/glue/glue_rma.c \
	%D%/glue/glue_rma.h \
	%D%/glue/glue_am.c \
	%D%/glue/glue_side.c \
	%D%/glue/glue_side.h \
	%D%/glue/glue_tests.h \
	%D%/glue/test_glue.c \
	%D%/glue/test_glue_atomics.c \
	%D%/glue/test_glue_barrier.c \
	%D%/glue/test_glue_triggers.c \
	%D%/glue/test_glue_credits.c \
	%D%/glue/test_glue_order.c \
	%D%/glue/test_glue_silent.c \
	%D%/glue/test_glue_basic.c \
	%D%/glue/test_glue_devices.c \
	%D%/glue/test_glue_detect.c \
	%D%/glue/test_glue_ends.c \
	%D%/glue/test_glue_leave.c \
	%D%/glue/test_glue_failover.c \
	%D%/glue/test_glue_hang.c \
	%D%/glue/test_glue_hundreds.c \
	%D%/glue/test_glue_memory.c \
	%D%/glue/forged.c %D%/glue/forged.h \
	%D%/glue/test_glue_forged.c \
	%D%/glue/test_glue_sealed.c \
	%D%/glue/test_glue_again.c \
	%D%/glue/test_glue_strangers.c \
	%D%/glue/test_glue_many.c \
	%D%/glue/test_glue_opts.c \
	%D%/glue/test_glue_paths.c \
	%D%/glue/test_glue_peers.c \
	%D%/glue/test_glue_personality.c \
	%D%/glue/test_glue_card.c \
	%D%/glue/test_glue_cm.c \
	%D%/glue/test_glue_report.c \
	%D%/glue/test_glue_room.c \
	%D%/glue/test_glue_cold.c \
	%D%/glue/test_glue_gets.c \
	%D%/glue/test_glue_parts.c \
	%D%/glue/test_glue_keep.c \
	%D%/glue/test_glue_repost.c \
	%D%/glue/test_glue_shared.c \
	%D%/glue/test_glue_proof.c \
	%D%/glue/test_glue_receive.c \
	%D%/glue/test_glue_rma.c \
	%D%/glue/test_glue_setup_faults.c \
	%D%/glue/test_glue_soak.c \
	%D%/glue/test_glue_zones.c
test_glue_test_glue_CPPFLAGS = $(unit_cppflags)
test_glue_test_glue_LDADD    = libha_core.la libha_discover.la $(unit_libs) $(UCX_LIBS) -lpthread

# for test/mutants/run_glue_mutants, run by a step of ./check of its own
glue-recipe:
	@echo 'compile $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(test_glue_test_glue_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)'
	@echo 'link $(LIBTOOL) --silent --tag=CC --mode=link $(CCLD) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS)'
	@echo 'objects $(test_glue_test_glue_OBJECTS)'
	@echo 'libs $(test_glue_test_glue_LDADD) $(LIBS)'
endif

EXTRA_DIST += test/mutants/run_glue_mutants test/mutants/glue_mutants.py test/mutants/glue_mutants_receiving.py \
	test/mutants/glue_mutants_parts.py \
	test/mutants/run_engine_mutants test/mutants/engine_mutants.py test/mutants/engine_mutants_peers.py \
	test/mutants/mutant_run.py test/mutants/README.md

# how test/mutants/mutant_library compiles a source of the transport
library-recipe:
	@echo '$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(libglue_1_13_la_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)'

EXTRA_DIST += test/mutants/mutant_library

# the failover core in a world of bad luck; and the proof that this notices a broken core
check_PROGRAMS += test/sim/ha_sim
TESTS          += test/sim/ha_sim test/mutants/run_mutants
EXTRA_DIST     += test/mutants/run_mutants test/mutants/mutant_text.py

test_sim_ha_sim_SOURCES = \
	%D%/sim/sim.h \
	%D%/sim/sim_cover.c \
	%D%/sim/sim_cover.h \
	%D%/sim/sim_data.c \
	%D%/sim/sim_fate.c \
	%D%/sim/sim_main.c \
	%D%/sim/sim_make.c \
	%D%/sim/sim_oracle.c \
	%D%/sim/sim_rail.c \
	%D%/sim/sim_report.c \
	%D%/sim/sim_side.c \
	%D%/sim/sim_user.c \
	%D%/sim/sim_wire.c \
	%D%/sim/sim_work.c \
	%D%/sim/sim_world.c
test_sim_ha_sim_LDADD = libha_core.la

# every interleaving of a small world around the failover core, packet numbers of 4 bits
check_PROGRAMS += test/model/ha_explore
TESTS          += test/model/ha_explore test/model/run_mutants
EXTRA_DIST     += test/model/run_mutants test/model/explore_large

test_model_ha_explore_SOURCES = \
	%D%/model/model.h \
	%D%/model/model_card.c \
	%D%/model/model_data.c \
	%D%/model/model_fate.c \
	%D%/model/model_main.c \
	%D%/model/model_oracle.c \
	%D%/model/model_pack.c \
	%D%/model/model_proof.c \
	%D%/model/model_reduce.c \
	%D%/model/model_search.c \
	%D%/model/model_side.c \
	%D%/model/model_small.c \
	%D%/model/model_wire.c \
	%D%/model/model_world.c \
	$(libha_core_la_SOURCES)
test_model_ha_explore_CPPFLAGS = $(AM_CPPFLAGS) -DHA_PSN_BITS=4

# the tables of docs/topology.md, from made-up machines
check_PROGRAMS += test/topo/topology_table
TESTS          += test/topo/run_topology
EXTRA_DIST     += test/topo/run_topology test/topo/shapes.py

test_topo_topology_table_SOURCES = test/topo/topology_table.c
test_topo_topology_table_LDADD   = libha_discover.la

# checked traffic: of the lab tests, not of `make check`; and of ha_certify, so that it is installed
pkglibexec_PROGRAMS += test/lab_tests/ha_torture

test_lab_tests_ha_torture_SOURCES = \
	%D%/lab_tests/ha_torture.c \
	%D%/lab_tests/torture.h \
	%D%/lab_tests/torture_amo.c \
	%D%/lab_tests/torture_buffer.c \
	%D%/lab_tests/torture_connect.c \
	%D%/lab_tests/torture_count.c \
	%D%/lab_tests/torture_link.c \
	%D%/lab_tests/torture_msg.c \
	%D%/lab_tests/torture_options.c \
	%D%/lab_tests/torture_pattern.c \
	%D%/lab_tests/torture_remote.c \
	%D%/lab_tests/torture_report.c \
	%D%/lab_tests/torture_rma.c \
	%D%/lab_tests/torture_series.c
test_lab_tests_ha_torture_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_lab_tests_ha_torture_LDADD    = $(UCX_LIBS) -ldl -lm
test_lab_tests_ha_torture_LDFLAGS  = $(AM_LDFLAGS) -rdynamic

# the library that everybody loads: in processes with every kind of UCX, and none
EXTRA_DIST += test/front/test_front.sh test/front/test_symbols.sh test/front/minors test/front/suites
if !HA_SANITIZED
check_PROGRAMS += test/front/front_probe
TESTS          += test/front/test_front.sh test/front/test_symbols.sh
test_front_front_probe_SOURCES  = test/front/front_probe.c
test_front_front_probe_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_front_front_probe_LDADD    = -ldl -lpthread
endif

# who gets a second chance: needs no lab
TESTS      += test/test_run_lab_tests.sh test/test_make_check.sh test/test_in_suite.sh
EXTRA_DIST += test/test_run_lab_tests.sh test/test_make_check.sh scripts/make_check test/test_in_suite.sh \
	scripts/in_suite scripts/packages.sh

# and what it says can be believed: needs no lab (sanitizers report what UCX leaks)
if !HA_SANITIZED
TESTS += test/lab_tests/test_torture.sh
endif

if HAVE_OMPI
noinst_PROGRAMS += test/lab_tests/ha_alltoall
test_lab_tests_ha_alltoall_SOURCES  = %D%/lab_tests/ha_alltoall.c
test_lab_tests_ha_alltoall_CPPFLAGS = $(AM_CPPFLAGS) $(MPICC_CFLAGS)
test_lab_tests_ha_alltoall_LDADD    = $(MPICC_LIBS) -ldl
endif
EXTRA_DIST += %D%/lab_tests/ha_shmem.c # by test/softcard/run_jobs, with oshcc

fuzz_tests    = test/fuzz/fuzz_addr test/fuzz/fuzz_frame test/fuzz/fuzz_packet
EXTRA_DIST   += test/fuzz/libfuzzer

test_fuzz_fuzz_addr_SOURCES  = $(fuzz_driver) %D%/fuzz/fuzz_addr.c uct_ha/uct/addr.c uct_ha/uct/addr_cm.c uct_ha/pair/where.c
test_fuzz_fuzz_addr_CPPFLAGS = $(fuzz_cppflags) $(UCX_CFLAGS)
test_fuzz_fuzz_addr_LDADD    = libha_topo.la libha_core.la

# compiles ctl/tcp.c itself: its reader of frames is not public
test_fuzz_fuzz_frame_SOURCES  = $(fuzz_driver) %D%/fuzz/fuzz_frame.c uct_ha/base/now.c uct_ha/ctl/netdev.c
test_fuzz_fuzz_frame_CPPFLAGS = $(fuzz_cppflags) $(UCX_CFLAGS)
test_fuzz_fuzz_frame_LDADD    = $(UCX_LIBS) -lpthread

test_fuzz_fuzz_packet_SOURCES  = $(fuzz_driver) %D%/fuzz/fuzz_packet.c
test_fuzz_fuzz_packet_CPPFLAGS = $(fuzz_cppflags)
test_fuzz_fuzz_packet_LDADD    = libha_core.la

if HAVE_CMOCKA
fuzz_tests += test/fuzz/fuzz_glue
test_fuzz_fuzz_glue_SOURCES = $(fuzz_driver) $(glue_sources) \
	%D%/fuzz/fuzz_glue.c \
	%D%/glue/fake_cq.c \
	%D%/glue/fake_mr.c \
	%D%/glue/fake_net.c \
	%D%/glue/fake_path.c \
	%D%/glue/fake_personality.c \
	%D%/glue/fake_priv.h \
	%D%/glue/fake_fault.c \
	%D%/glue/fake_rail.c \
	%D%/glue/fake_rc.c \
	%D%/glue/fake_srq.c \
	%D%/glue/fake_responder.c \
	%D%/glue/fake_ud.c \
	%D%/glue/fake_verbs.h \
	%D%/glue/glue_am.c \
	%D%/glue/glue_side.c \
	%D%/glue/glue_side.h
test_fuzz_fuzz_glue_CPPFLAGS = $(fuzz_cppflags) -I$(top_srcdir)/test/glue $(UCX_CFLAGS) $(CMOCKA_CFLAGS)
test_fuzz_fuzz_glue_LDADD    = libha_core.la libha_discover.la $(CMOCKA_LIBS) $(UCX_LIBS) -lpthread
endif
check_PROGRAMS += $(fuzz_tests)
TESTS          += $(fuzz_tests)
