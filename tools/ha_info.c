/* SPDX-License-Identifier: BSD-3-Clause */

/* ha_info: rails, pairs, limits and budget as the transport sees them, and what is
 * wrong with them. */

#include "ha_info_check.h"
#include "ha_info_gather.h"
#include "ha_info_import.h"
#include "ha_info_json.h"
#include "ha_info_text.h"
#include "ha_info_verdict.h"

#include "topo/ha_discover_hwloc.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define HEALTHY        INFO_HEALTHY
#define FINDINGS       INFO_FINDINGS
#define FAILED         INFO_FAILED
#define NAGIOS_UNKNOWN 3

static void usage(FILE *out)
{
    fputs("usage: ha_info [--check | --nagios] [--fail-on=LEVEL] [--ignore=ID] [--pairs] [--json] [--matrix] [--import "
          "FILE] [--hwloc FILE] [--help]\n"
          "\n"
          "Shows the rails of this host as ha_rc sees them with the present UCX_HA_RC_* variables.\n"
          "\n"
          "  --check       only what is wrong, with the remedy for each\n"
          "  --fail-on=problem|warning\n"
          "                what makes the exit status 1: warnings and problems (default), or problems only\n"
          "  --ignore=ID[,ID...]\n"
          "                findings that are known and accepted, for example shared-fate\n"
          "  --nagios      as --check, with one line first and Nagios' statuses: 0 OK, 1 WARNING,\n"
          "                2 CRITICAL (a problem), 3 UNKNOWN (it could not look)\n"
          "  --pairs       only which rail backs which, and why\n"
          "  --json        everything, findings included, as one JSON object\n"
          "  --matrix      which rails are near which NUMA node, as JSON for the batch engine\n"
          "                (its option topology_file)\n"
          "  --import FILE does such a matrix fit this host? Shows it, and what is wrong\n"
          "  --hwloc FILE  the pairs of another machine, from `lstopo --of xml FILE` there\n"
          "  --help        this text\n"
          "\n"
          "Exit status: 0 = healthy, 1 = something was found (notes do not count), 2 = error.\n",
          out);
}

/* Nothing on stdout would not tell a host without rails from one that was not looked at. */
static void print_pairs(const struct ha_topo_rail *rails, const struct ha_topo_choice *choices, int num,
                        const char *where)
{
    if (num == 0) {
        fprintf(stderr, "ha_info: %s: no rails, so no pairs\n", where);
    }
    info_print_pairs(rails, choices, num, stdout);
}

static int pairs_of_file(const char *path)
{
    struct ha_topo_rail   rails[HA_RAILS_MAX];
    struct ha_topo_choice choices[HA_RAILS_MAX];
    int                   num = ha_discover_xml(path, rails, HA_RAILS_MAX);

    if (num < 0) {
        fprintf(stderr, "ha_info: %s: %s\n", path,
                num == -ENOSYS   ? "built without hwloc"
                : num == -EINVAL ? "not what `lstopo --of xml` writes"
                                 : strerror(-num));
        return FAILED;
    }
    ha_topo_pair(rails, num, choices);
    print_pairs(rails, choices, num, path);
    return HEALTHY;
}

enum what { WHAT_ALL, WHAT_CHECK = 'c', WHAT_PAIRS = 'p', WHAT_JSON = 'j', WHAT_MATRIX = 'm', WHAT_NAGIOS = 'n' };

static int                 is_unlooked; /* the host could not be looked at */
static struct info_verdict verdict = {.fail_on = INFO_WARNING};

static int import(const char *path)
{
    static struct info info;
    int                wrong;

    if (info_gather(&info) != 0) {
        return FAILED;
    }
    wrong = info_import_matrix(&info, path, stdout);
    return wrong < 0 ? FAILED : wrong > 0 ? FINDINGS : HEALTHY;
}

static int show(enum what what)
{
    static struct info         info;
    static struct info_finding findings[INFO_FINDINGS_MAX];
    int                        num, status;

    if (info_gather(&info) != 0) {
        is_unlooked = 1;
        return FAILED;
    }
    num    = info_verdict_filter(&verdict, findings, info_check(&info, findings, INFO_FINDINGS_MAX));
    status = info_verdict_status(&verdict, findings, num, stdout);
    switch (what) {
    case WHAT_JSON:
        info_print_json(&info, findings, num, stdout);
        break;
    case WHAT_PAIRS:
        print_pairs(info.topo, info.choice, info.num, "this host");
        break;
    case WHAT_MATRIX:
        info_print_matrix(&info, stdout);
        return HEALTHY;
    case WHAT_ALL:
        info_print_rails(&info, stdout);
        printf("\npairs\n");
        info_print_pairs(info.topo, info.choice, info.num, stdout);
        printf("\nfindings\n"); /* fall through */
    case WHAT_CHECK:
    case WHAT_NAGIOS:
        info_print_findings(findings, num, stdout);
        break;
    }
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"check", no_argument, NULL, WHAT_CHECK},
                                            {"pairs", no_argument, NULL, WHAT_PAIRS},
                                            {"json", no_argument, NULL, WHAT_JSON},
                                            {"matrix", no_argument, NULL, WHAT_MATRIX},
                                            {"hwloc", required_argument, NULL, 'x'},
                                            {"import", required_argument, NULL, 'i'},
                                            {"fail-on", required_argument, NULL, 'f'},
                                            {"ignore", required_argument, NULL, 'g'},
                                            {"nagios", no_argument, NULL, WHAT_NAGIOS},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char                *file = NULL, *matrix = NULL;
    enum what                  what = WHAT_ALL;
    int                        option, status;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            if (info_verdict_fail_on(&verdict, optarg, stderr) != 0) {
                return FAILED;
            }
            break;
        case 'g':
            if (info_verdict_ignore(&verdict, optarg, stderr) != 0) {
                return FAILED;
            }
            break;
        case WHAT_CHECK:
        case WHAT_PAIRS:
        case WHAT_JSON:
        case WHAT_MATRIX:
        case WHAT_NAGIOS:
            verdict.nagios = option == WHAT_NAGIOS;
            what           = (enum what)option;
            break;
        case 'x':
            file = optarg;
            break;
        case 'i':
            matrix = optarg;
            break;
        case 'h':
            usage(stdout);
            return HEALTHY;
        default:
            usage(stderr);
            return FAILED;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "ha_info: what is '%s'? See --help\n", argv[optind]);
        return FAILED;
    }
    status = file != NULL ? pairs_of_file(file) : matrix != NULL ? import(matrix) : show(what);
    if (fflush(stdout) != 0) {
        fprintf(stderr, "ha_info: cannot write: %s\n", strerror(errno));
        return FAILED;
    }
    return verdict.nagios && status == FAILED && is_unlooked ? NAGIOS_UNKNOWN : status;
}
