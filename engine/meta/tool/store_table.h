/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_TABLE_H_
#define STORE_TABLE_H_

/* The keys and texts of hte_http_store, in memory, with a file to come back from. Any thread. */

#include <stdbool.h>
#include <stddef.h>

struct store_table;

enum store_result { STORE_DONE, STORE_UNKNOWN_KEY, STORE_FULL, STORE_NOT_TEXT };

/* `file` NULL = none. NULL: `error` says why the file cannot be read. */
struct store_table *store_table_open(const char *file, size_t max_keys, char *error, size_t error_size);
/* Saves first. */
void store_table_close(struct store_table *table);

enum store_result store_table_put(struct store_table *table, const char *key, const char *text, size_t length);
/* A copy, to be given to free(); NULL = no such key. */
char             *store_table_get(struct store_table *table, const char *key);
enum store_result store_table_remove(struct store_table *table, const char *key);
size_t            store_table_size(struct store_table *table);

/* Writes the file anew when something changed since the last time; the old one stays whole until then. */
bool store_table_save(struct store_table *table, char *error, size_t error_size);

#endif
