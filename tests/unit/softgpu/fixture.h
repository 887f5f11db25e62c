/* SPDX-License-Identifier: MIT */
/*
 * softgpu alone: the miniport under a minimal port that only connects its callbacks, logs its
 * interrupts and moves no memory by itself. It runs on the sim back end: time is virtual, waiting
 * takes no real time.
 */
#ifndef VMM_TESTS_SOFTGPU_FIXTURE_H
#define VMM_TESTS_SOFTGPU_FIXTURE_H

#ifndef DXGKDDI_INTERFACE_VERSION
#define DXGKDDI_INTERFACE_VERSION 0x4002
#endif

#include "support/test.h"

#include <stdatomic.h>
#include <string.h>

#include <ntddk.h>

#include <d3dkmddi.h>
#include <dispmprt.h>
#include <vidmm/softgpu.h>

#include "nt/nt.h"
#include "os/os.h"

#define MIB           ((uint64_t)1 << 20)
#define PAGE          4096u
#define APERTURE_BASE ((uint64_t)1 << 40)
#define VRAM          1u
#define APERTURE      2u
#define DMA_BYTES     65536u
#define PATCHES       4096u
#define NOWHERE       UINT64_MAX

enum { GPU_INTERRUPTS = 4096, GPU_ALLOCATIONS = 32, GPU_NODES = 2 };

struct gpu_setting {
	const char *name;
	uint64_t value;
};

/* One allocation as the port knows it, and the location that the test gives it. */
struct gpu_allocation {
	DXGK_ALLOCATIONINFO info;
	HANDLE open;
};

/* The result of one DxgkDdiRender. */
struct gpu_dma {
	char *buffer;
	uint64_t private_data[4];
	D3DDDI_PATCHLOCATIONLIST patch[PATCHES];
	uint32_t length, patch_count, multipass_offset;
	uint32_t size, patch_size; /* in: free space */
	/* the last arguments, for Patch */
	const DXGK_ALLOCATIONLIST *list;
	uint32_t list_count;
};

struct gpu {
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_nt_interrupt interrupt_lock;
	DRIVER_INITIALIZATION_DATA ddi;
	HANDLE adapter, device, context[GPU_NODES];
	uint64_t vram_bytes;
	struct vmm_os_memory vram; /* BAR 0, as the CPU sees it */
	/* pages to map into the aperture and to transfer from and to */
	struct vmm_os_memory system;
	struct vmm_os_memory dummy;
	uint64_t vram_physical, system_physical, dummy_physical;
	uint64_t resource_length; /* 0: vram_bytes; else the size in the resource list */
	int use_large_resource;

	struct gpu_allocation allocations[GPU_ALLOCATIONS];
	uint32_t allocation_count;

	DXGKARGCB_NOTIFY_INTERRUPT_DATA interrupts[GPU_INTERRUPTS];
	uint64_t interrupt_ns[GPU_INTERRUPTS];
	_Atomic uint32_t interrupt_count; /* the log is complete up to here */
	uint32_t dpc_count, violations;
	uint32_t next_fence;
	char *paging_buffer; /* a paging buffer under construction; its private data follow */
	uint64_t paging_private[4];
	uint32_t paging_length;
};

/* cmocka setup and teardown; *state is a struct gpu. */
int gpu_setup(void **state);
int gpu_teardown(void **state);
/* The same on real threads and real time. */
int gpu_setup_threads(void **state);
/* With settings, ended by a NULL name. */
struct gpu *gpu_start(const struct gpu_setting *settings, uint64_t vram_bytes);
/* The status of a StartDevice that must fail; everything is undone. */
NTSTATUS gpu_start_status(const struct gpu_setting *settings, uint64_t vram_bytes);
void gpu_stop(struct gpu *gpu);

struct softgpu_allocation gpu_spec(uint64_t size_bytes);
NTSTATUS gpu_try_allocation(struct gpu *gpu, const struct softgpu_allocation *spec,
			    DXGK_ALLOCATIONINFO *info);
struct gpu_allocation *gpu_allocate(struct gpu *gpu, const struct softgpu_allocation *spec);
/* An entry of the kernel's allocation list; segment 0: not resident. */
DXGK_ALLOCATIONLIST gpu_entry(const struct gpu_allocation *allocation, uint32_t segment,
			      uint64_t address, int write);

/* One pass of Render into dma; the input patch list may be NULL. */
NTSTATUS gpu_render_pass(struct gpu *gpu, struct gpu_dma *dma, const void *commands,
			 uint32_t length, const D3DDDI_PATCHLOCATIONLIST *relocations,
			 uint32_t relocation_count);
/* Sets the allocation list that later passes use. */
void gpu_dma_init(struct gpu *gpu, struct gpu_dma *dma, const DXGK_ALLOCATIONLIST *list,
		  uint32_t list_count);
void gpu_dma_finish(struct gpu_dma *dma);
void gpu_patch(struct gpu *gpu, struct gpu_dma *dma, const DXGK_ALLOCATIONLIST *list,
	       uint32_t first, uint32_t count);
/* Submits [start, end) to the node's context; returns the fence. */
uint32_t gpu_submit(struct gpu *gpu, struct gpu_dma *dma, uint32_t node, uint32_t start,
		    uint32_t end);
uint32_t gpu_submit_flags(struct gpu *gpu, struct gpu_dma *dma, uint32_t node,
			  DXGK_SUBMITCOMMANDFLAGS flags);

/* Waits for `count` interrupts, at most 10 s. */
void gpu_wait_interrupts(struct gpu *gpu, uint32_t count);
/* Renders, submits all of it to a node and waits; returns the interrupt. */
const DXGKARGCB_NOTIFY_INTERRUPT_DATA *gpu_run(struct gpu *gpu, uint32_t node, const void *commands,
					       uint32_t length, const DXGK_ALLOCATIONLIST *list,
					       uint32_t list_count);
#define gpu_assert_completed(interrupt) \
	assert_int_equal((interrupt)->InterruptType, DXGK_INTERRUPT_DMA_COMPLETED)
#define gpu_assert_faulted(interrupt, status)                                             \
	do {                                                                              \
		assert_int_equal((interrupt)->InterruptType, DXGK_INTERRUPT_DMA_FAULTED); \
		assert_int_equal((interrupt)->DmaFaulted.Status, (status));               \
	} while (0)

/* ---- paging ---- */
/* Appends one operation to the paging buffer. */
NTSTATUS gpu_build(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER *build);
/* Patches and submits the paging buffer on the paging node and waits; returns the interrupt. */
const DXGKARGCB_NOTIFY_INTERRUPT_DATA *gpu_page(struct gpu *gpu);
/* Builds, submits, waits, and expects success. */
void gpu_map(struct gpu *gpu, uint64_t page, uint64_t pages, PMDL mdl, uint32_t mdl_offset);
void gpu_unmap(struct gpu *gpu, uint64_t page, uint64_t pages);
PMDL gpu_mdl(struct gpu *gpu, uint64_t system_offset, uint64_t length);
void gpu_free_mdl(struct gpu *gpu, PMDL mdl);
DXGKARG_BUILDPAGINGBUFFER gpu_transfer(HANDLE allocation, uint64_t size);
void gpu_side_mdl(DXGK_TRANSFER_END *end, PMDL mdl);
void gpu_side_segment(DXGK_TRANSFER_END *end, uint32_t segment, uint64_t address);

#endif
