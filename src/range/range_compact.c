/* SPDX-License-Identifier: MIT */
/*
 * Compaction: finds the window with the least bytes to move, and allocates new places for the
 * ranges in it. A new place is always free space, so a copy never overlaps its source. The caller
 * copies, frees the old places, and then has the hole.
 */
#include "range/range_internal.h"

#define WINDOWS 32u

/* A candidate window, in granules: [start, start + size of the request), and what would move. */
struct window {
	uint32_t first; /* the node that contains `start` */
	uint32_t start, bytes, ranges;
};

struct search {
	struct vmm_range_heap *heap;
	struct vmm_range_compaction *compaction;
	uint32_t size, low, high, alignment;
	struct window best[WINDOWS]; /* cheapest first */
	uint32_t count;
	/* parts of holes in the window being tried, allocated to keep them free of moves */
	uint32_t blocked[VMM_RANGE_MOVES_MAX + 1];
	uint32_t blocked_count;
};

static uint32_t end_of(const struct vmm_range_heap *heap, uint32_t node)
{
	return heap->places[node].start + size_of(&heap->places[node]);
}

static bool may_move(const struct search *search, uint32_t node, struct vmm_range_request *request)
{
	void *owner = search->heap->links[BIN_COUNT + node].owner;

	return owner && search->compaction->may_move(search->compaction->context, owner, request);
}

static void keep(struct search *search, const struct window *window)
{
	uint32_t at = search->count;

	if (at < WINDOWS)
		search->count++;
	else if (window->bytes >= search->best[--at].bytes)
		return;
	for (; at > 0 && search->best[at - 1].bytes > window->bytes; at--)
		search->best[at] = search->best[at - 1];
	search->best[at] = *window;
}

/*
 * Finds candidate windows, each of which begins where a node does. That suffices: a window moved
 * down to the beginning of its first node, and of the hole below that, costs no more.
 */
static void find_windows(struct search *search)
{
	const struct vmm_range_heap *heap = search->heap;
	struct vmm_range_request ignored;
	uint32_t end = heap->places[RING].next; /* the node after the window's last one */
	struct window window = {0};

	for (uint32_t first = end; first != RING; first = heap->places[first].next) {
		uint64_t start = vmm_align_up(vmm_max_u64(heap->places[first].start, search->low),
					      search->alignment);

		if (end == first)
			window.bytes = window.ranges = 0;
		while (end != RING && heap->places[end].start < start + search->size &&
		       (is_hole(heap, end) || may_move(search, end, &ignored))) {
			window.bytes += is_hole(heap, end) ? 0 : size_of(&heap->places[end]);
			window.ranges += !is_hole(heap, end);
			end = heap->places[end].next;
		}
		window.first = first;
		window.start = (uint32_t)start;
		if (start < end_of(heap, first) && start + search->size <= search->high &&
		    start + search->size <= heap->places[end].start &&
		    window.ranges <= VMM_RANGE_MOVES_MAX)
			keep(search, &window);
		if (end == first)
			end = heap->places[first].next; /* this range cannot move */
		else if (!is_hole(heap, first)) {
			window.bytes -= size_of(&heap->places[first]);
			window.ranges--;
		}
	}
}

static void note_move(struct search *search, uint32_t node)
{
	struct vmm_range_compaction *plan = search->compaction;
	uint32_t at = plan->moves++, size = size_of(&search->heap->places[node]);

	for (; at > 0 && size_of(&search->heap->places[plan->move[at - 1].from]) < size; at--)
		plan->move[at] = plan->move[at - 1];
	plan->move[at] = (struct vmm_range_move){.from = node, .to = NONE};
	plan->bytes += (uint64_t)size << search->heap->granule_shift;
}

/*
 * Allocates the free parts of the window, so that no range moves there, and notes its live ranges,
 * the largest first.
 */
static bool enter(struct search *search, const struct window *window)
{
	struct vmm_range_heap *heap = search->heap;
	uint32_t window_end = window->start + search->size;

	for (uint32_t node = window->first; heap->places[node].start < window_end;
	     node = heap->places[node].next) {
		uint32_t low = heap->places[node].start, high = end_of(heap, node);

		if (!is_hole(heap, node)) {
			note_move(search, node);
			continue;
		}
		low = low > window->start ? low : window->start;
		high = high < window_end ? high : window_end;
		node = vmm_range_take_part(heap, node, low, high - low);
		if (node == NONE)
			return false;
		search->blocked[search->blocked_count++] = node;
	}
	return true;
}

static void leave(struct search *search)
{
	while (search->blocked_count)
		vmm_range_free(search->heap, search->blocked[--search->blocked_count]);
}

static bool place_all(struct search *search)
{
	struct vmm_range_compaction *plan = search->compaction;

	for (uint32_t i = 0; i < plan->moves; i++) {
		struct vmm_range_move *move = &plan->move[i];
		struct vmm_range_request request = {0};
		uint64_t offset;

		if (!may_move(search, move->from, &request))
			return false;
		request.size_bytes = vmm_range_size(search->heap, move->from);
		request.owner = vmm_range_owner(search->heap, move->from);
		if (vmm_range_allocate(search->heap, &request, &move->to, &offset) != VMM_OK)
			return false;
	}
	return true;
}

void vmm_range_compaction_undo(struct vmm_range_heap *heap, struct vmm_range_compaction *plan)
{
	for (uint32_t i = 0; i < plan->moves; i++)
		if (plan->move[i].to != NONE)
			vmm_range_free(heap, plan->move[i].to);
	plan->moves = 0;
	plan->bytes = 0;
}

static bool try_window(struct search *search, const struct window *window)
{
	bool good = enter(search, window) && place_all(search);

	leave(search);
	if (!good)
		vmm_range_compaction_undo(search->heap, search->compaction);
	return good;
}

vmm_status vmm_range_plan_compaction(struct vmm_range_heap *heap,
				     const struct vmm_range_request *request,
				     struct vmm_range_compaction *plan)
{
	struct search search = {.heap = heap, .compaction = plan};
	uint64_t units = request->size_bytes >> heap->granule_shift;
	struct limits limits;

	plan->moves = 0;
	plan->bytes = 0;
	if (units > heap->free_units || !vmm_range_limits(heap, request, &limits))
		return VMM_NO_VIDEO_MEMORY;
	search.size = (uint32_t)units;
	search.low = limits.low;
	search.high = limits.high;
	search.alignment = limits.alignment;
	find_windows(&search);
	for (uint32_t i = 0; i < search.count; i++) {
		if (!try_window(&search, &search.best[i]))
			continue;
		plan->offset = (uint64_t)search.best[i].start << heap->granule_shift;
		return VMM_OK;
	}
	return VMM_NO_VIDEO_MEMORY;
}
