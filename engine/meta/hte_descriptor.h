/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_DESCRIPTOR_H_
#define HTE_DESCRIPTOR_H_

/*
 * What a process tells others about its segment, and the JSON form of it.
 * Pure: no clock, no network. Every field is bounded, both when writing and
 * when reading; whatever arrives is checked before anything is believed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hte_why.h"

#define HTE_DESCRIPTOR_VERSION 1 /* of the JSON form; another one is refused */

/* Texts in characters, names are of up to HTE_NAME_MAX; lists in entries. */
#define HTE_LOCATION_MAX  63
#define HTE_GID_MAX       63
#define HTE_IDENTITY_MAX  127
#define HTE_WORKERS_MAX   256
#define HTE_DEVICES_MAX   256
#define HTE_PRIORITY_MAX  256 /* locations in the matrix */
#define HTE_BUFFERS_MAX   65536
#define HTE_KEYS_MAX      16    /* per buffer */
#define HTE_ADDRESS_MAX   65536 /* bytes of one worker address */
#define HTE_KEY_BYTES_MAX 16384 /* bytes of one packed rkey */
#define HTE_LENGTH_MAX    (1ull << 62)

struct hte_blob { /* opaque bytes, base64 in JSON */
    void  *bytes;
    size_t length;
};

struct hte_desc_worker {
    uint32_t        context; /* which of a buffer's keys belongs to it: an index below HTE_KEYS_MAX */
    struct hte_blob address; /* of the UCP worker */
};

struct hte_desc_device {
    char    *name;
    uint32_t lid; /* 0 when there is none */
    char    *gid; /* text; "" when there is none */
};

struct hte_desc_priority {
    char     *location;
    uint32_t  num_preferred, num_available;
    uint32_t *preferred, *available; /* indices of devices */
};

struct hte_desc_buffer {
    char               *location;   /* "cpu:0", "cuda:1", "*" */
    uint64_t            addr;       /* in the address space of its owner; written as "0x..." */
    uint64_t            length;     /* bytes, never 0; addr + length does not wrap */
    enum hte_permission permission; /* "rw", "ro", "local" in JSON */
    bool                is_gpu;     /* by its location; not in JSON */
    uint64_t            id;         /* of this registration: another one of the same range has another; 0: none */
    uint32_t            num_keys;
    struct hte_blob    *keys; /* packed rkeys, one per context */
    /* For processes of the same host, see struct hte_desc_host: */
    uint64_t slot;                          /* on the board; 0: none */
    uint64_t file, file_inode, file_offset; /* descriptor of the file that it lies in; inode 0: in none */
};

/* For processes of the same host (local/hte_board.h). */
struct hte_desc_host {
    char    *identity; /* NULL: it has no board */
    uint64_t pid, board, guard, secret;
};

struct hte_descriptor {
    char                     *name;
    char                     *protocol;  /* "ucx" */
    uint64_t                  version;   /* grows with every publication */
    uint64_t                  timestamp; /* microseconds since 1970, by the owner's clock */
    uint64_t                  letters;   /* version of the engine's messages that it understands; 0: none */
    struct hte_desc_host      host;
    uint32_t                  num_workers, num_devices, num_priorities, num_buffers;
    struct hte_desc_worker   *workers;
    struct hte_desc_device   *devices;
    struct hte_desc_priority *priorities;
    struct hte_desc_buffer   *buffers;
};

/* On success *text is the caller's, to be given to free(). HTE_ERR_INVALID_ARGUMENT names a field that breaks a
 * bound. */
int hte_descriptor_to_json(const struct hte_descriptor *descriptor, char **text, struct hte_why *why);

/* `text` needs no zero byte. On success *descriptor and all that it points to is the caller's, until
 * hte_descriptor_destroy(). HTE_ERR_MALFORMED_JSON names the field ("buffers[3].length: ..."). Fields that are not
 * known are passed over. */
int  hte_descriptor_from_json(const char *text, size_t length, struct hte_descriptor **descriptor, struct hte_why *why);
void hte_descriptor_destroy(struct hte_descriptor *descriptor);

#endif
