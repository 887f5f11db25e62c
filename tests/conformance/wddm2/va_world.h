/* SPDX-License-Identifier: MIT */
/*
 * The wddm2 fixture with a GPU that has page tables: maps addresses, and reads what its GPU finds
 * there.
 */
#ifndef VMM_TESTS_VA_WORLD_H
#define VMM_TESTS_VA_WORLD_H

#include "wddm2_world.h"

#define LEAF_BYTES ((uint64_t)MIB) /* covered by a leaf table of the scripted GPU */

/*
 * Setups: three levels with tables in the memory segment; two levels; four with tables in system
 * memory; the first with updates at GPU virtual addresses.
 */
void va_memory(struct scripted_miniport *m);
void va_two_levels(struct scripted_miniport *m);
void va_system(struct scripted_miniport *m);
void va_virtual(struct scripted_miniport *m);

struct va_world {
	struct world w;
	D3DDDICB_CREATEPAGINGQUEUE queue;
	struct scripted_process *process;
};
void va_begin(struct va_world *v, void **state, world_setup *setup);
void va_begin_lru(struct va_world *v, void **state, world_setup *setup); /* world_start_lru */
void va_finish(struct va_world *v);

/*
 * Neither CPU-visible-only nor AccessedPhysically: pages that are reached by GPU virtual address.
 */
D3DKMT_HANDLE va_allocate(struct va_world *v, uint64_t bytes, uint32_t set);
D3DDDI_MAPGPUVIRTUALADDRESS va_mapping(const struct va_world *v, D3DKMT_HANDLE allocation,
				       uint64_t pages);
/* Returns the result of the callback; VirtualAddress and PagingFenceValue were all ones before. */
HRESULT va_try_map(struct va_world *v, D3DDDI_MAPGPUVIRTUALADDRESS *args);
/* Asserts success; the tables are correct when it returns. */
void va_must_map(struct va_world *v, D3DDDI_MAPGPUVIRTUALADDRESS *args);
/* Maps the whole allocation anywhere, writable; the tables are correct when it returns. */
uint64_t va_map(struct va_world *v, D3DKMT_HANDLE allocation, uint64_t bytes);
HRESULT va_try_reserve(struct va_world *v, D3DDDI_RESERVEGPUVIRTUALADDRESS *args);
uint64_t va_reserve(struct va_world *v, uint64_t base, uint64_t bytes, uint32_t type);
HRESULT va_free(struct va_world *v, uint64_t base, uint64_t bytes);
/* Returns whether the address is valid, and the word that the GPU reads there. */
bool va_is_there(struct va_world *v, uint64_t address);
uint32_t va_word(struct va_world *v, uint64_t address);
void va_store(struct va_world *v, uint64_t address, uint32_t word);
void va_make(struct va_world *v, D3DKMT_HANDLE allocation);

#endif
