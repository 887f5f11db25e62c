/* SPDX-License-Identifier: MIT */
/*
 * The fixture of the scheduling tests with a miniport of WDDM 2.x: 16 MiB of memory and one
 * aperture, no GPU virtual addresses, contexts with patching.
 */
#ifndef VMM_TESTS_WDDM2_WORLD_H
#define VMM_TESTS_WDDM2_WORLD_H

#include <sched_world.h>

/* DXGK_ALLOCATIONINFOFLAGS_WDDM2_0 */
#define PERMANENT_SYSMEM    0x2u
#define CACHED              0x4u
#define ACCESSED_PHYSICALLY 0x8000u
#define NOTIFY_RESIDENCY    0x10000u
#define HARDWARE_PROTECTED  0x20000u
#define ON_DEMAND           0x40000u
/* The flags of most allocations here. */
#define PHYSICAL            (WORLD_CPU_VISIBLE | ACCESSED_PHYSICALLY)

/* Setups for world_start. */
void wddm2_0(struct scripted_miniport *m);
void wddm2_1(struct scripted_miniport *m);

/* The GPU executes until nothing is left, also work of the paging worker. */
void wddm2_run(struct world *w);
void wddm2_stop(struct world *w);

/* pfnAllocateCb for one allocation; *handle is its handle, or 0. */
HRESULT wddm2_try_allocate(struct client_device *device, const struct scripted_allocation *spec,
			   D3DKMT_HANDLE *handle);
/* D3DDDI_MAKERESIDENT_FLAGS, D3DDDI_EVICT_FLAGS */
#define CANT_TRIM_FURTHER       0x1u
#define MUST_SUCCEED            0x2u
#define EVICT_ONLY_IF_NECESSARY 0x1u
#define NOT_WRITTEN_TO          0x2u

/* A paging queue of normal priority; its fence's value as the client reads it. */
D3DDDICB_CREATEPAGINGQUEUE wddm2_queue(struct client_device *device);
uint64_t wddm2_fence(const D3DDDICB_CREATEPAGINGQUEUE *queue);
/* The GPU executes until the fence has that value. */
void wddm2_await(struct world *w, const D3DDDICB_CREATEPAGINGQUEUE *queue, uint64_t value);
/* pfnMakeResidentCb for one allocation, or as given; *args holds the callback's outputs. */
HRESULT wddm2_try_make(struct client_device *device, D3DDDI_MAKERESIDENT *args);
HRESULT wddm2_try_make_one(struct client_device *device, const D3DDDICB_CREATEPAGINGQUEUE *queue,
			   D3DKMT_HANDLE allocation, D3DDDI_MAKERESIDENT *args);
/* The same; the GPU executes until they are resident. */
void wddm2_make(struct world *w, struct client_device *device,
		const D3DDDICB_CREATEPAGINGQUEUE *queue, const D3DKMT_HANDLE *list, uint32_t count);
/* pfnEvictCb for one allocation. */
HRESULT wddm2_evict(struct client_device *device, D3DKMT_HANDLE allocation, uint32_t flags);
/*
 * The number of paging operations of that kind so far; of transfers only those out of segments
 * (or, `in`, into them).
 */
uint32_t wddm2_operations(const struct world *w, DXGK_BUILDPAGINGBUFFER_OPERATION operation);
uint32_t wddm2_transfers(const struct world *w, bool in);
/* Returns whether it is in the GPU's memory. */
bool wddm2_is_in_memory(struct client_device *device, D3DKMT_HANDLE allocation);

/* CPU-visible and AccessedPhysically, in the segments of the set. */
D3DKMT_HANDLE wddm2_allocate(struct client_device *device, uint64_t bytes, uint32_t segment_set);

#endif
