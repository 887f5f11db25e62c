/* SPDX-License-Identifier: MIT */
/*
 * The residency list. What a submission uses is made resident before it. If the budget does not
 * allow that, the driver evicts what was used least recently, and asks again. When only the memory
 * of the submission is left, it asks with CantTrimFurther: the memory manager then decides what is
 * in video memory.
 */
#include "grow.h"
#include "umd_wddm2.h"

#define CANT_TRIM_FURTHER       0x1u
#define EVICT_ONLY_IF_NECESSARY 0x1u
#define NOT_WRITTEN_TO          0x2u

static void unlink_memory(struct umd_wddm2 *wddm2, struct umd_memory *memory)
{
	if (memory->older)
		memory->older->newer = memory->newer;
	else
		wddm2->oldest = memory->newer;
	if (memory->newer)
		memory->newer->older = memory->older;
	else
		wddm2->newest = memory->older;
	memory->older = memory->newer = NULL;
}

static void link_newest(struct umd_wddm2 *wddm2, struct umd_memory *memory)
{
	memory->older = wddm2->newest;
	if (wddm2->newest)
		wddm2->newest->newer = memory;
	else
		wddm2->oldest = memory;
	wddm2->newest = memory;
}

static bool add_handle(struct umd_wddm2 *wddm2, D3DKMT_HANDLE handle)
{
	if (!grow_array((void **)&wddm2->handles, &wddm2->handle_capacity, wddm2->handle_count,
			sizeof(*wddm2->handles)))
		return false;
	wddm2->handles[wddm2->handle_count++] = handle;
	return true;
}

/* ---- eviction ---- */

static enum replay_status evict(struct umd *umd, UINT flags)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	D3DDDICB_EVICT args = {
		.NumAllocations = wddm2->handle_count,
		.AllocationList = wddm2->handles,
		.Flags.Value = flags,
	};
	HRESULT hr;

	if (!wddm2->handle_count)
		return REPLAY_CLEAN;
	umd->world->result->driver.trimmed += wddm2->handle_count;
	hr = umd->callbacks->pfnEvictCb(umd->handle, &args);
	return FAILED(hr) ? umd_failed(umd, "pfnEvictCb", NULL, hr) : REPLAY_CLEAN;
}

/* Evicts what is older than END and was written, or was not: the flag is about a whole list. */
static enum replay_status evict_older(struct umd *umd, const struct umd_memory *end, bool written)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	struct umd_memory *memory, *newer;

	wddm2->handle_count = 0;
	for (memory = wddm2->oldest; memory != end; memory = newer) {
		newer = memory->newer;
		if (memory->written != written)
			continue;
		if (!add_handle(wddm2, memory->handle))
			return umd_no_memory(umd);
		unlink_memory(wddm2, memory);
		memory->resident = false;
	}
	return evict(umd, EVICT_ONLY_IF_NECESSARY | (written ? 0 : NOT_WRITTEN_TO));
}

/*
 * Evicts at least that many bytes, if the current submission leaves so many. *DONE is false if
 * nothing was left to evict.
 */
static enum replay_status trim(struct umd *umd, uint64_t bytes, bool *done)
{
	const struct umd_wddm2 *wddm2 = umd->wddm2;
	const struct umd_memory *end = wddm2->oldest;
	enum replay_status status;
	uint64_t sum = 0;

	while (end && sum < bytes && end->submission != wddm2->submission) {
		sum += end->size_bytes;
		end = end->newer;
	}
	*done = end != wddm2->oldest;
	status = evict_older(umd, end, false);
	return status == REPLAY_CLEAN ? evict_older(umd, end, true) : status;
}

/* ---- MakeResident ---- */

/* *TRIM_BYTES is not 0 if the budget does not allow it; then nothing has changed. */
static enum replay_status try_make_resident(struct umd *umd, const D3DKMT_HANDLE *handles,
					    uint32_t count, UINT flags, uint64_t *trim_bytes)
{
	D3DDDI_MAKERESIDENT args = {
		.hPagingQueue = umd->wddm2->queue.hPagingQueue,
		.NumAllocations = count,
		.AllocationList = handles,
		.Flags.Value = flags,
	};
	HRESULT hr = umd->callbacks->pfnMakeResidentCb(umd->handle, &args);

	*trim_bytes = 0;
	if (hr == E_OUTOFMEMORY && args.NumBytesToTrim && !flags) {
		*trim_bytes = args.NumBytesToTrim;
		return REPLAY_CLEAN;
	}
	if (FAILED(hr) && hr != E_PENDING)
		return umd_failed(umd, "pfnMakeResidentCb", NULL, hr);
	umd_wait_for_paging(umd, args.PagingFenceValue);
	return REPLAY_CLEAN;
}

enum replay_status umd_residency_pin(struct umd *umd, const struct umd_memory *memory)
{
	uint64_t trim_bytes;
	enum replay_status status =
		try_make_resident(umd, &memory->handle, 1, CANT_TRIM_FURTHER, &trim_bytes);

	return status;
}

static enum replay_status list_missing(struct umd *umd, const struct umd_slot *slots,
				       uint32_t count)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	uint32_t i;

	wddm2->handle_count = 0;
	for (i = 0; i < count; i++)
		if (!slots[i].memory->resident && !add_handle(wddm2, slots[i].memory->handle))
			return umd_no_memory(umd);
	return REPLAY_CLEAN;
}

static enum replay_status make_missing_resident(struct umd *umd, const struct umd_slot *slots,
						uint32_t count)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	UINT flags = 0;
	uint64_t trim_bytes;

	for (;;) {
		enum replay_status status = list_missing(umd, slots, count);
		bool trimmed;

		if (status != REPLAY_CLEAN || !wddm2->handle_count)
			return status;
		status = try_make_resident(umd, wddm2->handles, wddm2->handle_count, flags,
					   &trim_bytes);
		if (status != REPLAY_CLEAN || !trim_bytes)
			return status;
		status = trim(umd, trim_bytes, &trimmed);
		if (status != REPLAY_CLEAN)
			return status;
		if (!trimmed) {
			flags = CANT_TRIM_FURTHER;
			umd->world->result->driver.over_budget++;
		}
	}
}

enum replay_status umd_residency_prepare(struct umd *umd, const struct umd_slot *slots,
					 uint32_t count)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	enum replay_status status;
	uint32_t i;

	wddm2->submission++;
	for (i = 0; i < count; i++) {
		struct umd_memory *memory = slots[i].memory;

		memory->submission = wddm2->submission;
		if (!memory->resident)
			continue;
		unlink_memory(wddm2, memory);
		link_newest(wddm2, memory);
	}
	status = make_missing_resident(umd, slots, count);
	for (i = 0; i < count && status == REPLAY_CLEAN; i++) {
		struct umd_memory *memory = slots[i].memory;

		if (!memory->resident) {
			link_newest(wddm2, memory);
			memory->resident = true;
			memory->written = false;
		}
		memory->written |= slots[i].list_value != 0;
	}
	return status;
}

void umd_residency_forget(struct umd *umd, struct umd_memory *memory)
{
	if (memory->resident)
		unlink_memory(umd->wddm2, memory);
	memory->resident = false;
}
