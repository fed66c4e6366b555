/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A segment descriptor as a stranger, or a store, hands it over. What is
 * accepted keeps every bound, and writing it down and reading it again loses nothing.
 */

#include "fuzz.h"

#include <string.h>

#include "hte_descriptor.h"

const char     fuzz_name[] = "hte_descriptor";
const unsigned fuzz_runs   = 20000;

static void check_buffer(const struct hte_desc_buffer *buffer)
{
    fuzz_expect(buffer->length != 0 && buffer->addr + buffer->length >= buffer->addr, "a buffer that is no range");
    fuzz_expect(buffer->length <= HTE_LENGTH_MAX, "a buffer that is too long");
    fuzz_expect(strlen(buffer->location) <= HTE_LOCATION_MAX, "a location that is too long");
    fuzz_expect(buffer->num_keys <= HTE_KEYS_MAX, "too many keys");
    fuzz_expect((unsigned)buffer->permission <= HTE_PERM_LOCAL, "a permission that is none");
}

static void check_bounds(const struct hte_descriptor *descriptor)
{
    const struct hte_desc_priority *row;

    fuzz_expect(descriptor->name[0] != '\0' && strlen(descriptor->name) <= HTE_NAME_MAX, "a name that is none");
    for (uint32_t i = 0; i < descriptor->num_workers; i++) {
        fuzz_expect(descriptor->workers[i].context < HTE_KEYS_MAX, "a worker of no context");
        fuzz_expect(descriptor->workers[i].address.length != 0, "a worker without address");
    }
    for (uint32_t i = 0; i < descriptor->num_priorities; i++) {
        row = &descriptor->priorities[i];
        for (uint32_t j = 0; j < row->num_preferred; j++) {
            fuzz_expect(row->preferred[j] < descriptor->num_devices, "a device that is none");
        }
        for (uint32_t j = 0; j < row->num_available; j++) {
            fuzz_expect(row->available[j] < descriptor->num_devices, "a device that is none");
        }
    }
    for (uint32_t i = 0; i < descriptor->num_buffers; i++) {
        check_buffer(&descriptor->buffers[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hte_descriptor *first = NULL, *second = NULL;
    struct hte_why         why  = {.text = ""};
    char                  *text = NULL, *again = NULL;
    int                    ret = hte_descriptor_from_json((const char *)data, size, &first, &why);

    if (ret != 0) {
        fuzz_expect(ret == HTE_ERR_MALFORMED_JSON && why.text[0] != '\0', "refused without a reason");
        return 0;
    }
    check_bounds(first);
    if (hte_descriptor_to_json(first, &text, &why) == 0) {
        fuzz_expect(hte_descriptor_from_json(text, strlen(text), &second, &why) == 0, "cannot be read again");
        fuzz_expect(hte_descriptor_to_json(second, &again, &why) == 0, "cannot be written again");
        fuzz_expect(strcmp(text, again) == 0, "is another one when written again");
    } else {
        fuzz_expect(0, "what was read cannot be written");
    }
    free(text);
    free(again);
    hte_descriptor_destroy(first);
    hte_descriptor_destroy(second);
    return 0;
}
