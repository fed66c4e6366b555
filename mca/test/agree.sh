# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Whether what a job is told of its failovers agrees, wherever it is told. Sourced, by tests that ran hook_probe: FOLDER
# has what it printed (out: the logs too), and its HOST:PID.values. $work and $cuts are the test's.

expect() { # WHAT HERE THERE
    if [[ $2 == "$3" ]]; then
        passed=$((passed + 1))
        echo "ok   $1: $2"
    else
        failed=$((failed + 1))
        echo "FAIL $1: '$2', and '$3'"
        sed 's/^/     | /' "$folder"/out
    fi
}

of() { sed -n "s/^$1=//p" "$2"; } # NAME FILE: what hook_probe printed

# agree FOLDER: each process, and the sum
agree() {
    local file rank count sum=0 saved said="$1/out" own
    for file in "$1"/*.values; do
        grep -E "$(basename "$file" .values) *:" "$said" >"$work/log" || true
        rank=$(of rank "$file") count=$(of hook_ha_failovers "$file")
        expect "rank $rank: bytes that were wrong" "$(of wrong "$file")" 0
        expect "rank $rank: MPI_T, and lines of an endpoint" "$count" \
            "$(grep -cE 'failover: endpoint [0-9]+ to' "$work/log")"
        expect "rank $rank: MPI_T, and endpoints in lines of a rail" "$count" \
            "$(sed -nE 's/.*failover: ([0-9]+) endpoints? to.*/\1/p' "$work/log" |
                awk '{ n += $1 } END { print n + 0 }')"
        own=$(sed -nE "s/.*report: rank $rank at [^ ]+: failovers ([0-9]+),.*/\1/p" "$said")
        expect "rank $rank: MPI_T, and its report" "$count" "$own"
        for saved in replayed retired ep_errors; do
            eval "$saved=\$((\${$saved:-0} + $(of hook_ha_$saved "$file")))"
        done
        sum=$((sum + count))
    done
    expect 'the job: MPI_T, and the report' \
        "failovers $sum in 2 of 2 processes, sent again $replayed, confirmed $retired" \
        "$(sed -nE 's/.*report: (failovers .* processes) \(.*, operations (sent.*)/\1, \2/p' "$said")"
    expect 'endpoints that ended with an error' "$ep_errors" 0
    expect 'failovers of both, at least' "$((sum >= 2 * cuts))" 1
}

# longest FOLDER: no move that the log has was longer than the report says
longest() {
    awk '
        /report: longest pause/ { sub(/.*at most /, ""); limit = $1 }
        /failover: endpoint/ { sub(/.*silent /, ""); n++; longest = $1 + $5 > longest ? $1 + $5 : longest }
        END { print (n > 0 && longest <= limit + 1) ? "right" : n " lines, limit " limit ", longest " longest }' "$1/out"
}
