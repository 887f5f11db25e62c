/* SPDX-License-Identifier: MIT */
/*
 * Adapter memory statistics. Counters are monotonic: callers subtract two samples to
 * measure an interval. Peaks cannot be subtracted, so each process that reads repeatedly has its
 * own peaks, which cover the time since its last read.
 *
 * The code that adds bytes maintains only one set of peaks, since the last read by any process.
 * Each read folds that set into the peaks of every reader.
 */
#include "memory/calls/calls.h"

struct peak_reader {
	struct vmm_list link;
	uint32_t process;
	/* since its last read; excludes peaks that no read has collected yet */
	struct vmm_peaks peaks;
};

static void raise_peaks(struct vmm_peaks *peaks, const struct vmm_memory *memory)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		peaks->segment_bytes[i] =
			vmm_max_u64(peaks->segment_bytes[i], memory->segment[i].peak_bytes);
	peaks->total_bytes = vmm_max_u64(peaks->total_bytes, memory->peak_total);
	peaks->system_bytes = vmm_max_u64(peaks->system_bytes, memory->peak_system_bytes);
}

/*
 * Folds the current peaks into those of all readers and restarts them at the present usage. Caller
 * holds the paging lock.
 */
static void collect_peaks(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *at;

	vmm_assert_held(&memory->adapter->paging_lock);
	raise_peaks(&memory->peaks.since_start, memory);
	vmm_list_for_each (at, &memory->peaks.readers)
		raise_peaks(&vmm_container_of(at, struct peak_reader, link)->peaks, memory);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		memory->segment[i].peak_bytes = memory->segment[i].resident_bytes;
	memory->peak_total = memory->resident_total;
	memory->peak_system_bytes = memory->system_bytes;
}

static struct peak_reader *find_reader(const struct vmm_memory *memory, uint32_t process)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *at;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (at, &memory->peaks.readers) {
		struct peak_reader *peak_reader = vmm_container_of(at, struct peak_reader, link);

		if (peak_reader->process == process)
			return peak_reader;
	}
	return NULL;
}

/*
 * Returns the process's peaks since its last read and restarts them. Caller holds the paging lock.
 */
static vmm_status read_peaks(struct vmm_memory *memory, uint32_t process, struct vmm_peaks *peaks)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct peak_reader *peak_reader = find_reader(memory, process);

	vmm_assert_held(&memory->adapter->paging_lock);
	collect_peaks(memory);
	if (!peak_reader) {
		peak_reader = vmm_calloc(1, sizeof(*peak_reader));
		if (!peak_reader)
			return VMM_NO_MEMORY;
		peak_reader->process = process;
		peak_reader->peaks = memory->peaks.since_start;
		vmm_list_push_back(&memory->peaks.readers, &peak_reader->link);
	}
	*peaks = peak_reader->peaks;
	peak_reader->peaks = (struct vmm_peaks){0};
	return VMM_OK;
}

/* The parts by cause add up to the totals. */
static void check_causes(const struct vmm_memory_statistics *statistics)
{
	const struct vmm_memory_tallies *tallies = &statistics->tallies;
	uint64_t in = 0, out = tallies->aperture_evictions;

	for (uint32_t i = 0; i < VMM_CAUSE_COUNT; i++) {
		in += tallies->paged_in_bytes[i];
		out += tallies->memory_evictions[i];
	}
	vmm_assert(in == statistics->bytes_paged_in && out == statistics->evictions);
}

/* */
static void fill_causes(struct vmm_memory_statistics *statistics)
{
	const uint64_t *in = statistics->tallies.paged_in_bytes;
	const uint64_t *out = statistics->tallies.memory_evictions;

	statistics->bytes_paged_in_first = in[VMM_CAUSE_FIRST];
	statistics->bytes_paged_in_capacity = in[VMM_CAUSE_CAPACITY];
	statistics->bytes_paged_in_fragmentation = in[VMM_CAUSE_FRAGMENTATION];
	statistics->bytes_paged_in_lock = in[VMM_CAUSE_LOCK];
	statistics->bytes_paged_in_trim = in[VMM_CAUSE_TRIM];
	statistics->bytes_paged_in_other = in[VMM_CAUSE_OTHER];
	statistics->evictions_aperture = statistics->tallies.aperture_evictions;
	statistics->evictions_capacity = out[VMM_CAUSE_CAPACITY];
	statistics->evictions_fragmentation = out[VMM_CAUSE_FRAGMENTATION];
	statistics->evictions_lock = out[VMM_CAUSE_LOCK];
	statistics->evictions_trim = out[VMM_CAUSE_TRIM];
	statistics->evictions_other = out[VMM_CAUSE_OTHER];
}

static void fill(const struct vmm_memory *memory, const struct vmm_peaks *peaks,
		 struct vmm_memory_statistics *statistics) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(memory->statistics.evictions == memory->statistics.tallies.evictions.count);
	check_causes(&memory->statistics);
	*statistics = memory->statistics;
	fill_causes(statistics);
	statistics->segment_count = memory->segment_count;
	statistics->tallies.created.count = atomic_load(&memory->created_count);
	statistics->tallies.created.bytes = atomic_load(&memory->created_bytes);
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		statistics->resident_bytes[i] = memory->segment[i].resident_bytes;
		statistics->peak_bytes[i] = peaks->segment_bytes[i];
		statistics->residents[i] = memory->segment[i].residents;
	}
	statistics->peak_resident_bytes = peaks->total_bytes;
	statistics->peak_system_bytes = peaks->system_bytes;
	statistics->dedicated_video_bytes = memory->dedicated_video_bytes;
	statistics->dedicated_system_bytes = memory->dedicated_system_bytes;
	statistics->shared_system_bytes = memory->shared_system_bytes;
	statistics->mapped_bytes = memory->mapped_bytes;
	statistics->system_bytes = memory->system_bytes;
	statistics->allocations = memory->adapter->allocation_count;
	statistics->instances = memory->instances;
}

void vmm_memory_statistics(struct vmm_adapter *adapter, struct vmm_memory_statistics *statistics)
{
	vmm_paging_lock(adapter);
	struct vmm_peaks peaks = adapter->memory->peaks.since_start;

	raise_peaks(&peaks, adapter->memory);
	fill(adapter->memory, &peaks, statistics);
	vmm_paging_unlock_idle(adapter);
}

vmm_status vmm_memory_statistics_of(struct vmm_adapter *adapter, uint32_t process,
				    struct vmm_memory_statistics *statistics)
{
	struct vmm_peaks peaks;

	vmm_paging_lock(adapter);
	vmm_status status = read_peaks(adapter->memory, process, &peaks);
	if (vmm_ok(status))
		fill(adapter->memory, &peaks, statistics);
	vmm_paging_unlock_idle(adapter);
	return status;
}

static void forget(struct peak_reader *peak_reader)
{
	vmm_list_remove(&peak_reader->link);
	vmm_free(peak_reader);
}

void vmm_memory_forget_peak_reader(struct vmm_adapter *adapter, uint32_t process)
{
	vmm_paging_lock(adapter);
	struct peak_reader *peak_reader = find_reader(adapter->memory, process);
	if (peak_reader)
		forget(peak_reader);
	vmm_paging_unlock_idle(adapter);
}

void vmm_peak_readers_finish(struct vmm_memory *memory)
{
	struct vmm_list *at, *next;

	vmm_list_for_each_safe (at, next, &memory->peaks.readers)
		forget(vmm_container_of(at, struct peak_reader, link));
}
