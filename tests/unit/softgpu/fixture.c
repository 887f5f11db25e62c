/* SPDX-License-Identifier: MIT */
/* The minimal port: see fixture.h. */
#include "fixture.h"

#include <stdlib.h>

#define KEY_NAME      "\\Registry\\Machine\\Softgpu"
#define SYSTEM_BYTES  (16 * MIB)
#define PAGING_BYTES  65536u
#define QUEUE_ENTRIES 32u
#define LARGE_40      0x0200u

static WCHAR key_text[] = L"\\Registry\\Machine\\Softgpu";
/*
 * DxgkInitialize and DxgkCbGetHandleData have no adapter parameter; a test process has one miniport
 * at a time.
 */
static DRIVER_INITIALIZATION_DATA registered;
static struct gpu *gpu_current;

/* The port's side of the registration. */
NTSTATUS DxgkInitialize(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath,
			PDRIVER_INITIALIZATION_DATA DriverInitializationData)
{
	(void)DriverObject;
	(void)RegistryPath;
	registered = *DriverInitializationData;
	return STATUS_SUCCESS;
}

static UNICODE_STRING key_path(void)
{
	UNICODE_STRING path = {sizeof(key_text) - sizeof(WCHAR), sizeof(key_text), key_text};

	return path;
}

/* ---- callbacks ---- */

static NTSTATUS cb_get_device_information(HANDLE handle, PDXGK_DEVICE_INFO info)
{
	static CM_RESOURCE_LIST resources;
	struct gpu *gpu = handle;
	CM_PARTIAL_RESOURCE_DESCRIPTOR *bar =
		&resources.List[0].PartialResourceList.PartialDescriptors[0];

	memset(info, 0, sizeof(*info));
	memset(&resources, 0, sizeof(resources));
	resources.Count = 1;
	resources.List[0].PartialResourceList.Count = 1;
	bar->u.Memory.Start.QuadPart = (LONGLONG)gpu->vram_physical;
	bar->Type = gpu->use_large_resource ? CmResourceTypeMemoryLarge : CmResourceTypeMemory;
	bar->Flags = gpu->use_large_resource ? LARGE_40 : 0;
	bar->u.Memory.Length =
		(ULONG)(gpu->use_large_resource ? gpu->resource_length >> 8 : gpu->resource_length);
	info->DeviceRegistryPath = key_path();
	info->TranslatedResourceList = &resources;
	return STATUS_SUCCESS;
}

static VOID *cb_get_handle_data(IN_CONST_PDXGKARGCB_GETHANDLEDATA query)
{
	/* A D3DKMT handle of this port is an index from 1; the one being opened counts already. */
	if (query->Type != DXGK_HANDLE_ALLOCATION || !query->hObject ||
	    query->hObject > gpu_current->allocation_count + 1)
		return NULL;
	return gpu_current->allocations[query->hObject - 1].info.hAllocation;
}

static NTSTATUS cb_synchronize_execution(HANDLE handle, PKSYNCHRONIZE_ROUTINE routine,
					 PVOID context, ULONG message, PBOOLEAN result)
{
	struct gpu *gpu = handle;
	uint32_t irql = vmm_nt_interrupt_enter(&gpu->interrupt_lock, VMM_OS_OWN(gpu->os)->slot);

	(void)message;
	*result = routine(context);
	vmm_nt_interrupt_leave(&gpu->interrupt_lock, VMM_OS_OWN(gpu->os)->slot, irql);
	return STATUS_SUCCESS;
}

static VOID cb_notify_interrupt(IN_CONST_HANDLE handle,
				IN_CONST_PDXGKARGCB_NOTIFY_INTERRUPT_DATA data)
{
	struct gpu *gpu = handle;

	uint32_t index = atomic_load_explicit(&gpu->interrupt_count, memory_order_relaxed);

	assert_true(index < GPU_INTERRUPTS);
	assert_int_equal(vmm_nt_irql(gpu->nt), VMM_NT_DEVICE);
	gpu->interrupt_ns[index] = vmm_os_now_ns(gpu->os);
	gpu->interrupts[index] = *data;
	/* Only the holder of the interrupt lock writes here. */
	atomic_store_explicit(&gpu->interrupt_count, index + 1, memory_order_release);
	vmm_os_wake(gpu->os, &gpu->interrupt_count, UINT32_MAX);
}

static BOOLEAN cb_queue_dpc(HANDLE handle)
{
	struct gpu *gpu = handle;

	gpu->dpc_count++;
	return TRUE;
}

static VOID cb_notify_dpc(IN_CONST_HANDLE handle)
{
	(void)handle;
}

static void on_violation(void *context, const struct vmm_nt_violation *violation)
{
	struct gpu *gpu = context;

	print_message("# %s %s at IRQL %u: %s\n", violation->rule, violation->service,
		      violation->irql, violation->text);
	gpu->violations++;
}

/* ---- start and stop ---- */

static void create_world(struct gpu *gpu, enum vmm_os_kind kind)
{
	struct vmm_os_config os = {.kind = kind, .seed = 1};
	struct vmm_nt_config nt = {.violation = on_violation, .context = gpu};

	assert_int_equal(vmm_os_create(&os, &gpu->os), VMM_OK);
	assert_int_equal(vmm_nt_create(gpu->os, &nt, &gpu->nt), VMM_OK);
	vmm_nt_interrupt_init(&gpu->interrupt_lock, gpu->nt, 1000, "interrupt");
}

static uint64_t add_memory(struct gpu *gpu, const char *name, uint64_t bytes,
			   struct vmm_os_memory *memory)
{
	uint64_t physical = vmm_nt_phys_reserve(gpu->nt, bytes);

	assert_int_equal(vmm_os_memory_create(gpu->os, name, bytes, memory), VMM_OK);
	assert_int_equal(vmm_nt_phys_add(gpu->nt, physical, memory, 0, bytes), VMM_OK);
	return physical;
}

static void remove_memory(struct gpu *gpu, uint64_t physical, struct vmm_os_memory *memory)
{
	vmm_nt_phys_remove(gpu->nt, physical);
	vmm_os_memory_destroy(memory);
}

static struct gpu *create(const struct gpu_setting *settings, uint64_t vram_bytes,
			  enum vmm_os_kind kind)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	assert_non_null(gpu);
	gpu_current = gpu;
	gpu->next_fence = UINT32_MAX - 2; /* every test passes the wrap of fence ids */
	create_world(gpu, kind);
	gpu->vram_bytes = gpu->resource_length = vram_bytes;
	gpu->vram_physical = add_memory(gpu, "vram", vram_bytes, &gpu->vram);
	gpu->system_physical = add_memory(gpu, "system", SYSTEM_BYTES, &gpu->system);
	gpu->dummy_physical = add_memory(gpu, "dummy", PAGE, &gpu->dummy);
	gpu->paging_buffer = aligned_alloc(PAGE, PAGING_BYTES);
	assert_non_null(gpu->paging_buffer);
	for (; settings && settings->name; settings++) {
		if (!strcmp(settings->name, "LargeResource"))
			gpu->use_large_resource = 1;
		else
			assert_int_equal(vmm_nt_registry_set_number(gpu->nt, KEY_NAME,
								    settings->name,
								    settings->value),
					 VMM_OK);
	}
	return gpu;
}

static void destroy(struct gpu *gpu)
{
	vmm_nt_registry_remove_key(gpu->nt, KEY_NAME);
	remove_memory(gpu, gpu->vram_physical, &gpu->vram);
	remove_memory(gpu, gpu->system_physical, &gpu->system);
	remove_memory(gpu, gpu->dummy_physical, &gpu->dummy);
	vmm_nt_interrupt_finish(&gpu->interrupt_lock);
	assert_int_equal(vmm_nt_destroy(gpu->nt), VMM_OK);
	vmm_os_destroy(gpu->os);
	/* Asserts that the miniport has leaked nothing and called no service at the wrong IRQL. */
	assert_int_equal(gpu->violations, 0);
	free(gpu->paging_buffer);
	free(gpu);
	gpu_current = NULL;
}

static NTSTATUS start_device(struct gpu *gpu)
{
	DXGKRNL_INTERFACE dxgk = {
		.Size = sizeof(dxgk), .Version = DXGKDDI_INTERFACE_VERSION, .DeviceHandle = gpu};
	DXGK_START_INFO start = {.RequiredDmaQueueEntry = QUEUE_ENTRIES};
	ULONG sources = 99, children = 99;
	UNICODE_STRING path = key_path();
	NTSTATUS status;

	dxgk.DxgkCbGetDeviceInformation = cb_get_device_information;
	dxgk.DxgkCbGetHandleData = cb_get_handle_data;
	dxgk.DxgkCbSynchronizeExecution = cb_synchronize_execution;
	dxgk.DxgkCbNotifyInterrupt = cb_notify_interrupt;
	dxgk.DxgkCbQueueDpc = cb_queue_dpc;
	dxgk.DxgkCbNotifyDpc = cb_notify_dpc;
	status = softgpu_driver_entry(NULL, &path);
	if (!NT_SUCCESS(status))
		return status;
	gpu->ddi = registered;
	assert_int_equal(gpu->ddi.DxgkDdiAddDevice(NULL, &gpu->adapter), STATUS_SUCCESS);
	status = gpu->ddi.DxgkDdiStartDevice(gpu->adapter, &start, &dxgk, &sources, &children);
	if (NT_SUCCESS(status)) {
		assert_int_equal(sources, 0);
		assert_int_equal(children, 0);
	}
	return status;
}

static void create_contexts(struct gpu *gpu)
{
	DXGKARG_CREATEDEVICE device = {.hDevice = gpu};
	uint32_t node;

	assert_int_equal(gpu->ddi.DxgkDdiCreateDevice(gpu->adapter, &device), STATUS_SUCCESS);
	gpu->device = device.hDevice;
	for (node = 0; node < GPU_NODES; node++) {
		DXGKARG_CREATECONTEXT context = {
			.hContext = gpu, .NodeOrdinal = node, .EngineAffinity = 1};

		assert_int_equal(gpu->ddi.DxgkDdiCreateContext(gpu->device, &context),
				 STATUS_SUCCESS);
		gpu->context[node] = context.hContext;
	}
}

struct gpu *gpu_start(const struct gpu_setting *settings, uint64_t vram_bytes)
{
	struct gpu *gpu = create(settings, vram_bytes, VMM_OS_SIM);

	assert_int_equal(start_device(gpu), STATUS_SUCCESS);
	create_contexts(gpu);
	return gpu;
}

NTSTATUS gpu_start_status(const struct gpu_setting *settings, uint64_t vram_bytes)
{
	struct gpu *gpu = create(settings, vram_bytes, VMM_OS_SIM);
	NTSTATUS status = start_device(gpu);

	if (NT_SUCCESS(status))
		gpu->ddi.DxgkDdiStopDevice(gpu->adapter);
	if (gpu->adapter)
		gpu->ddi.DxgkDdiRemoveDevice(gpu->adapter);
	destroy(gpu);
	return status;
}

static void destroy_allocations(struct gpu *gpu)
{
	uint32_t i;

	for (i = 0; i < gpu->allocation_count; i++) {
		DXGKARG_CLOSEALLOCATION close = {1, &gpu->allocations[i].open};
		DXGKARG_DESTROYALLOCATION destroy_one = {
			1, &gpu->allocations[i].info.hAllocation, NULL, {{{0}}}};

		assert_int_equal(gpu->ddi.DxgkDdiCloseAllocation(gpu->device, &close),
				 STATUS_SUCCESS);
		assert_int_equal(gpu->ddi.DxgkDdiDestroyAllocation(gpu->adapter, &destroy_one),
				 STATUS_SUCCESS);
	}
}

void gpu_stop(struct gpu *gpu)
{
	uint32_t node;

	for (node = 0; node < GPU_NODES; node++)
		assert_int_equal(gpu->ddi.DxgkDdiDestroyContext(gpu->context[node]),
				 STATUS_SUCCESS);
	destroy_allocations(gpu);
	assert_int_equal(gpu->ddi.DxgkDdiDestroyDevice(gpu->device), STATUS_SUCCESS);
	assert_int_equal(gpu->ddi.DxgkDdiStopDevice(gpu->adapter), STATUS_SUCCESS);
	assert_int_equal(gpu->ddi.DxgkDdiRemoveDevice(gpu->adapter), STATUS_SUCCESS);
	gpu->ddi.DxgkDdiUnload();
	/* SUB-08: one DPC asked for with every interrupt. */
	assert_int_equal(gpu->dpc_count, gpu->interrupt_count);
	destroy(gpu);
}

int gpu_setup(void **state)
{
	*state = gpu_start(NULL, 16 * MIB);
	return 0;
}

int gpu_setup_threads(void **state)
{
	struct gpu *gpu = create(NULL, 16 * MIB, VMM_OS_LINUX);

	assert_int_equal(start_device(gpu), STATUS_SUCCESS);
	create_contexts(gpu);
	*state = gpu;
	return 0;
}

int gpu_teardown(void **state)
{
	gpu_stop(*state);
	return 0;
}

/* ---- allocations ---- */

struct softgpu_allocation gpu_spec(uint64_t size_bytes)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
		.size_bytes = size_bytes,
	};

	return spec;
}

NTSTATUS gpu_try_allocation(struct gpu *gpu, const struct softgpu_allocation *spec,
			    DXGK_ALLOCATIONINFO *info)
{
	struct softgpu_allocation copy = *spec;
	DXGKARG_CREATEALLOCATION create_one = {.NumAllocations = 1, .pAllocationInfo = info};

	memset(info, 0xA5, sizeof(*info)); /* so that outputs that are not set are noticed */
	info->pPrivateDriverData = &copy;
	info->PrivateDriverDataSize = sizeof(copy);
	info->hAllocation = NULL;
	return gpu->ddi.DxgkDdiCreateAllocation(gpu->adapter, &create_one);
}

struct gpu_allocation *gpu_allocate(struct gpu *gpu, const struct softgpu_allocation *spec)
{
	struct gpu_allocation *allocation = &gpu->allocations[gpu->allocation_count];
	DXGK_OPENALLOCATIONINFO info = {.hAllocation = gpu->allocation_count + 1};
	DXGKARG_OPENALLOCATION open = {.NumAllocations = 1, .pOpenAllocation = &info};

	assert_true(gpu->allocation_count < GPU_ALLOCATIONS);
	assert_int_equal(gpu_try_allocation(gpu, spec, &allocation->info), STATUS_SUCCESS);
	assert_non_null(allocation->info.hAllocation);
	assert_int_equal(gpu->ddi.DxgkDdiOpenAllocation(gpu->device, &open), STATUS_SUCCESS);
	assert_non_null(info.hDeviceSpecificAllocation);
	allocation->open = info.hDeviceSpecificAllocation;
	gpu->allocation_count++;
	return allocation;
}

DXGK_ALLOCATIONLIST gpu_entry(const struct gpu_allocation *allocation, uint32_t segment,
			      uint64_t address, int write)
{
	DXGK_ALLOCATIONLIST entry = {.hDeviceSpecificAllocation =
					     allocation ? allocation->open : NULL};

	entry.WriteOperation = write != 0;
	entry.SegmentId = segment;
	entry.PhysicalAddress.QuadPart = (LONGLONG)(segment ? address : 0);
	return entry;
}

/* ---- render, patch, submit ---- */

void gpu_dma_init(struct gpu *gpu, struct gpu_dma *dma, const DXGK_ALLOCATIONLIST *list,
		  uint32_t list_count)
{
	(void)gpu;
	memset(dma, 0, sizeof(*dma));
	dma->buffer = aligned_alloc(PAGE, DMA_BYTES);
	assert_non_null(dma->buffer);
	memset(dma->buffer, 0xEE, DMA_BYTES);
	dma->size = DMA_BYTES;
	dma->patch_size = PATCHES;
	dma->list = list;
	dma->list_count = list_count;
}

void gpu_dma_finish(struct gpu_dma *dma)
{
	free(dma->buffer);
}

NTSTATUS gpu_render_pass(struct gpu *gpu, struct gpu_dma *dma, const void *commands,
			 uint32_t length, const D3DDDI_PATCHLOCATIONLIST *relocations,
			 uint32_t relocation_count)
{
	DXGKARG_RENDER render = {
		.pCommand = commands,
		.CommandLength = length,
		.pDmaBuffer = dma->buffer,
		.DmaSize = dma->size,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = sizeof(dma->private_data),
		.pAllocationList = (DXGK_ALLOCATIONLIST *)dma->list,
		.AllocationListSize = dma->list_count,
		.pPatchLocationListIn = (D3DDDI_PATCHLOCATIONLIST *)relocations,
		.PatchLocationListInSize = relocation_count,
		.pPatchLocationListOut = dma->patch,
		.PatchLocationListOutSize = dma->patch_size,
		.MultipassOffset = dma->multipass_offset,
	};
	NTSTATUS status = gpu->ddi.DxgkDdiRender(gpu->context[0], &render);

	dma->length = (uint32_t)((char *)render.pDmaBuffer - dma->buffer);
	dma->patch_count = (uint32_t)(render.pPatchLocationListOut - dma->patch);
	dma->multipass_offset = render.MultipassOffset;
	if (NT_SUCCESS(status)) {
		/* All space is used; the next call begins a new buffer. */
		assert_int_equal(render.MultipassOffset, length);
		dma->multipass_offset = 0;
	}
	return status;
}

void gpu_patch(struct gpu *gpu, struct gpu_dma *dma, const DXGK_ALLOCATIONLIST *list,
	       uint32_t first, uint32_t count)
{
	DXGKARG_PATCH patch = {
		.hContext = gpu->context[0],
		.pDmaBuffer = dma->buffer,
		.DmaBufferSize = dma->length,
		.DmaBufferSubmissionEndOffset = dma->length,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = sizeof(dma->private_data),
		.pAllocationList = list,
		.AllocationListSize = dma->list_count,
		.pPatchLocationList = dma->patch,
		.PatchLocationListSize = dma->patch_count,
		.PatchLocationListSubmissionStart = first,
		.PatchLocationListSubmissionLength = count,
	};

	assert_int_equal(gpu->ddi.DxgkDdiPatch(gpu->adapter, &patch), STATUS_SUCCESS);
}

static uint32_t take_fence(struct gpu *gpu)
{
	gpu->next_fence += gpu->next_fence == UINT32_MAX ? 2 : 1; /* 0 is never issued (SUB-01) */
	return gpu->next_fence;
}

static uint32_t submit(struct gpu *gpu, DXGKARG_SUBMITCOMMAND *command)
{
	uint32_t irql = vmm_nt_raise(gpu->nt, VMM_NT_DISPATCH);

	command->SubmissionFenceId = take_fence(gpu);
	assert_int_equal(gpu->ddi.DxgkDdiSubmitCommand(gpu->adapter, command), STATUS_SUCCESS);
	vmm_nt_lower(gpu->nt, irql);
	return command->SubmissionFenceId;
}

uint32_t gpu_submit(struct gpu *gpu, struct gpu_dma *dma, uint32_t node, uint32_t start,
		    uint32_t end)
{
	DXGKARG_SUBMITCOMMAND command = {
		.hContext = gpu->context[node],
		.DmaBufferSize = dma->length,
		.DmaBufferSubmissionStartOffset = start,
		.DmaBufferSubmissionEndOffset = end,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = sizeof(dma->private_data),
	};

	return submit(gpu, &command);
}

uint32_t gpu_submit_flags(struct gpu *gpu, struct gpu_dma *dma, uint32_t node,
			  DXGK_SUBMITCOMMANDFLAGS flags)
{
	DXGKARG_SUBMITCOMMAND command = {
		.hContext = gpu->context[node],
		.DmaBufferSize = dma->length,
		.DmaBufferSubmissionEndOffset = dma->length,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = sizeof(dma->private_data),
		.Flags = flags,
	};

	return submit(gpu, &command);
}

void gpu_wait_interrupts(struct gpu *gpu, uint32_t count)
{
	uint64_t end = vmm_os_now_ns(gpu->os) + 10000000000u;
	uint32_t seen;

	while ((seen = gpu->interrupt_count) < count)
		assert_int_equal(
			vmm_os_wait(gpu->os, &gpu->interrupt_count, seen, end, "interrupt", count),
			VMM_OK);
	vmm_os_settle(gpu->os);
}

const DXGKARGCB_NOTIFY_INTERRUPT_DATA *gpu_run(struct gpu *gpu, uint32_t node, const void *commands,
					       uint32_t length, const DXGK_ALLOCATIONLIST *list,
					       uint32_t list_count)
{
	struct gpu_dma *dma = calloc(1, sizeof(*dma));
	uint32_t index = gpu->interrupt_count;

	assert_non_null(dma);
	gpu_dma_init(gpu, dma, list, list_count);
	assert_int_equal(gpu_render_pass(gpu, dma, commands, length, NULL, 0), STATUS_SUCCESS);
	gpu_patch(gpu, dma, list, 0, dma->patch_count);
	gpu_submit(gpu, dma, node, 0, dma->length);
	gpu_wait_interrupts(gpu, index + 1);
	gpu_dma_finish(dma);
	free(dma);
	return &gpu->interrupts[index];
}

/* ---- paging ---- */

NTSTATUS gpu_build(struct gpu *gpu, DXGKARG_BUILDPAGINGBUFFER *build)
{
	NTSTATUS status;

	build->pDmaBuffer = gpu->paging_buffer + gpu->paging_length;
	if (!build->DmaSize)
		build->DmaSize = PAGING_BYTES - gpu->paging_length;
	build->pDmaBufferPrivateData = gpu->paging_private;
	build->DmaBufferPrivateDataSize = sizeof(gpu->paging_private);
	status = gpu->ddi.DxgkDdiBuildPagingBuffer(gpu->adapter, build);
	gpu->paging_length = (uint32_t)((char *)build->pDmaBuffer - gpu->paging_buffer);
	return status;
}

const DXGKARGCB_NOTIFY_INTERRUPT_DATA *gpu_page(struct gpu *gpu)
{
	uint32_t index = gpu->interrupt_count;
	DXGKARG_PATCH patch = {
		.pDmaBuffer = gpu->paging_buffer,
		.DmaBufferSize = PAGING_BYTES,
		.DmaBufferSubmissionEndOffset = gpu->paging_length,
		.pDmaBufferPrivateData = gpu->paging_private,
		.DmaBufferPrivateDataSize = sizeof(gpu->paging_private),
		.Flags = {.Paging = 1},
	};
	DXGKARG_SUBMITCOMMAND command = {
		.DmaBufferSize = PAGING_BYTES,
		.DmaBufferSubmissionEndOffset = gpu->paging_length,
		.pDmaBufferPrivateData = gpu->paging_private,
		.DmaBufferPrivateDataSize = sizeof(gpu->paging_private),
		.Flags = {.Paging = 1},
		.NodeOrdinal = 1,
	};

	assert_int_equal(gpu->ddi.DxgkDdiPatch(gpu->adapter, &patch), STATUS_SUCCESS);
	submit(gpu, &command);
	gpu_wait_interrupts(gpu, index + 1);
	gpu->paging_length = 0;
	memset(gpu->paging_buffer, 0, PAGING_BYTES);
	return &gpu->interrupts[index];
}

void gpu_map(struct gpu *gpu, uint64_t page, uint64_t pages, PMDL mdl, uint32_t mdl_offset)
{
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};

	build.MapApertureSegment.SegmentId = APERTURE;
	build.MapApertureSegment.OffsetInPages = page;
	build.MapApertureSegment.NumberOfPages = pages;
	build.MapApertureSegment.pMdl = mdl;
	build.MapApertureSegment.MdlOffset = mdl_offset;
	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	gpu_assert_completed(gpu_page(gpu));
}

void gpu_unmap(struct gpu *gpu, uint64_t page, uint64_t pages)
{
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_UNMAP_APERTURE_SEGMENT};

	build.UnmapApertureSegment.SegmentId = APERTURE;
	build.UnmapApertureSegment.OffsetInPages = page;
	build.UnmapApertureSegment.NumberOfPages = pages;
	build.UnmapApertureSegment.DummyPage.QuadPart = (LONGLONG)gpu->dummy_physical;
	assert_int_equal(gpu_build(gpu, &build), STATUS_SUCCESS);
	gpu_assert_completed(gpu_page(gpu));
}

PMDL gpu_mdl(struct gpu *gpu, uint64_t system_offset, uint64_t length)
{
	PMDL mdl = NULL;

	assert_int_equal(vmm_nt_mdl_create(gpu->nt, &gpu->system, system_offset, length,
					   gpu->system_physical + system_offset, &mdl),
			 VMM_OK);
	return mdl;
}

void gpu_free_mdl(struct gpu *gpu, PMDL mdl)
{
	vmm_nt_mdl_destroy(gpu->nt, mdl);
}

DXGKARG_BUILDPAGINGBUFFER gpu_transfer(HANDLE allocation, uint64_t size)
{
	DXGKARG_BUILDPAGINGBUFFER build = {.Operation = DXGK_OPERATION_TRANSFER};

	build.Transfer.hAllocation = allocation;
	build.Transfer.TransferSize = size;
	return build;
}

void gpu_side_mdl(DXGK_TRANSFER_END *end, PMDL mdl)
{
	end->SegmentId = 0;
	end->pMdl = mdl;
}

void gpu_side_segment(DXGK_TRANSFER_END *end, uint32_t segment, uint64_t address)
{
	end->SegmentId = segment;
	end->SegmentAddress.QuadPart = (LONGLONG)address;
}
