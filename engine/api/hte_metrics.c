/* SPDX-License-Identifier: BSD-3-Clause */
/* hte_metrics(), hte_segment_metrics(), option metrics_file. */
#include "hte_metrics.h"

#include <stdlib.h>

#include "base/hte_error.h"
#include "hte_metrics_text.h"

static int make_own(struct hte_engine *engine, char **text)
{
    return text == NULL ? hte_fail(HTE_ERR_INVALID_ARGUMENT, "text is NULL") : hte_metrics_text(engine, SIZE_MAX, text);
}

int hte_metrics(struct hte_engine *engine, char **text)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = make_own(engine, text);
        hte_leave(engine);
    }
    return error;
}

static int ask(struct hte_engine *engine, hte_segment_t id, char **text)
{
    struct hte_segment *segment;
    struct hte_why      why = {""};
    int                 error;

    if (id == HTE_SEGMENT_LOCAL || text == NULL) {
        return make_own(engine, text);
    }
    segment = hte_segments_get(&engine->segments, id);
    if (segment == NULL) {
        return hte_fail(HTE_ERR_BAD_HANDLE, "segment %d is not open", id);
    }
    error = hte_meta_call(engine->meta, segment->name, HTE_CALL_METRICS, NULL, text, &why);
    hte_segment_put(segment);
    return hte_fail_why(error, &why);
}

int hte_segment_metrics(struct hte_engine *engine, hte_segment_t segment, char **text)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = ask(engine, segment, text);
        hte_leave(engine);
    }
    return error;
}

static int make_for_file(void *arg, char **text)
{
    return hte_metrics_text(arg, SIZE_MAX, text);
}

int hte_metrics_start(struct hte_engine *engine)
{
    return hte_metrics_file_start(&engine->metrics_file, engine->settings.metrics_file,
                                  engine->settings.metrics_interval_ms, make_for_file, engine);
}
