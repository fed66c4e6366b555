/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_base.h"

static int by_value(const void *a, const void *b)
{
    float left = *(const float *)a, right = *(const float *)b;

    return (left > right) - (left < right);
}

static float percentile(const float *sorted, size_t count, double share)
{
    size_t index = (size_t)(share * (double)count);

    return sorted[index < count ? index : count - 1];
}

void result_set_latency(struct result *result, float *samples, size_t count)
{
    double sum = 0;
    size_t i;

    if (count == 0) {
        return;
    }
    qsort(samples, count, sizeof(samples[0]), by_value);
    for (i = 0; i < count; ++i) {
        sum += (double)samples[i];
    }
    result->avg_us  = sum / (double)count;
    result->p50_us  = (double)percentile(samples, count, 0.5);
    result->p99_us  = (double)percentile(samples, count, 0.99);
    result->p999_us = (double)percentile(samples, count, 0.999);
    result->max_us  = (double)samples[count - 1];
}

static double in_unit(const char *unit, double bytes_per_second)
{
    double scale = unit[0] == 'G' ? 1e9 : 1e6;

    if (strlen(unit) == 3) {
        scale = unit[0] == 'G' ? 1073741824.0 : 1048576.0;
    }
    return bytes_per_second / scale * (strchr(unit, 'b') != NULL ? 8 : 1);
}

static double rate(const struct result *result)
{
    return result->seconds > 0 ? (double)result->bytes / result->seconds : 0;
}

static double cpu_us(const struct result *result)
{
    return result->slices > 0 ? result->cpu_seconds * 1e6 / (double)result->slices : 0;
}

static const char *name_of(enum operation operation)
{
    static const char *const names[] = {
        [OPERATION_READ] = "read", [OPERATION_WRITE] = "write", [OPERATION_MIX] = "mix"};

    return names[operation];
}

void report_header(const struct options *o)
{
    if (o->csv) {
        printf("operation,threads,block,batch,seconds,bytes,%s_per_s,avg_us,p50_us,p99_us,p999_us,max_us,"
               "cpu_us_per_slice,failed,verified,plain_%s_per_s,plain_cpu_us_per_slice,ratio\n",
               o->unit, o->unit);
    } else {
        printf("%-5s %7s %10s %6s %9s/s %9s %9s %9s %9s %9s", "op", "threads", "block", "batch", o->unit, "avg us",
               "p50 us", "p99 us", "p99.9 us", "cpu/slice");
        printf("%s\n", o->baseline ? "     plain  cpu/slice  ratio" : "");
    }
    flush_output(); /* a full disk is told before anything is measured */
}

static void report_csv(const struct options *o, const struct point *point, const struct result *r,
                       const struct result *plain)
{
    printf("%s,%llu,%llu,%llu,%.3f,%llu,%.*f,%.2f,%.2f,%.2f,%.2f,%.2f,%.3f,%llu,%d,", name_of(o->operation),
           (unsigned long long)point->threads, (unsigned long long)point->block, (unsigned long long)point->batch,
           r->seconds, (unsigned long long)r->bytes, (int)o->precision, in_unit(o->unit, rate(r)), r->avg_us, r->p50_us,
           r->p99_us, r->p999_us, r->max_us, cpu_us(r), (unsigned long long)r->failed, r->is_verified);
    if (plain != NULL) {
        printf("%.*f,%.3f,%.3f\n", (int)o->precision, in_unit(o->unit, rate(plain)), cpu_us(plain), r->ratio);
    } else {
        printf(",,\n");
    }
}

void report_point(const struct options *o, const struct point *point, const struct result *r,
                  const struct result *plain)
{
    if (o->csv) {
        report_csv(o, point, r, plain);
        flush_output();
        return;
    }
    printf("%-5s %7llu %10llu %6llu %*.*f %9.1f %9.1f %9.1f %9.1f %6.2f us", name_of(o->operation),
           (unsigned long long)point->threads, (unsigned long long)point->block, (unsigned long long)point->batch,
           9 + 2, (int)o->precision, in_unit(o->unit, rate(r)), r->avg_us, r->p50_us, r->p99_us, r->p999_us, cpu_us(r));
    if (plain != NULL) {
        printf(" %9.*f %7.2f us %6.3f", (int)o->precision, in_unit(o->unit, rate(plain)), cpu_us(plain), r->ratio);
    }
    printf("%s%s\n", r->failed > 0 ? "  REQUESTS FAILED" : "", r->is_verified ? "" : "  NOT VERIFIED");
    flush_output();
}

void report_json(const struct options *o, const struct point *point, const struct result *r, const struct result *plain,
                 bool is_verified)
{
    printf("{\"operation\":\"%s\",\"threads\":%llu,\"block\":%llu,\"batch\":%llu,\"seconds\":%.3f,\"bytes\":%llu,"
           "\"throughput_gbps\":%.3f,\"avg_us\":%.2f,\"p50_us\":%.2f,\"p99_us\":%.2f,\"p999_us\":%.2f,\"max_us\":%.2f,"
           "\"cpu_us_per_slice\":%.3f,\"failed\":%llu,",
           name_of(o->operation), (unsigned long long)point->threads, (unsigned long long)point->block,
           (unsigned long long)point->batch, r->seconds, (unsigned long long)r->bytes, rate(r) * 8e-9, r->avg_us,
           r->p50_us, r->p99_us, r->p999_us, r->max_us, cpu_us(r), (unsigned long long)r->failed);
    if (plain != NULL) {
        printf("\"plain_gbps\":%.3f,\"plain_cpu_us_per_slice\":%.3f,\"ratio\":%.3f,\"ratio_min\":%.3f,"
               "\"ratio_max\":%.3f,",
               rate(plain) * 8e-9, cpu_us(plain), r->ratio, r->ratio_min, r->ratio_max);
    }
    printf("\"verified\":%s}\n", is_verified ? "true" : "false");
    flush_output();
}
