# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Cuts for an MPI job over both hosts that is no program of ours. Sourced by m_*.sh, which have set
#
#   there    a folder on the share where the ranks write UCX_HA_RC_STATS_FILE=$there/%h.%p.prom
#   folder   of logs; the job's words are in $folder/out
#   job      the job's process number here
#   cuts     how many
#   kinds    of faults, as words with commas between

# shellcheck disable=SC2154
# moved HOST: failovers of its rank so far
moved() { sed -n 's/^ucx_ha_failovers_total{.*} //p' "$there/$1".*.prom 2>/dev/null | grep . || echo 0; }

# protected: both ranks have as many standbys as pairs
protected() {
    local host pairs
    for host in h1 h2; do
        pairs=$(sed -n 's/^ucx_ha_pairs{.*} //p' "$there/$host".*.prom 2>/dev/null) || true
        [[ ${pairs:-0} != 0 && $pairs == "$(sed -n 's/^ucx_ha_standbys{.*} //p' "$there/$host".*.prom)" ]] || return 1
    done
}

both_moved() { (($(moved h1) > before1 && $(moved h2) > before2)); }

# until_fact SECONDS NAME: as long as the job runs
until_fact() {
    local until=$((SECONDS + $1))
    until "$2"; do
        ((SECONDS < until)) && kill -0 "$job" 2>/dev/null || return 1
        sleep 0.1
    done
}

# break_rail KIND RAIL [HOST]: 1 and $why when the lab could not do it, 2 when nobody left the rail
break_rail() {
    local restore=clear moved=0
    [[ $1 != down ]] || restore=up
    until_fact 60 protected || { why="no standby before"; return 1; }
    before1=$(moved h1) before2=$(moved h2)
    fault "$@" || { why="the lab could not do it"; return 1; }
    until_fact 15 both_moved || moved=2
    fault "$restore" "$2" || { why="the lab could not mend it"; return 1; }
    return "$moved"
}

# break_one N: sides and kinds alternate, and rails: it is to be the one in use, which is the other one when a busy
# machine made them leave theirs meanwhile.
break_one() {
    local rails=(a b) of host kind verdict
    IFS=, read -ra of <<<"$kinds"
    host=h$(($1 / 2 % 2 + 1))
    kind=${of[$1 % ${#of[@]}]}
    [[ $kind != drop ]] || host=""
    for _ in 0 1; do
        verdict=0
        # shellcheck disable=SC2086
        break_rail "$kind" "${rails[next_rail]}" $host || verdict=$?
        next_rail=$((1 - next_rail))
        ((verdict == 2)) || return "$verdict"
    done
    why="neither rail was left within 15 s"
    return 1
}
next_rail=0

# make_cuts: all of them, and a standby behind the last one; else $failed
make_cuts() {
    local n
    for ((n = 0; n < cuts && failed == 0; n++)); do
        break_one "$n" || not_ok "cut $n of $cuts" "$why; $(tail -n 1 "$folder/out" | cut -c1-200)"
    done
    ((failed == 0)) || keep_kernel_words
    ((failed > 0)) || until_fact 60 protected || not_ok "after the last cut" "no standby"
}
