/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers between two pages that no one may touch. A buffer ends where its second page begins, so that one byte too
 * many ends the process. The bytes between the first page and the buffer keep FILL, or guarded_intact is false.
 */
#ifndef GUARDED_H
#define GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILL 0xA5

static inline size_t guarded_rounded(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static inline void guarded_fill(void *buffer, size_t size) {
    size_t open = guarded_rounded(size);
    memset((char *)buffer + size - open, FILL, open);
}

/* `size` bytes of FILL. A buffer of no bytes is a pointer that may not be read. */
static inline void *guarded_new(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t open = guarded_rounded(size);
    char *map = mmap(NULL, page + open + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || (open > 0 && mprotect(map + page, open, PROT_READ | PROT_WRITE) != 0)) {
        perror("mapping a buffer with guard pages");
        exit(2);
    }
    void *buffer = map + page + open - size;
    guarded_fill(buffer, size);
    return buffer;
}

static inline bool guarded_intact(const void *buffer, size_t size) {
    const unsigned char *end = (const unsigned char *)buffer + size;
    for (const unsigned char *byte = end - guarded_rounded(size); byte < (const unsigned char *)buffer; byte++) {
        if (*byte != FILL) {
            return false;
        }
    }
    return true;
}

static inline void guarded_free(void *buffer, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t open = guarded_rounded(size);
    munmap((char *)buffer + size - open - page, page + open + page);
}

/* A copy of a text whose NUL is the last byte before the guard page. */
static inline char *guarded_text(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(guarded_new(size), text, size);
}

#endif
