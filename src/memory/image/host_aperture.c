/* SPDX-License-Identifier: MIT */
/*
 * CPU host apertures: CPU access to a memory segment of WDDM 2.x that no BAR exposes as a whole
 * (SWZ-29, LOCK-46).
 *
 * A lock maps the allocation's segment pages to as many free pages of the aperture, in any order.
 * The CPU mapping has those aperture pages in the order of the segment pages. The mapping stays
 * after the unlock, for the next lock. It ends with the first of:
 * - the allocation leaves its placement;
 * - the address of a CpuVisibleOnDemand allocation is released (ALF-27);
 * - another lock needs the aperture pages; the least recently locked mapping ends first.
 *
 * A locked allocation keeps its pages. Every Map is undone by an Unmap of the same pages.
 *
 * An out-of-process client maps client objects (client_object.c) instead of the BAR. They are laid
 * over the aperture pages before the miniport maps them, and cover only the bytes that the CPU
 * mapping has: the rest of a larger page may hold older content of another allocation. They stay
 * with the mapping, for the client's next lock.
 *
 * The offset and size of each placement in the segment are multiples of the segment's page size
 * (4 KiB or 64 KiB). A segment page therefore belongs to one allocation and is never mapped twice.
 * The segment is that of physical adapter 0: links of WDDM 2.x are not started.
 */
#include "memory/image/image.h"
#include "memory/state/state.h"

#include <string.h>

struct vmm_host_mapping {
	struct vmm_list link; /* in vmm_host_aperture.mapped */
	struct vmm_instance *instance;
	bool unwanted; /* to be removed as soon as a DDI may be called */
	bool overlaid; /* client objects overlay the pages */
	uint32_t count;
	uint32_t *pages;          /* page numbers in the aperture */
	uint64_t segment_pages[]; /* page numbers in the segment; `pages` follows in memory */
};

struct vmm_host_aperture {
	const struct vmm_os_memory *bar;
	uint64_t offset, page_bytes;
	uint32_t page_count, free_count;
	struct vmm_list mapped; /* vmm_host_mapping.link, the least recently locked first */
	uint8_t taken[];        /* one byte per aperture page: 1 if mapped */
};

static vmm_status create(struct vmm_memory *memory, struct vmm_segment *segment)
{
	const struct vmm_port_segment *port = segment->port;
	struct vmm_host_aperture *host;

	if (vmm_likely(!port->host.pages))
		return VMM_OK;
	host = vmm_calloc(1, sizeof(*host) + port->host.pages);
	if (!host)
		return VMM_NO_MEMORY;
	host->bar = vmm_port_cpu_memory(memory->adapter->port, port->host.physical,
					port->host.pages * port->page_bytes, &host->offset);
	vmm_assert(host->bar); /* the port module has validated the range */
	host->page_bytes = port->page_bytes;
	host->page_count = host->free_count = port->host.pages;
	vmm_list_init(&host->mapped);
	segment->host = host;
	return VMM_OK;
}

vmm_status vmm_host_apertures_create(struct vmm_memory *memory)
{
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < memory->segment_count && vmm_ok(status); i++)
		status = create(memory, &memory->segment[i]);
	return status;
}

void vmm_host_apertures_destroy(struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		struct vmm_segment *segment = &memory->segment[i];

		vmm_assert(!segment->host ||
			   segment->host->free_count == segment->host->page_count);
		vmm_free(segment->host);
		segment->host = NULL;
	}
}

/* A run of consecutive aperture pages, from the i-th page of the mapping on. */
struct host_run {
	uint32_t end;          /* index of the first page after the run */
	uint64_t from, length; /* bytes of the BAR; length ends with the allocation */
};

static struct host_run run_of(const struct vmm_host_aperture *host,
			      const struct vmm_host_mapping *mapping, uint32_t i)
{
	uint64_t left = mapping->instance->allocation->size_bytes - i * host->page_bytes;
	struct host_run run = {.end = i + 1,
			       .from = host->offset + mapping->pages[i] * host->page_bytes};

	while (run.end < mapping->count &&
	       mapping->pages[run.end] == mapping->pages[run.end - 1] + 1)
		run.end++;
	run.length = vmm_min_u64((run.end - i) * host->page_bytes, left);
	return run;
}

/* Takes the client objects off the first `count` pages of the mapping. */
static void remove_overlay(const struct vmm_host_aperture *host, struct vmm_host_mapping *mapping,
			   uint32_t count)
{
	for (uint32_t i = 0; i < count;) {
		struct host_run run = run_of(host, mapping, i);

		vmm_os_client_object_release(host->bar, run.from, run.length, true);
		i = run.end;
	}
	mapping->overlaid = false;
}

/*
 * Lays the client's objects over the pages that its view shows, and removes other clients' objects
 * from all of them. Lays none for an in-process client.
 */
static vmm_status overlay_pages(const struct vmm_host_aperture *host,
				struct vmm_host_mapping *mapping)
{
	const struct vmm_allocation *a = mapping->instance->allocation;
	uint64_t owner = a->viewer ? vmm_os_viewer_owner(a->viewer) : 0;

	for (uint32_t i = 0; i < mapping->count;) {
		struct host_run run = run_of(host, mapping, i);
		uint64_t all = (run.end - i) * host->page_bytes, shown = owner ? run.length : 0;
		vmm_status status = VMM_OK;
		bool fresh;

		status = vmm_os_client_object_uncover(host->bar, run.from + shown, all - shown);
		if (vmm_ok(status) && owner)
			status = vmm_os_client_object_cover(host->bar, run.from, shown, owner,
							    &fresh);
		if (!vmm_ok(status)) {
			remove_overlay(host, mapping, i);
			return status;
		}
		i = run.end;
	}
	mapping->overlaid = owner != 0;
	return VMM_OK;
}

vmm_status vmm_host_prepare_viewer(struct vmm_memory *memory, uint64_t owner)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count && status == VMM_OK; i++)
		if (memory->segment[i].host)
			status = vmm_os_client_object_prepare(memory->segment[i].host->bar, owner);
	return status;
}

void vmm_host_end_viewer(struct vmm_memory *memory, uint64_t owner)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].host)
			vmm_os_client_object_end_owner(memory->segment[i].host->bar, owner);
}

static void end_mapping(struct vmm_host_aperture *host, struct vmm_host_mapping *mapping)
{
	if (mapping->overlaid)
		remove_overlay(host, mapping, mapping->count);
	for (uint32_t i = 0; i < mapping->count; i++)
		host->taken[mapping->pages[i]] = 0;
	host->free_count += mapping->count;
	vmm_list_remove(&mapping->link);
	mapping->instance->host = NULL;
	vmm_free(mapping);
}

void vmm_host_unmap(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_host_mapping *mapping = instance->host;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!mapping))
		return;
	const DXGKARG_UNMAPCPUHOSTAPERTURE args = {
		.NumberOfPages = mapping->count,
		.pCpuHostAperturePages = mapping->pages,
		.SegmentId = instance->segment,
	};

	/* A failed Unmap counts as done: the pages cannot be unmapped in another way. */
	(void)!vmm_ok(vmm_port_unmap_host_aperture(memory->adapter->port, &args));
	end_mapping(vmm_memory_segment(memory, instance->segment)->host, mapping);
}

void vmm_host_unmap_soon(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!instance->host))
		return;
	instance->host->unwanted = memory->host_unwanted = true;
}

void vmm_host_unmap_unwanted(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!memory->host_unwanted))
		return;
	memory->host_unwanted = false;
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		struct vmm_list *link, *next;

		if (!memory->segment[i].host)
			continue;
		vmm_list_for_each_safe (link, next, &memory->segment[i].host->mapped) {
			struct vmm_host_mapping *mapping =
				vmm_container_of(link, struct vmm_host_mapping, link);

			if (mapping->unwanted)
				vmm_host_unmap(memory, mapping->instance);
		}
	}
}

/*
 * Unmaps unlocked mappings until `count` pages are free. Returns false, and changes nothing, if
 * that is not possible.
 */
static bool free_pages(struct vmm_memory *memory, struct vmm_host_aperture *host, uint32_t count)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t available = host->free_count;
	struct vmm_list *link, *next;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (link, &host->mapped) {
		const struct vmm_host_mapping *mapping =
			vmm_container_of(link, struct vmm_host_mapping, link);

		available += vmm_locks(mapping->instance) ? 0 : mapping->count;
	}
	if (available < count)
		return false;
	vmm_list_for_each_safe (link, next, &host->mapped) {
		struct vmm_instance *instance =
			vmm_container_of(link, struct vmm_host_mapping, link)->instance;

		if (host->free_count >= count)
			break;
		if (vmm_locks(instance))
			continue;
		vmm_view_unmap(instance);
		vmm_host_unmap(memory, instance);
	}
	return true;
}

/* Takes the lowest free pages of the aperture, so that runs are long. */
static void take_pages(struct vmm_host_aperture *host, struct vmm_host_mapping *mapping)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < mapping->count; i++) {
		while (host->taken[at])
			at++;
		host->taken[at] = 1;
		mapping->pages[i] = at;
	}
	host->free_count -= mapping->count;
	vmm_list_push_back(&host->mapped, &mapping->link);
}

static vmm_status ask_miniport(struct vmm_memory *memory, const struct vmm_instance *instance,
			       struct vmm_host_mapping *mapping)
{
	const DXGKARG_MAPCPUHOSTAPERTURE args = {
		.hAllocation = instance->allocation->kmd_allocation,
		.SegmentId = instance->segment,
		.NumberOfPages = mapping->count,
		.pCpuHostAperturePages = mapping->pages,
		.pMemorySegmentPages = mapping->segment_pages,
	};
	NTSTATUS status = vmm_port_map_host_aperture(memory->adapter->port, &args);

	if (status == STATUS_SUCCESS)
		return VMM_OK;
	if (status != STATUS_DEVICE_REMOVED)
		vmm_reason(
			memory->adapter->observe, status, instance->allocation->owner,
			instance->handle,
			"SWZ-29: DxgkDdiMapCpuHostAperture of %u pages of segment %u failed with "
			"0x%08x: 0x%08x is locked in system memory",
			mapping->count, instance->segment, (unsigned)status, instance->handle);
	return VMM_NO_VIDEO_MEMORY;
}

/* Extents begin and end with pages of the segment. */
static uint64_t segment_page(const struct vmm_instance *instance, uint64_t page_bytes, uint32_t i)
{
	return vmm_extent_of(instance->extents, instance->offset, i * page_bytes, UINT64_MAX)
		       .offset /
	       page_bytes;
}

static struct vmm_host_mapping *new_mapping(struct vmm_instance *instance, uint64_t page_bytes,
					    uint32_t count) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_host_mapping *mapping =
		vmm_calloc(1, sizeof(*mapping) + count * (sizeof(uint64_t) + sizeof(uint32_t)));

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (!mapping)
		return NULL;
	mapping->instance = instance;
	mapping->count = count;
	mapping->pages = (uint32_t *)(void *)&mapping->segment_pages[count];
	for (uint32_t i = 0; i < count; i++)
		mapping->segment_pages[i] = segment_page(instance, page_bytes, i);
	return mapping;
}

vmm_status vmm_host_map(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_host_aperture *host = vmm_memory_segment(memory, instance->segment)->host;
	uint64_t count;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!host))
		return VMM_NO_VIDEO_MEMORY;
	if (instance->host) {
		vmm_list_remove(&instance->host->link);
		vmm_list_push_back(&host->mapped, &instance->host->link);
		instance->host->unwanted = false;
		return VMM_OK;
	}
	count = vmm_align_up(instance->allocation->size_bytes, host->page_bytes) / host->page_bytes;
	if (count > host->page_count || !free_pages(memory, host, (uint32_t)count))
		return VMM_NO_VIDEO_MEMORY;
	struct vmm_host_mapping *mapping = new_mapping(instance, host->page_bytes, (uint32_t)count);
	if (!mapping)
		return VMM_NO_VIDEO_MEMORY;
	take_pages(host, mapping);
	vmm_status status = overlay_pages(host, mapping);
	if (vmm_ok(status))
		status = ask_miniport(memory, instance, mapping);
	if (vmm_ok(status))
		instance->host = mapping;
	else
		end_mapping(host, mapping);
	return status;
}

vmm_status vmm_host_map_view(struct vmm_memory *memory, struct vmm_instance *instance)
{
	const struct vmm_host_aperture *host = vmm_memory_segment(memory, instance->segment)->host;
	const struct vmm_host_mapping *mapping = instance->host;
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(mapping);
	for (uint32_t i = 0; i < mapping->count && vmm_ok(status);) {
		struct host_run run = run_of(host, mapping, i);

		status = vmm_os_view_map(&instance->view, i * host->page_bytes, host->bar, run.from,
					 run.length);
		i = run.end;
	}
	return status;
}

void vmm_host_aperture_check(const struct vmm_segment *segment)
{
	const struct vmm_host_aperture *host = segment->host;
	const struct vmm_list *link;
	uint32_t taken = 0;

	if (!host)
		return;
	vmm_list_for_each (link, &host->mapped) {
		const struct vmm_host_mapping *mapping =
			vmm_container_of(link, struct vmm_host_mapping, link);
		const struct vmm_instance *instance = mapping->instance;

		vmm_assert(instance->host == mapping && instance->place == VMM_PLACEMENT_MEMORY &&
			   instance->segment == segment->port->id);
		for (uint32_t i = 0; i < mapping->count; i++)
			vmm_assert(host->taken[mapping->pages[i]] &&
				   mapping->segment_pages[i] ==
					   segment_page(instance, host->page_bytes, i));
		taken += mapping->count;
	}
	vmm_assert(taken + host->free_count == host->page_count);
}
