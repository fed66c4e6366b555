/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Plain driver: every file of the corpus, then changes of them. Change number
 * n depends on n, the corpus and nothing else, so a failure can be run again.
 */

#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX 8192

struct input {
    uint8_t *bytes;
    size_t   size;
    char    *name;
};

static struct input *inputs;
static unsigned      num_inputs;

static char        now[256]; /* what runs, for the last words */
static const char *program = "";

/* ---- last words ------------------------------------------------------------- */

static void last_words(void)
{
    ssize_t n = write(STDERR_FILENO, now, strlen(now));

    (void)n;
}

static void on_signal(int number)
{
    last_words();
    signal(number, SIG_DFL);
    raise(number);
}

/* Sanitizers end the process their own way; there only if linked with one. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void hear_of_the_end(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(last_words);
    }
    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        signal(numbers[i], on_signal);
    }
}

/* ---- the corpus -------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct input *)a)->name, ((const struct input *)b)->name);
}

static void read_input(const char *path)
{
    FILE         *file = fopen(path, "rb");
    struct input *input;

    inputs       = realloc(inputs, (num_inputs + 1) * sizeof(*inputs));
    input        = &inputs[num_inputs++];
    input->bytes = malloc(INPUT_MAX);
    input->name  = strdup(path);
    if (file == NULL) {
        fprintf(stderr, "%s: cannot read '%s': %s\n", program, path, strerror(errno));
        exit(2);
    }
    input->size = fread(input->bytes, 1, INPUT_MAX, file);
    fclose(file);
}

static void read_folder(const char *folder)
{
    char           path[PATH_MAX];
    DIR           *dir = opendir(folder);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        read_input(path);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    if (num_inputs == 0) {
        fprintf(stderr, "%s: no corpus in '%s': give its folder as argument\n", program, folder);
        exit(2);
    }
    qsort(inputs, num_inputs, sizeof(*inputs), by_name);
}

/* ---- changes ------------------------------------------------------------------- */

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ (z >> 31)) >> 33) % below;
}

static const uint32_t edges[] = {0,        1,         2,          3,          4,         5,        0x7f,
                                 0x80,     0xff,      0x100,      0x7fff,     0xffff,    0x7fffff, 0x800000,
                                 0xffffff, 0x1000000, 0x7fffffff, 0x80000000, 0xffffffff};

/* A number at a border, or one next to what is there; 1, 2 or 4 bytes, big endian. */
static void change_number(uint8_t *bytes, size_t size)
{
    unsigned width = 1u << draw(3);
    uint32_t value = 0, at;

    if (size < width) {
        return;
    }
    at = draw((uint32_t)(size - width + 1));
    for (unsigned i = 0; i < width; i++) {
        value = value << 8 | bytes[at + i];
    }
    if (draw(2)) {
        value += draw(2) ? 1u : UINT32_MAX;
    } else {
        value = edges[draw(sizeof(edges) / sizeof(edges[0]))];
    }
    for (unsigned i = width; i-- > 0; value >>= 8) {
        bytes[at + i] = (uint8_t)value;
    }
}

static size_t change_length(uint8_t *bytes, size_t size)
{
    uint32_t at = draw((uint32_t)size + 1), n = 1 + draw(draw(2) ? 4 : 128);

    if (draw(2)) { /* some are cut out */
        n = n > size - at ? (uint32_t)(size - at) : n;
        memmove(bytes + at, bytes + at + n, size - at - n);
        return size - n;
    }
    if (size + n > INPUT_MAX) {
        return size;
    }
    memmove(bytes + at + n, bytes + at, size - at);
    for (uint32_t i = 0; i < n; i++) {
        bytes[at + i] = (uint8_t)draw(256);
    }
    return size + n;
}

/* The end of another input behind the beginning of this one. */
static size_t splice(uint8_t *bytes, size_t size)
{
    const struct input *other = &inputs[draw(num_inputs)];
    uint32_t            keep = draw((uint32_t)size + 1), from = draw((uint32_t)other->size + 1);
    size_t              n = other->size - from;

    n = n > INPUT_MAX - keep ? INPUT_MAX - keep : n;
    memcpy(bytes + keep, other->bytes + from, n);
    return keep + n;
}

static size_t change(uint8_t *bytes, size_t size)
{
    switch (draw(8)) {
    case 0:
        return change_length(bytes, size);
    case 1:
        return splice(bytes, size);
    case 2:
        if (size > 0) {
            bytes[draw((uint32_t)size)] ^= (uint8_t)(1u << draw(8));
        }
        return size;
    default:
        change_number(bytes, size);
        return size;
    }
}

static void run_changed(uint64_t seed)
{
    static uint8_t      bytes[INPUT_MAX];
    const struct input *input;
    size_t              size;
    uint8_t            *exact;

    state = seed;
    input = &inputs[draw(num_inputs)];
    size  = input->size;
    memcpy(bytes, input->bytes, size);
    for (uint32_t n = 1 + draw(4); n > 0; n--) {
        size = change(bytes, size);
    }
    snprintf(now, sizeof(now), "%s: again: %s --seed %" PRIu64 " --runs 1\n", fuzz_name, program, seed);
    exact = malloc(size + !size); /* so that a sanitizer sees its end */
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* ---- command line ----------------------------------------------------------------- */

static uint64_t number(const char *name, const char *text)
{
    char              *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text != NULL ? text : "", &end, 0);
    if (text == NULL || *text == '\0' || *text == '-' || *end != '\0' || errno != 0) {
        fprintf(stderr, "%s: %s '%s' is not a number. Try --help.\n", program, name, text != NULL ? text : "");
        exit(2);
    }
    return value;
}

static void usage(void)
{
    printf("usage: %s [--seed S] [--runs N] [FOLDER|FILE...]\n\n"
           "Runs every file of the corpus (default: test/fuzz/corpus/%s of the sources), then N\n"
           "changes of them (default %u) with the seeds S, S+1, ... (default 1).\n"
           "With FILEs: only these, unchanged.\n",
           program, fuzz_name, fuzz_runs);
    exit(0);
}

static int is_folder(const char *path)
{
    DIR *dir = opendir(path);

    if (dir != NULL) {
        closedir(dir);
    }
    return dir != NULL;
}

static void read_default(void)
{
    char        folder[PATH_MAX];
    const char *sources = getenv("srcdir"); /* set by `make check` */

    snprintf(folder, sizeof(folder), "%s/test/fuzz/corpus/%s", sources != NULL ? sources : FUZZ_SOURCES, fuzz_name);
    read_folder(folder);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, runs = fuzz_runs;
    int      files = 0;

    program = argv[0];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage();
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = number("--seed", argv[++i]);
        } else if (strcmp(argv[i], "--runs") == 0) {
            runs = number("--runs", argv[++i]);
        } else if (is_folder(argv[i])) {
            read_folder(argv[i]);
        } else {
            read_input(argv[i]);
            files = 1;
        }
    }
    if (num_inputs == 0) {
        read_default();
    }
    hear_of_the_end();
    for (unsigned i = 0; i < num_inputs; i++) {
        snprintf(now, sizeof(now), "%s: again: %s %s\n", fuzz_name, program, inputs[i].name);
        LLVMFuzzerTestOneInput(inputs[i].bytes, inputs[i].size);
    }
    for (uint64_t i = 0; i < runs && !files; i++) {
        run_changed(seed + i);
    }
    printf("%s: %u files, %" PRIu64 " changed inputs, nothing wrong\n", fuzz_name, num_inputs, files ? 0 : runs);
    return 0;
}
