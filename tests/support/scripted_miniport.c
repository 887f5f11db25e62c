/* SPDX-License-Identifier: MIT */
/*
 * The DDIs of the scripted miniport: each records itself, does its work or fails on request, and
 * calls the hook.
 */
#include "support/scripted_miniport.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC_DEVICE     0x44435653u
#define MAGIC_CONTEXT    0x43435653u
#define MAGIC_ALLOCATION 0x41435653u
#define MAGIC_OPEN       0x4F435653u
#define MAGIC_RESOURCE   0x52435653u

/*
 * Objects that it creates for the port; all are in m->objects, so scripted_destroy frees those of
 * a removed adapter.
 */
struct object {
	LIST_ENTRY link;
	uint32_t magic;
	struct scripted_miniport *m;
};
struct device {
	struct object object;
	HANDLE port_handle;
};
struct context {
	struct object object;
	uint32_t node, engine;
};
struct allocation {
	struct object object;
	uint64_t size_bytes;
	uint32_t flags;
};
struct open_allocation {
	struct object object;
	D3DKMT_HANDLE handle;
	bool on_each; /* LinkMirrored, LinkInstanced */
};

/* DriverEntry and AddDevice have no argument that identifies the miniport. */
static struct scripted_miniport *armed;
static struct scripted_miniport *arriving; /* for the next AddDevice, armed after the present one */

/* ---- recording ---- */

void scripted_guard(struct scripted_miniport *m)
{
	while (atomic_flag_test_and_set_explicit(&m->guard, memory_order_acquire))
		;
}

void scripted_unguard(struct scripted_miniport *m)
{
	atomic_flag_clear_explicit(&m->guard, memory_order_release);
}

_Thread_local uint32_t scripted_in_hook;

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = size ? malloc(size) : NULL;

	if (copy)
		memcpy(copy, bytes, size);
	return copy;
}

struct scripted_call *scripted_begin(struct scripted_miniport *m, enum vidmm_ddi ddi, HANDLE handle,
				     const void *args, size_t size)
{
	struct scripted_call *call = calloc(1, sizeof(*call));

	if (!call)
		abort();
	call->ddi = ddi;
	call->irql = KeGetCurrentIrql();
	call->handle = handle;
	if (size)
		memcpy(&call->in, args, size);
	scripted_guard(m);
	if (m->call_count == m->call_capacity) {
		m->call_capacity = m->call_capacity ? 2 * m->call_capacity : 64;
		m->calls = realloc(m->calls, m->call_capacity * sizeof(*m->calls));
		if (!m->calls)
			abort();
	}
	m->calls[m->call_count++] = call;
	if (m->failure[ddi].times) {
		m->failure[ddi].times--;
		call->status = m->failure[ddi].status;
		call->forced = true;
	}
	scripted_unguard(m);
	return call;
}

NTSTATUS scripted_end(struct scripted_miniport *m, struct scripted_call *call, void *args)
{
	NTSTATUS status;

	call->args = args;
	scripted_in_hook++;
	if (m->hook)
		m->hook(m->hook_context, m, call);
	scripted_in_hook--;
	call->args = NULL;
	status = call->status;
	return status;
}

void scripted_fail(struct scripted_miniport *m, enum vidmm_ddi ddi, NTSTATUS status, uint32_t times)
{
	m->failure[ddi] = (struct scripted_failure){status, times};
}

const struct scripted_call *scripted_at(const struct scripted_miniport *log, uint32_t index)
{
	struct scripted_miniport *m = (struct scripted_miniport *)(uintptr_t)log;

	scripted_guard(m);
	const struct scripted_call *call = index < m->call_count ? m->calls[index] : NULL;
	scripted_unguard(m);
	return call;
}

uint32_t scripted_count(const struct scripted_miniport *m, enum vidmm_ddi ddi)
{
	const struct scripted_call *call;
	uint32_t count = 0;

	for (uint32_t i = 0; (call = scripted_at(m, i)) != NULL; i++)
		count += call->ddi == ddi;
	return count;
}

const struct scripted_call *scripted_nth(const struct scripted_miniport *m, enum vidmm_ddi ddi,
					 uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_at(m, i)) != NULL; i++) {
		if (call->ddi == ddi && n-- == 0)
			return call;
	}
	return NULL;
}

const struct scripted_call *scripted_last(const struct scripted_miniport *m, enum vidmm_ddi ddi)
{
	uint32_t count = scripted_count(m, ddi);

	return count ? scripted_nth(m, ddi, count - 1) : NULL;
}

void scripted_forget(struct scripted_miniport *m)
{
	scripted_guard(m);
	for (uint32_t i = 0; i < m->call_count; i++) {
		free(m->calls[i]->allocations);
		free(m->calls[i]->patches);
		free(m->calls[i]->host_pages);
		free(m->calls[i]->segment_pages);
		free(m->calls[i]);
	}
	m->call_count = 0;
	scripted_unguard(m);
}

/* ---- device ---- */

static NTSTATUS add_device(const PDEVICE_OBJECT device, PVOID *adapter)
{
	struct scripted_miniport *m = arriving ? arriving : armed;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_ADD_DEVICE, NULL, NULL, 0);

	arriving = m->next;
	m->device_object = device;
	if (!call->forced)
		*adapter = m;
	return scripted_end(m, call, adapter);
}

static NTSTATUS link_device(const PDEVICE_OBJECT device, IN_CONST_PVOID adapter,
			    PLINKED_DEVICE linked)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_LINK_DEVICE, device, NULL, 0);

	if (!call->forced)
		*linked = m->settings.link;
	return scripted_end(m, call, linked);
}

void scripted_link(struct scripted_miniport *const *all, uint32_t count, uint32_t lead)
{
	for (uint32_t i = 0; i < count; i++) {
		all[i]->next = i + 1 < count ? all[i + 1] : NULL;
		all[i]->settings.link = (LINKED_DEVICE){7, count, i == lead};
		all[i]->settings.table.DxgkDdiLinkDevice = link_device;
	}
	for (uint32_t i = 0; i < count; i++)
		all[i]->engine[0] = all[lead];
	for (uint32_t i = 0, others = 0; i < count; i++)
		if (i != lead)
			all[lead]->engine[++others] = all[i];
	scripted_arm(all[0]);
}

static void find_bar(struct scripted_miniport *m)
{
	const CM_PARTIAL_RESOURCE_LIST *list =
		&m->device_info.TranslatedResourceList->List[0].PartialResourceList;

	for (ULONG i = 0; i < list->Count; i++) {
		const CM_PARTIAL_RESOURCE_DESCRIPTOR *d = &list->PartialDescriptors[i];

		if (d->Type != CmResourceTypeMemory)
			continue;
		m->bar_physical = (uint64_t)d->u.Memory.Start.QuadPart;
		m->bar_bytes = d->u.Memory.Length;
		return;
	}
}

static NTSTATUS take_contiguous(struct scripted_miniport *m)
{
	const PHYSICAL_ADDRESS highest = {.QuadPart = INT64_MAX};
	struct scripted_segment *s = &m->settings.segment[0];

	if (!m->settings.contiguous)
		return STATUS_SUCCESS;
	s->cpu_bytes = MmAllocateContiguousMemory(s->size_bytes, highest);
	if (!s->cpu_bytes)
		return STATUS_INSUFFICIENT_RESOURCES;
	s->cpu_address = (uint64_t)MmGetPhysicalAddress(s->cpu_bytes).QuadPart;
	return STATUS_SUCCESS;
}

/* Ends what StartDevice has taken. */
static void release_memory(struct scripted_miniport *m)
{
	scripted_gpu_stop(m);
	if (m->bar)
		m->services.DxgkCbUnmapMemory(m->services.DeviceHandle, m->bar);
	m->bar = NULL;
	if (m->settings.contiguous)
		MmFreeContiguousMemory(m->settings.segment[0].cpu_bytes);
	if (m->settings.contiguous)
		m->settings.segment[0].cpu_bytes = NULL;
}

static NTSTATUS start_device(IN_CONST_PVOID adapter, PDXGK_START_INFO info,
			     PDXGKRNL_INTERFACE services, PULONG sources, PULONG children)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_START_DEVICE, NULL, info, sizeof(*info));
	PHYSICAL_ADDRESS address;

	m->services = *services;
	*sources = m->settings.source_count;
	*children = m->settings.child_count;
	if (call->forced)
		return scripted_end(m, call, info);
	call->status =
		m->services.DxgkCbGetDeviceInformation(m->services.DeviceHandle, &m->device_info);
	if (call->status == STATUS_SUCCESS)
		find_bar(m);
	if (m->bar_bytes) {
		address.QuadPart = (LONGLONG)m->bar_physical;
		call->status = m->services.DxgkCbMapMemory(m->services.DeviceHandle, address,
							   (ULONG)m->bar_bytes, FALSE, FALSE,
							   MmWriteCombined, (PVOID *)&m->bar);
	}
	if (call->status == STATUS_SUCCESS)
		call->status = take_contiguous(m);
	/* After a failure StopDevice is not called. */
	if (call->status == STATUS_SUCCESS) {
		scripted_gpu_start(m);
		scripted_hw_start(m);
	}
	return scripted_end(m, call, info);
}

static NTSTATUS stop_device(IN_CONST_PVOID adapter)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_STOP_DEVICE, NULL, NULL, 0);

	release_memory(m);
	return scripted_end(m, call, NULL);
}

NTSTATUS scripted_stop_and_release(PVOID adapter, D3DDDI_VIDEO_PRESENT_TARGET_ID target,
				   PDXGK_DISPLAY_INFORMATION display)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(
		m, VIDMM_DDI_STOP_DEVICE_AND_RELEASE_POST_DISPLAY_OWNERSHIP, NULL, NULL, 0);

	(void)target, (void)display;
	if (call->forced)
		return scripted_end(m, call, NULL);
	release_memory(m);
	return scripted_end(m, call, NULL);
}

static NTSTATUS remove_device(IN_CONST_PVOID adapter)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(m, scripted_begin(m, VIDMM_DDI_REMOVE_DEVICE, NULL, NULL, 0), NULL);
}

static VOID unload(VOID)
{
	scripted_end(armed, scripted_begin(armed, VIDMM_DDI_UNLOAD, NULL, NULL, 0), NULL);
}

static BOOLEAN interrupt_routine(IN_CONST_PVOID adapter, ULONG message)
{
	(void)adapter, (void)message;
	return FALSE; /* its GPU reports through DxgkCbSynchronizeExecution */
}

static VOID dpc_routine(IN_CONST_PVOID adapter)
{
	struct scripted_miniport *m = adapter;

	m->dpcs++;
	m->services.DxgkCbNotifyDpc(m->services.DeviceHandle);
}

static NTSTATUS notify_removal(PVOID adapter, DXGK_SURPRISE_REMOVAL_TYPE type)
{
	struct scripted_miniport *m = adapter;
	const UINT kind = (UINT)type;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL, NULL, &kind, sizeof(kind)),
		NULL);
}

static NTSTATUS set_power_state(IN_CONST_PVOID adapter, ULONG uid, DEVICE_POWER_STATE state,
				POWER_ACTION action)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_SET_POWER_STATE, NULL, NULL, 0);

	call->in.power.uid = uid;
	call->in.power.state = state;
	call->in.power.action = action;
	return scripted_end(m, call, NULL);
}

/* ---- what it is ---- */

static void put_segment(const struct scripted_miniport *m, const struct scripted_segment *s,
			DXGK_SEGMENTDESCRIPTOR3 *d)
{
	d->Flags.Value = s->flags;
	d->BaseAddress.QuadPart = (LONGLONG)s->base;
	d->CpuTranslatedAddress.QuadPart = s->cpu_address
						   ? (LONGLONG)s->cpu_address
						   : (LONGLONG)m->bar_physical + s->bar_offset;
	d->Size = s->size_bytes;
	d->CommitLimit = s->commit_limit_bytes;
	d->NbOfBanks = s->bank_count;
	d->pBankRangeTable = s->bank_table;
	d->SystemMemoryEndAddress = s->system_memory_end;
}

static void put_old_segment(const struct scripted_miniport *m, const struct scripted_segment *s,
			    DXGK_SEGMENTDESCRIPTOR *old)
{
	DXGK_SEGMENTDESCRIPTOR3 d;

	memset(&d, 0, sizeof(d));
	put_segment(m, s, &d);
	old->Flags = d.Flags;
	old->BaseAddress = d.BaseAddress;
	old->CpuTranslatedAddress = d.CpuTranslatedAddress;
	old->Size = d.Size;
	old->CommitLimit = d.CommitLimit;
	old->NbOfBanks = d.NbOfBanks;
	old->pBankRangeTable = d.pBankRangeTable;
}

static void query_segments(struct scripted_miniport *m, const DXGKARG_QUERYADAPTERINFO *args)
{
	const struct scripted_settings *s = &m->settings;
	DXGK_QUERYSEGMENTOUT3 *out = args->pOutputData;

	if (!out->pSegmentDescriptor) {
		out->NbSegment = s->segment_count;
		return;
	}
	for (UINT i = 0; i < s->segment_count; i++) {
		if (args->Type == DXGKQAITYPE_QUERYSEGMENT3)
			put_segment(m, &s->segment[i], &out->pSegmentDescriptor[i]);
		else
			put_old_segment(m, &s->segment[i],
					(DXGK_SEGMENTDESCRIPTOR *)(void *)out->pSegmentDescriptor +
						i);
	}
	out->NbSegment = s->second_segment_count ? s->second_segment_count : s->segment_count;
	out->PagingBufferSegmentId = s->paging_segment;
	out->PagingBufferSize = s->paging_bytes;
	out->PagingBufferPrivateDataSize = s->paging_private_bytes;
}

static NTSTATUS query_adapter_info(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_QUERYADAPTERINFO args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_QUERY_ADAPTER_INFO, NULL, args, sizeof(*args));

	if (!call->forced) {
		switch (args->Type) {
		case DXGKQAITYPE_DRIVERCAPS:
			memcpy(args->pOutputData, &m->settings.caps, args->OutputDataSize);
			break;
		case DXGKQAITYPE_QUERYSEGMENT:
		case DXGKQAITYPE_QUERYSEGMENT3:
			query_segments(m, args);
			break;
		default:
			call->status = scripted_query_wddm2(m, args);
		}
	}
	return scripted_end(m, call, args->pOutputData);
}

/* ---- objects ---- */

static void *make(struct scripted_miniport *m, uint32_t magic, size_t size, _Atomic uint32_t *live)
{
	struct object *object = calloc(1, size);

	if (!object)
		abort();
	object->magic = magic;
	object->m = m;
	scripted_guard(m);
	InsertTailList(&m->objects, &object->link);
	scripted_unguard(m);
	(*live)++;
	return object;
}

static void unmake(struct object *object, _Atomic uint32_t *live)
{
	struct scripted_miniport *m = object->m;

	scripted_guard(m);
	RemoveEntryList(&object->link);
	scripted_unguard(m);
	object->magic = 0;
	free(object);
	(*live)--;
}

static NTSTATUS create_device(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_CREATEDEVICE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CREATE_DEVICE, NULL, args, sizeof(*args));
	struct device *device;

	if (!call->forced) {
		device = make(m, MAGIC_DEVICE, sizeof(*device), &m->live_devices);
		device->port_handle = args->hDevice;
		args->hDevice = device;
		if (!m->settings.leave_device_info)
			args->pInfo = &m->settings.device;
	}
	return scripted_end(m, call, args);
}

static NTSTATUS destroy_device(IN_CONST_HANDLE handle)
{
	struct device *device = handle;
	struct scripted_miniport *m = device->object.m;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_DESTROY_DEVICE, handle, NULL, 0);

	unmake(&device->object, &m->live_devices);
	return scripted_end(m, call, NULL);
}

struct scripted_miniport *scripted_of_device(HANDLE handle)
{
	return ((struct device *)handle)->object.m;
}

static NTSTATUS create_context(IN_CONST_HANDLE handle, INOUT_PDXGKARG_CREATECONTEXT args)
{
	struct device *device = handle;
	struct scripted_miniport *m = device->object.m;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CREATE_CONTEXT, handle, args, sizeof(*args));
	struct context *context;

	if (!call->forced) {
		context = make(m, MAGIC_CONTEXT, sizeof(*context), &m->live_contexts);
		context->engine = (uint32_t)__builtin_ctz(args->EngineAffinity);
		context->node = scripted_index(m, args->NodeOrdinal, context->engine);
		args->hContext = context;
		args->ContextInfo = m->settings.context;
	}
	return scripted_end(m, call, args);
}

static NTSTATUS destroy_context(IN_CONST_HANDLE handle)
{
	struct context *context = handle;
	struct scripted_miniport *m = context->object.m;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_DESTROY_CONTEXT, handle, NULL, 0);

	unmake(&context->object, &m->live_contexts);
	return scripted_end(m, call, NULL);
}

static void describe(DXGK_ALLOCATIONINFO *info)
{
	struct scripted_allocation a = {.size_bytes = 64 << 10};

	if (info->pPrivateDriverData && info->PrivateDriverDataSize == sizeof(a))
		memcpy(&a, info->pPrivateDriverData, sizeof(a));
	info->Alignment = a.alignment;
	info->Size = a.size_bytes;
	info->PitchAlignedSize = a.pitch_aligned_bytes;
	info->HintedBank.Value = a.banks;
	info->PreferredSegment.Value = a.preferred;
	info->SupportedReadSegmentSet = a.read_set ? a.read_set : 3;
	info->SupportedWriteSegmentSet = a.write_set ? a.write_set : 3;
	info->EvictionSegmentSet = a.eviction_set;
	info->MaximumRenamingListLength = a.renaming_limit;
	info->Flags.Value = a.flags;
	info->Flags2.Value = a.flags2;
	info->pAllocationUsageHint = NULL;
	info->AllocationPriority = a.priority ? a.priority : 0x78000000;
}

static NTSTATUS create_allocation(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_CREATEALLOCATION args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CREATE_ALLOCATION, NULL, args, sizeof(*args));

	if (call->forced)
		return scripted_end(m, call, args);
	for (UINT i = 0; i < args->NumAllocations; i++) {
		struct allocation *a = make(m, MAGIC_ALLOCATION, sizeof(*a), &m->live_allocations);

		describe(&args->pAllocationInfo[i]);
		a->size_bytes = args->pAllocationInfo[i].Size;
		a->flags = args->pAllocationInfo[i].Flags.Value;
		args->pAllocationInfo[i].hAllocation = a;
	}
	if (args->Flags.Resource && !args->hResource)
		args->hResource =
			make(m, MAGIC_RESOURCE, sizeof(struct object), &m->live_resources);
	return scripted_end(m, call, args);
}

static NTSTATUS destroy_allocation(IN_CONST_HANDLE adapter,
				   IN_CONST_PDXGKARG_DESTROYALLOCATION args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_DESTROY_ALLOCATION, NULL, args, sizeof(*args));

	for (UINT i = 0; i < args->NumAllocations; i++) {
		struct allocation *a = args->pAllocationList[i];

		unmake(&a->object, &m->live_allocations);
	}
	if (args->Flags.DestroyResource)
		unmake(args->hResource, &m->live_resources);
	return scripted_end(m, call, NULL);
}

static bool is_on_each(const struct scripted_miniport *m, D3DKMT_HANDLE handle)
{
	DXGKARGCB_GETHANDLEDATA args = {.hObject = handle, .Type = DXGK_HANDLE_ALLOCATION};
	const struct allocation *a = m->engine[1] ? m->services.DxgkCbGetHandleData(&args) : NULL;

	return a && (a->flags & 0x3000);
}

uint32_t scripted_paging_engine(const DXGKARG_BUILDPAGINGBUFFER *args)
{
	const struct object *object = args->hSystemContext;

	return object && object->magic == MAGIC_CONTEXT
		       ? ((const struct context *)args->hSystemContext)->engine
		       : 0;
}

static NTSTATUS open_allocation(IN_CONST_HANDLE handle, IN_CONST_PDXGKARG_OPENALLOCATION args)
{
	struct device *device = handle;
	struct scripted_miniport *m = device->object.m;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_OPEN_ALLOCATION, handle, args, sizeof(*args));

	for (UINT i = 0; !call->forced && i < args->NumAllocations; i++) {
		struct open_allocation *open = make(m, MAGIC_OPEN, sizeof(*open), &m->live_opens);

		open->handle = args->pOpenAllocation[i].hAllocation;
		open->on_each = is_on_each(m, open->handle);
		args->pOpenAllocation[i].hDeviceSpecificAllocation = open;
	}
	return scripted_end(m, call, args->pOpenAllocation);
}

static NTSTATUS close_allocation(IN_CONST_HANDLE handle, IN_CONST_PDXGKARG_CLOSEALLOCATION args)
{
	struct device *device = handle;
	struct scripted_miniport *m = device->object.m;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CLOSE_ALLOCATION, handle, args, sizeof(*args));

	for (UINT i = 0; i < args->NumAllocations; i++) {
		struct open_allocation *open = args->pOpenHandleList[i];

		unmake(&open->object, &m->live_opens);
	}
	return scripted_end(m, call, NULL);
}

/* ---- submission ---- */

struct scripted_miniport *scripted_of_context(HANDLE handle, uint32_t *node)
{
	const struct object *object = handle;

	/* Without MultiEngineAware it is the device (DMA-33). */
	*node = object->magic == MAGIC_CONTEXT ? ((const struct context *)handle)->node : 0;
	return object->m;
}

static NTSTATUS render(IN_CONST_HANDLE handle, INOUT_PDXGKARG_RENDER args)
{
	uint32_t node;
	struct scripted_miniport *m = scripted_of_context(handle, &node);
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_RENDER, handle, args, sizeof(*args));

	call->allocation_count = args->AllocationListSize;
	call->allocations = copy_of(args->pAllocationList,
				    args->AllocationListSize * sizeof(*call->allocations));
	if (!call->forced)
		call->status = scripted_gpu_translate(args);
	return scripted_end(m, call, args);
}

static NTSTATUS patch(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_PATCH args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_PATCH, args->hContext, args, sizeof(*args));

	call->allocation_count = args->AllocationListSize;
	call->allocations = copy_of(args->pAllocationList,
				    args->AllocationListSize * sizeof(*call->allocations));
	call->patch_count = args->PatchLocationListSize;
	call->patches = copy_of(args->pPatchLocationList,
				args->PatchLocationListSize * sizeof(*call->patches));
	for (UINT i = 0; !call->forced && i < args->PatchLocationListSubmissionLength; i++) {
		const D3DDDI_PATCHLOCATIONLIST *p =
			&args->pPatchLocationList[args->PatchLocationListSubmissionStart + i];
		const DXGK_ALLOCATIONLIST *a = &args->pAllocationList[p->AllocationIndex];
		struct scripted_place *place = (void *)((char *)args->pDmaBuffer + p->PatchOffset);

		if (!a->hDeviceSpecificAllocation)
			continue; /* PAT-09: unbinds its slot */
		const struct scripted_place now = {
			.segment = a->SegmentId,
			.engine = ((const struct open_allocation *)a->hDeviceSpecificAllocation)
						  ->on_each
					  ? SCRIPTED_EACH
					  : 0,
			.address = (uint64_t)a->PhysicalAddress.QuadPart + p->AllocationOffset,
		};

		/* Another engine may be reading a broadcast buffer. */
		if (place->segment != now.segment || place->engine != now.engine ||
		    place->address != now.address)
			*place = now;
	}
	return scripted_end(m, call, NULL);
}

static NTSTATUS submit_command(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_SUBMITCOMMAND args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_SUBMIT_COMMAND, args->hContext, args, sizeof(*args));
	uint32_t node = m->settings.caps.MemoryManagementCaps.PagingNode;

	if (!m->settings.caps.SchedulingCaps.MultiEngineAware)
		node = scripted_index(m, 0, args->EngineOrdinal);
	else if (args->hContext)
		scripted_of_context(args->hContext, &node);
	if (!call->forced)
		scripted_gpu_submit(m, node, args);
	return scripted_end(m, call, NULL);
}

static NTSTATUS preempt_command(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_PREEMPTCOMMAND args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_PREEMPT_COMMAND, NULL, args, sizeof(*args));

	if (!call->forced && !m->settings.withhold_preemption)
		scripted_gpu_preempt(m, scripted_index(m, args->NodeOrdinal, args->EngineOrdinal),
				     args->PreemptionFenceId);
	return scripted_end(m, call, NULL);
}

NTSTATUS APIENTRY scripted_cancel_command(IN_CONST_HANDLE adapter,
					  IN_CONST_PDXGKARG_CANCELCOMMAND args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_CANCEL_COMMAND, args->hContext, args, sizeof(*args)),
		NULL);
}

NTSTATUS APIENTRY scripted_reset_engine(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_RESETENGINE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_RESET_ENGINE, NULL, args, sizeof(*args));

	if (!call->forced)
		args->LastAbortedFenceId = scripted_gpu_abort(
			m, scripted_index(m, args->NodeOrdinal, args->EngineOrdinal));
	return scripted_end(m, call, args);
}

NTSTATUS APIENTRY scripted_query_engine_status(IN_CONST_HANDLE adapter,
					       INOUT_PDXGKARG_QUERYENGINESTATUS args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_QUERY_ENGINE_STATUS, NULL, args, sizeof(*args));

	args->EngineStatus.Value = 0;
	return scripted_end(m, call, args);
}

NTSTATUS APIENTRY scripted_query_engine_group(IN_CONST_HANDLE adapter,
					      INOUT_PDXGKARG_QUERYDEPENDENTENGINEGROUP args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP, NULL,
						    args, sizeof(*args));

	args->DependentNodeOrdinalMask = 1ull << args->NodeOrdinal;
	return scripted_end(m, call, args);
}

static NTSTATUS build_paging_buffer(IN_CONST_HANDLE adapter, IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_BUILD_PAGING_BUFFER, NULL, args, sizeof(*args));

	if (!call->forced)
		call->status = scripted_gpu_paging(m, args);
	return scripted_end(m, call, args);
}

static NTSTATUS query_current_fence(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_QUERYCURRENTFENCE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_QUERY_CURRENT_FENCE, NULL, args, sizeof(*args));

	if (!call->forced) {
		uint32_t index = scripted_index(m, args->NodeOrdinal, args->EngineOrdinal);

		args->CurrentFence = scripted_completed_fence(m, index);
		scripted_report_progress(m, index); /* SUB-14 */
	}
	return scripted_end(m, call, args);
}

static NTSTATUS acquire_range(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_ACQUIRESWIZZLINGRANGE args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE, NULL, args, sizeof(*args)),
		args);
}

static NTSTATUS release_range(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_RELEASESWIZZLINGRANGE args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_RELEASE_SWIZZLING_RANGE, NULL, args, sizeof(*args)),
		NULL);
}

static NTSTATUS reset_from_timeout(IN_CONST_HANDLE adapter)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_RESET_FROM_TIMEOUT, NULL, NULL, 0);

	if (!call->forced)
		scripted_gpu_halt(m, true);
	return scripted_end(m, call, NULL);
}

static NTSTATUS restart_from_timeout(IN_CONST_HANDLE adapter)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_RESTART_FROM_TIMEOUT, NULL, NULL, 0);

	if (!call->forced)
		scripted_gpu_halt(m, false);
	return scripted_end(m, call, NULL);
}

static NTSTATUS collect_dbg_info(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_COLLECTDBGINFO args)
{
	struct scripted_miniport *m = adapter;

	return scripted_end(
		m, scripted_begin(m, VIDMM_DDI_COLLECT_DBG_INFO, NULL, args, sizeof(*args)), NULL);
}

/* ---- creation ---- */

static const DRIVER_INITIALIZATION_DATA full_table = {
	.Version = DXGKDDI_INTERFACE_VERSION_WDDM1_3,
	.DxgkDdiAddDevice = add_device,
	.DxgkDdiStartDevice = start_device,
	.DxgkDdiStopDevice = stop_device,
	.DxgkDdiRemoveDevice = remove_device,
	.DxgkDdiInterruptRoutine = interrupt_routine,
	.DxgkDdiDpcRoutine = dpc_routine,
	.DxgkDdiUnload = unload,
	.DxgkDdiSetPowerState = set_power_state,
	.DxgkDdiNotifySurpriseRemoval = notify_removal,
	.DxgkDdiQueryAdapterInfo = query_adapter_info,
	.DxgkDdiCreateDevice = create_device,
	.DxgkDdiDestroyDevice = destroy_device,
	.DxgkDdiCreateContext = create_context,
	.DxgkDdiDestroyContext = destroy_context,
	.DxgkDdiCreateAllocation = create_allocation,
	.DxgkDdiDestroyAllocation = destroy_allocation,
	.DxgkDdiDescribeAllocation = scripted_describe_allocation,
	.DxgkDdiOpenAllocation = open_allocation,
	.DxgkDdiCloseAllocation = close_allocation,
	.DxgkDdiRender = render,
	.DxgkDdiPatch = patch,
	.DxgkDdiSubmitCommand = submit_command,
	.DxgkDdiPreemptCommand = preempt_command,
	.DxgkDdiBuildPagingBuffer = build_paging_buffer,
	.DxgkDdiQueryCurrentFence = query_current_fence,
	.DxgkDdiAcquireSwizzlingRange = acquire_range,
	.DxgkDdiReleaseSwizzlingRange = release_range,
	.DxgkDdiPresent = scripted_present,
	.DxgkDdiSetVidPnSourceAddress = scripted_set_source_address,
	.DxgkDdiSetVidPnSourceVisibility = scripted_set_source_visibility,
	.DxgkDdiResetFromTimeout = reset_from_timeout,
	.DxgkDdiRestartFromTimeout = restart_from_timeout,
	.DxgkDdiCollectDbgInfo = collect_dbg_info,
	.DxgkDdiValidateUpdateAllocationProperty = scripted_validate_property,
	.DxgkDdiEscape = scripted_escape,
	.DxgkDdiCreatePeriodicFrameNotification = scripted_create_periodic,
	.DxgkDdiDestroyPeriodicFrameNotification = scripted_destroy_periodic,
	.DxgkDdiCreateCpuEvent = scripted_create_cpu_event,
	.DxgkDdiDestroyCpuEvent = scripted_destroy_cpu_event,
	.DxgkDdiMapCpuHostAperture = scripted_map_host,
	.DxgkDdiUnmapCpuHostAperture = scripted_unmap_host,
};

static void default_settings(struct scripted_settings *s)
{
	DXGK_SEGMENTFLAGS memory = {.CpuVisible = 1},
			  aperture = {.Aperture = 1, .CacheCoherent = 1};

	s->table = full_table;
	s->caps.HighestAcceptableAddress.QuadPart = -1;
	s->caps.ApertureSegmentCommitLimit = SCRIPTED_APERTURE_BYTES;
	s->caps.SchedulingCaps.MultiEngineAware = 1;
	s->caps.GpuEngineTopology.NbAsymetricProcessingNodes = 2;
	s->caps.MemoryManagementCaps.PagingNode = 1;
	s->caps.WDDMVersion = DXGKDDI_WDDMv1_3;
	s->segment_count = 2;
	s->segment[0] = (struct scripted_segment){.flags = memory.Value,
						  .base = SCRIPTED_MEMORY_BASE,
						  .size_bytes = SCRIPTED_BAR_BYTES,
						  .commit_limit_bytes = SCRIPTED_BAR_BYTES};
	s->segment[1] = (struct scripted_segment){.flags = aperture.Value,
						  .base = SCRIPTED_APERTURE_BASE,
						  .size_bytes = SCRIPTED_APERTURE_BYTES,
						  .commit_limit_bytes = SCRIPTED_APERTURE_BYTES};
	s->paging_bytes = 64 << 10;
	s->frame_100ns = 166667; /* 60 Hz */
	s->device = (DXGK_DEVICEINFO){.DmaBufferSize = 64 << 10,
				      .DmaBufferPrivateDataSize = 64,
				      .AllocationListSize = 128,
				      .PatchLocationListSize = 256};
	s->context = (DXGK_CONTEXTINFO){.DmaBufferSize = 64 << 10,
					.DmaBufferPrivateDataSize = 64,
					.AllocationListSize = 128,
					.PatchLocationListSize = 256};
	s->complete_at_once = true;
}

struct scripted_miniport *scripted_create(void)
{
	struct scripted_miniport *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	atomic_flag_clear(&m->guard);
	InitializeListHead(&m->objects);
	default_settings(&m->settings);
	scripted_arm(m);
	return m;
}

void scripted_destroy(struct scripted_miniport *m)
{
	while (!IsListEmpty(&m->objects))
		free(CONTAINING_RECORD(RemoveHeadList(&m->objects), struct object, link));
	scripted_forget(m);
	scripted_gpu_stop(m);
	free(m->calls);
	if (armed == m)
		armed = arriving = NULL;
	free(m);
}

void scripted_arm(struct scripted_miniport *m)
{
	armed = m;
	arriving = NULL;
}

const DRIVER_INITIALIZATION_DATA *scripted_table(struct scripted_miniport *m)
{
	scripted_arm(m);
	return &m->settings.table;
}

NTSTATUS scripted_driver_entry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *path)
{
	return DxgkInitialize(driver, path, &armed->settings.table);
}
