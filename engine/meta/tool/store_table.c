/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "store_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

/* A JSON object is the table: its hashing is seeded, so chosen keys cannot slow it down. */
struct store_table {
    pthread_mutex_t lock;
    json_t         *texts;
    bool            changed;
    size_t          max_keys;
    char           *file, *new_file; /* NULL = none */
};

static json_t *load(const char *file, char *error, size_t error_size)
{
    json_error_t problem;
    json_t      *texts;
    const char  *key;
    json_t      *text;

    if (file == NULL || (access(file, F_OK) != 0 && errno == ENOENT)) {
        return json_object();
    }
    texts = json_load_file(file, 0, &problem);
    if (texts == NULL || !json_is_object(texts)) {
        snprintf(error, error_size, "%s: line %d: %s", file, problem.line,
                 texts == NULL ? problem.text : "not an object");
        json_decref(texts);
        return NULL;
    }
    json_object_foreach(texts, key, text)
    {
        if (!json_is_string(text)) {
            snprintf(error, error_size, "%s: the value of %.128s is not a string", file, key);
            json_decref(texts);
            return NULL;
        }
    }
    return texts;
}

static void destroy(struct store_table *table)
{
    json_decref(table->texts);
    pthread_mutex_destroy(&table->lock);
    free(table->file);
    free(table->new_file);
    free(table);
}

struct store_table *store_table_open(const char *file, size_t max_keys, char *error, size_t error_size)
{
    struct store_table *table = calloc(1, sizeof(*table));

    snprintf(error, error_size, "no memory");
    if (table == NULL) {
        return NULL;
    }
    if (file != NULL && ((table->file = strdup(file)) == NULL || asprintf(&table->new_file, "%s.new", file) < 0)) {
        free(table->file);
        free(table);
        return NULL;
    }
    table->max_keys = max_keys;
    table->texts    = load(file, error, error_size);
    table->changed  = true; /* so that a file that cannot be written is known now, not after the first change */
    pthread_mutex_init(&table->lock, NULL);
    if (table->texts == NULL || !store_table_save(table, error, error_size)) {
        destroy(table);
        return NULL;
    }
    return table;
}

void store_table_close(struct store_table *table)
{
    store_table_save(table, NULL, 0);
    destroy(table);
}

enum store_result store_table_put(struct store_table *table, const char *key, const char *text, size_t length)
{
    json_t           *value  = json_stringn(text, length);
    enum store_result result = STORE_DONE;

    if (value == NULL || strlen(json_string_value(value)) != length) {
        json_decref(value);
        return STORE_NOT_TEXT;
    }
    pthread_mutex_lock(&table->lock);
    if (json_object_get(table->texts, key) == NULL && json_object_size(table->texts) >= table->max_keys) {
        result = STORE_FULL;
        json_decref(value);
    } else if (json_object_set_new(table->texts, key, value) != 0) {
        result = STORE_NOT_TEXT;
    } else {
        table->changed = true;
    }
    pthread_mutex_unlock(&table->lock);
    return result;
}

char *store_table_get(struct store_table *table, const char *key)
{
    const char *text;
    char       *copy;

    pthread_mutex_lock(&table->lock);
    text = json_string_value(json_object_get(table->texts, key));
    copy = text != NULL ? strdup(text) : NULL;
    pthread_mutex_unlock(&table->lock);
    return copy;
}

enum store_result store_table_remove(struct store_table *table, const char *key)
{
    bool known;

    pthread_mutex_lock(&table->lock);
    known          = json_object_del(table->texts, key) == 0;
    table->changed = table->changed || known;
    pthread_mutex_unlock(&table->lock);
    return known ? STORE_DONE : STORE_UNKNOWN_KEY;
}

size_t store_table_size(struct store_table *table)
{
    size_t size;

    pthread_mutex_lock(&table->lock);
    size = json_object_size(table->texts);
    pthread_mutex_unlock(&table->lock);
    return size;
}

bool store_table_save(struct store_table *table, char *error, size_t error_size)
{
    bool good = true;

    if (table->file == NULL) {
        return true;
    }
    pthread_mutex_lock(&table->lock);
    if (table->changed) {
        errno = 0;
        good  = json_dump_file(table->texts, table->new_file, JSON_INDENT(1)) == 0 &&
               rename(table->new_file, table->file) == 0;
        table->changed = !good;
        if (!good) {
            snprintf(error, error_size, "%s: cannot be written: %s", table->file, strerror(errno));
        }
    }
    pthread_mutex_unlock(&table->lock);
    return good;
}
