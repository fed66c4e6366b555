/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_engine.h"

#include <string.h>

#include "base/hte_error.h"
#include "base/hte_fork.h"

bool hte_engine_is_foreign(const struct hte_engine *engine)
{
    return engine->generation != hte_fork_generation();
}

int hte_enter(struct hte_engine *engine)
{
    if (engine == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "engine is NULL");
    }
    if (hte_engine_is_foreign(engine)) {
        return hte_fail(HTE_ERR_CANCELED, "this engine belongs to the process that made it; this one is its child "
                                          "by fork(): make one in the child, best after exec()");
    }
    atomic_fetch_add(&engine->calls, 1);
    if (atomic_load(&engine->is_closing) && !hte_batch_in_callback()) {
        hte_leave(engine);
        return hte_fail(HTE_ERR_CANCELED, "the engine is being destroyed");
    }
    return HTE_OK;
}

void hte_leave(struct hte_engine *engine)
{
    atomic_fetch_sub(&engine->calls, 1);
}

static int copy_name(struct hte_engine *engine, char *name, size_t size)
{
    const char *own = hte_meta_name(engine->meta);

    if (name == NULL || strlen(own) >= size) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "name is NULL, or there is room for %zu bytes only", size);
    }
    strcpy(name, own);
    return HTE_OK;
}

int hte_local_name(struct hte_engine *engine, char *name, size_t size)
{
    int error = hte_enter(engine);

    if (error == HTE_OK) {
        error = copy_name(engine, name, size);
        hte_leave(engine);
    }
    return error;
}
