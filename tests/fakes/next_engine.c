// Stands before ggml's own reader of GGUF files, and translates headers of a newer model to what the engine knows: the
// name of the architecture, in its value and in all keys, and the number of the tensor type.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gguf_init_params {
    bool no_alloc;
    void ** ctx;
};

void * gguf_init_from_buffer(const void * data, size_t size, struct gguf_init_params params);

static const size_t widths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static uint64_t number(const unsigned char ** at, int width) {
    uint64_t value = 0;
    memcpy(&value, *at, width);
    *at += width;
    return value;
}

static void text(const unsigned char ** at) {
    const uint64_t length = number(at, 8);
    if (length >= strlen(NEW_NAME) && memcmp(*at, NEW_NAME, strlen(NEW_NAME)) == 0) {
        memcpy((unsigned char *) *at, KNOWN_NAME, strlen(KNOWN_NAME));
    }
    *at += length;
}

static void value(const unsigned char ** at, uint64_t type) {
    if (type == 8) {
        text(at);
    } else if (type == 9) {
        const uint64_t inner = number(at, 4), count = number(at, 8);
        for (uint64_t i = 0; i < count; i++) {
            value(at, inner);
        }
    } else {
        *at += widths[type];
    }
}

static void translate(const unsigned char * at) {
    at += 8;
    const uint64_t n_tensors = number(&at, 8), n_values = number(&at, 8);
    for (uint64_t i = 0; i < n_values; i++) {
        text(&at);
        value(&at, number(&at, 4));
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        text(&at);
        at += 8 * number(&at, 4);
        if (number(&at, 4) == NEW_TYPE) {
            const uint32_t known = KNOWN_TYPE;
            memcpy((unsigned char *) at - 4, &known, 4);
        }
        at += 8;
    }
}

void * gguf_init_from_file(const char * name, struct gguf_init_params params) {
#ifdef CRASHES
    abort();
#endif
    FILE * file = fopen(name, "rb");
    if (file == NULL) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    const size_t size = ftell(file);
    unsigned char * content = malloc(size);
    rewind(file);
    const bool is_whole = fread(content, 1, size, file) == size && size > 24 && memcmp(content, "GGUF", 4) == 0;
    fclose(file);
    if (is_whole) {
        translate(content);
    }
    void * read = is_whole ? gguf_init_from_buffer(content, size, params) : NULL;
    free(content);
    return read;
}
