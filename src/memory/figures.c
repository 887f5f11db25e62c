/* SPDX-License-Identifier: MIT */
/*
 * What an adapter says of its memory. Counts only rise, so whoever wants those of a while takes a difference; of a peak there is none. So a process that
 * looks again and again has a peak of its own, since it last looked. What sees the bytes come keeps one peak, since anybody last looked; whoever looks adds it
 * to everybody's.
 */
#include "memory/memory_private.h"

struct looker {
	struct vmm_list link;
	uint32_t process;
	struct vmm_peaks peaks; /* since it last looked; without those that nobody has added yet */
};

static void raise_peaks(struct vmm_peaks *peaks, const struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->segment_count; i++)
		peaks->segment_bytes[i] =
			vmm_max_u64(peaks->segment_bytes[i], memory->segment[i].peak_bytes);
	peaks->total_bytes = vmm_max_u64(peaks->total_bytes, memory->peak_total);
	peaks->system_bytes = vmm_max_u64(peaks->system_bytes, memory->peak_system_bytes);
}

/* They begin again with what is there now. Paging lock held. */
static void add_peaks(struct vmm_memory *memory)
{
	struct vmm_list *at;

	raise_peaks(&memory->looks.before, memory);
	vmm_list_for_each (at, &memory->looks.lookers)
		raise_peaks(&vmm_container_of(at, struct looker, link)->peaks, memory);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		memory->segment[i].peak_bytes = memory->segment[i].resident_bytes;
	memory->peak_total = memory->resident_total;
	memory->peak_system_bytes = memory->system_bytes;
}

static struct looker *find(const struct vmm_memory *memory, uint32_t process)
{
	struct vmm_list *at;

	vmm_list_for_each (at, &memory->looks.lookers) {
		struct looker *looker = vmm_container_of(at, struct looker, link);

		if (looker->process == process)
			return looker;
	}
	return NULL;
}

/* What it is told, and from where it goes on. Paging lock held. */
static vmm_status look(struct vmm_memory *memory, uint32_t process, struct vmm_peaks *peaks)
{
	struct looker *looker = find(memory, process);

	add_peaks(memory);
	if (!looker) {
		looker = vmm_calloc(1, sizeof(*looker));
		if (!looker)
			return VMM_NO_MEMORY;
		looker->process = process;
		looker->peaks = memory->looks.before;
		vmm_list_push_back(&memory->looks.lookers, &looker->link);
	}
	*peaks = looker->peaks;
	looker->peaks = (struct vmm_peaks){0};
	return VMM_OK;
}

static void fill(const struct vmm_memory *memory, const struct vmm_peaks *peaks,
		 struct vmm_memory_figures *figures)
{
	*figures = memory->figures;
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		figures->resident_bytes[i] = memory->segment[i].resident_bytes;
		figures->peak_bytes[i] = peaks->segment_bytes[i];
		figures->residents[i] = memory->segment[i].residents;
	}
	figures->peak_total_bytes = peaks->total_bytes;
	figures->peak_system_bytes = peaks->system_bytes;
	figures->dedicated_video_bytes = memory->dedicated_video_bytes;
	figures->dedicated_system_bytes = memory->dedicated_system_bytes;
	figures->shared_system_bytes = memory->shared_system_bytes;
	figures->mapped_bytes = memory->mapped_bytes;
	figures->system_bytes = memory->system_bytes;
	figures->allocations = memory->adapter->allocation_count;
	figures->instances = memory->instances;
}

void vmm_memory_figures(struct vmm_adapter *adapter, struct vmm_memory_figures *figures)
{
	vmm_os_mutex_lock(&adapter->paging_lock);
	struct vmm_peaks peaks = adapter->memory->looks.before;

	raise_peaks(&peaks, adapter->memory);
	fill(adapter->memory, &peaks, figures);
	vmm_os_mutex_unlock(&adapter->paging_lock);
	adapter->memory->engine->kick(adapter);
}

vmm_status vmm_memory_figures_of(struct vmm_adapter *adapter, uint32_t process,
				 struct vmm_memory_figures *figures)
{
	struct vmm_peaks peaks;

	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_status status = look(adapter->memory, process, &peaks);
	if (vmm_ok(status))
		fill(adapter->memory, &peaks, figures);
	vmm_os_mutex_unlock(&adapter->paging_lock);
	adapter->memory->engine->kick(adapter);
	return status;
}

static void forget(struct looker *looker)
{
	vmm_list_remove(&looker->link);
	vmm_free(looker);
}

void vmm_memory_forget_looker(struct vmm_adapter *adapter, uint32_t process)
{
	vmm_os_mutex_lock(&adapter->paging_lock);
	struct looker *looker = find(adapter->memory, process);
	if (looker)
		forget(looker);
	vmm_os_mutex_unlock(&adapter->paging_lock);
	adapter->memory->engine->kick(adapter);
}

void vmm_lookers_finish(struct vmm_memory *memory)
{
	struct vmm_list *at, *next;

	vmm_list_for_each_safe (at, next, &memory->looks.lookers)
		forget(vmm_container_of(at, struct looker, link));
}
