/* SPDX-License-Identifier: BSD-3-Clause */
#include "contract.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <uct/api/version.h>

#define ROWS_MAX 96

enum row_kind { MATTER, OPERATION, ATOMIC };

struct row {
    char          name[96];
    size_t        limit;
    enum row_kind kind;
    char          cell[COLUMNS][2][40]; /* matters use the first column; calm, cut */
};

static struct {
    struct row rows[ROWS_MAX];
    unsigned   num, checks, failures, excused;
    char      *cell; /* of the present check */
    char       what[160];
} report;

static struct row *row_of(const char *name, enum row_kind kind)
{
    struct row *row;

    for (unsigned i = 0; i < report.num; i++) {
        if (strcmp(report.rows[i].name, name) == 0) {
            return &report.rows[i];
        }
    }
    row = &report.rows[report.num < ROWS_MAX - 1 ? report.num++ : report.num];
    snprintf(row->name, sizeof(row->name), "%s", name);
    row->kind = kind;
    return row;
}

static void begin(struct row *row, enum column column, int cut)
{
    report.checks++;
    report.cell = row->cell[column][cut];
    snprintf(report.cell, sizeof(row->cell[0][0]), "ok");
    if (settings.verbose) {
        fprintf(stderr, "%s\n", report.what);
    }
}

void report_operation(const char *operation, size_t limit, enum column column, size_t size, int cut)
{
    struct row *row = row_of(operation, strncmp(operation, "atomic", 6) == 0 ? ATOMIC : OPERATION);

    row->limit = limit;
    snprintf(report.what, sizeof(report.what), "%s, size %zu of at most %zu, %s", operation, size, limit,
             cut ? "a rail is cut" : "calm");
    begin(row, column, cut);
}

void report_matter(const char *matter, int cut)
{
    snprintf(report.what, sizeof(report.what), "%s, %s", matter, cut ? "a rail is cut" : "calm");
    begin(row_of(matter, MATTER), COL_ZERO, cut);
}

void report_result(const char *result)
{
    if (strcmp(report.cell, "FAILED") != 0) {
        snprintf(report.cell, sizeof(report.rows[0].cell[0][0]), "%s", result);
    }
}

static int excused(void)
{
    for (unsigned i = 0; i < settings.excuses; i++) {
        if (strstr(report.what, settings.excuse[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

int expect(int good, const char *format, ...)
{
    va_list args;

    if (!good && excused()) {
        report.excused++;
        report_result("FAILED");
    } else if (!good) {
        report.failures++;
        fprintf(stderr, "FAILED: %s: ", report.what);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        if (report.cell != NULL) {
            report_result("FAILED");
        }
    }
    return good;
}

int expect_status(ucs_status_t got, ucs_status_t wanted, const char *what)
{
    return expect(got == wanted, "%s: %s, and not: %s", what, ucs_status_string(got), ucs_status_string(wanted));
}

/* ---- the table ---------------------------------------------------------------------------- */

static void print_cell(const struct row *row, enum column column)
{
    const char *calm = row->cell[column][0], *cut = row->cell[column][1];

    if (*calm == '\0' && *cut == '\0') {
        printf(" – |");
    } else if (*cut == '\0') {
        printf(" %s |", calm);
    } else {
        printf(" %s / %s |", calm, cut);
    }
}

static void print_row(const struct row *row)
{
    printf("| %s |", row->name);
    if (row->kind == MATTER) {
        printf(" %s |", *row->cell[0][0] ? row->cell[0][0] : "–");
        printf(" %s |", *row->cell[0][1] ? row->cell[0][1] : "–");
    } else if (row->kind == OPERATION) {
        printf(" %zu |", row->limit);
    }
    for (int column = 0; row->kind != MATTER && column < (row->kind == ATOMIC ? COL_ABOVE : COLUMNS); column++) {
        print_cell(row, (enum column)column);
    }
    putchar('\n');
}

static void print_rows(enum row_kind kind)
{
    for (unsigned i = 0; i < report.num; i++) {
        if (report.rows[i].kind == kind) {
            print_row(&report.rows[i]);
        }
    }
}

void report_table(void)
{
    printf("Seen with UCX %s:\n\n", UCT_VERNO_STRING);
    printf(
        "| operation | limit | least | least + 1 | limit − 1 | limit | limit + 1 |\n|---|---|---|---|---|---|---|\n");
    print_rows(OPERATION);
    printf("\n| atomic, operand | 0 | 1 | largest − 1 | largest |\n|---|---|---|---|---|\n");
    print_rows(ATOMIC);
    printf("\n| matter | calm | cut |\n|---|---|---|\n");
    print_rows(MATTER);
}

void report_summary(void)
{
    fprintf(stderr, "%s: %u checks, %u failures, %u excused\n", settings.transport, report.checks, report.failures,
            report.excused);
}

unsigned report_failures(void)
{
    return report.failures;
}
