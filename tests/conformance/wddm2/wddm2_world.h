/* SPDX-License-Identifier: MIT */
/*
 * The world of the scheduling tests with a miniport of WDDM 2.x: 16 MiB of memory and one aperture, no GPU virtual
 * addresses, contexts that patch.
 */
#ifndef VMM_TESTS_WDDM2_WORLD_H
#define VMM_TESTS_WDDM2_WORLD_H

#include <sched_world.h>

/* DXGK_ALLOCATIONINFOFLAGS_WDDM2_0 */
#define CACHED              0x4u
#define ACCESSED_PHYSICALLY 0x8000u
#define NOTIFY_RESIDENCY    0x10000u
#define HARDWARE_PROTECTED  0x20000u
#define ON_DEMAND           0x40000u
/* What most allocations here are. */
#define PHYSICAL            (WORLD_CPU_VISIBLE | ACCESSED_PHYSICALLY)

/* Setups for world_start. */
void wddm2_0(struct scripted_miniport *m);
void wddm2_1(struct scripted_miniport *m);

/* pfnAllocateCb of one allocation; *handle is its handle, or 0. */
HRESULT wddm2_try_allocate(struct client_device *device, const struct scripted_allocation *spec,
			   D3DKMT_HANDLE *handle);
/* CPU visible, accessed physically, in the segments of the set. */
D3DKMT_HANDLE wddm2_allocate(struct client_device *device, uint64_t bytes, uint32_t segment_set);

#endif
