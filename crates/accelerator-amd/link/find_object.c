/* SPDX-License-Identifier: Apache-2.0
 *
 * gcc's unwinder asks glibc 2.35 for the unwind table of an address. The library runs with glibc 2.34 too, so this function
 * answers in its place, from what every glibc gives. It is no symbol of the library's: rustc exports the ABI alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE

struct search {
    uintptr_t address;
    struct dl_find_object *found;
};

static int look_at(struct dl_phdr_info *object, size_t size, void *data)
{
    struct search *search = data;
    uintptr_t start = 0, end = 0, table = 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t from = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && search->address - from < segment->p_memsz) {
            start = from;
            end = from + segment->p_memsz;
        } else if (segment->p_type == PT_GNU_EH_FRAME) {
            table = from;
        }
    }
    if (start == 0 || table == 0)
        return 0;
    *search->found = (struct dl_find_object){
        .dlfo_map_start = (void *)start,
        .dlfo_map_end = (void *)end,
        .dlfo_eh_frame = (void *)table,
    };
    return 1;
}

int _dl_find_object(void *address, struct dl_find_object *found)
{
    struct search search = {(uintptr_t)address, found};
    return dl_iterate_phdr(look_at, &search) ? 0 : -1;
}

#endif
