/* SPDX-License-Identifier: MIT */
/* GPU work: words written and bytes copied, in two contexts, each with separate allocations. */
#include "random.h"

#include <string.h>

#define TOGETHER_BYTES (80u * KIB) /* fits beside pinned and locked allocations */
#define COMMANDS_MAX   5u

struct work {
	struct random *r;
	struct client_context *context;
	struct item *item[LISTED_MAX];
	uint32_t count, bytes, commands;
	bool held; /* one of them is locked: the submission may be refused (LKR) */
};

/*
 * Returns whether the GPU may use the allocation: for reading and writing or, if it is locked,
 * without access.
 */
static bool may_use(const struct random *r, const struct item *item)
{
	if (!item->handle || item->offered || item->lost)
		return false;
	return !r->wddm2 || (item->listed && (item->spec.flags & PHYSICAL)); /* DMA-27 */
}

static void choose(struct work *w)
{
	struct random *r = w->r;
	uint32_t first = draw(r, ITEMS), wish = 1 + draw(r, LISTED_MAX);

	for (uint32_t i = 0; i < ITEMS && w->count < wish; i++) {
		struct item *item = &r->item[(first + i) % ITEMS];

		if (random_home(r, item) != w->context || !may_use(r, item) ||
		    w->bytes + item->bytes > TOGETHER_BYTES)
			continue;
		if (item->data && (draw(r, 4) || w->held))
			continue;
		w->held |= item->data != NULL;
		w->bytes += item->bytes;
		w->item[w->count++] = item;
	}
}

static uint32_t words_of(struct random *r, const struct item *item)
{
	return draw(r, item->bytes / 4);
}

/* `after`: the content that every allocation of the list has after the commands. */
static void put_command(struct work *w, unsigned char *after[LISTED_MAX])
{
	struct random *r = w->r;
	uint32_t to = draw(r, w->count), from = draw(r, w->count);
	struct item *target = w->item[to], *source = w->item[from];
	struct scripted_command command = {.size_bytes = sizeof(command),
					   .slot = 2 * w->commands++,
					   .offset = 4 * words_of(r, target),
					   .value = draw(r, UINT32_MAX),
					   .split = draw(r, 2)};

	if (target->data) { /* it is locked */
		command.op = SCRIPTED_USE;
		command.allocation = client_use(w->context, target->handle, false);
	} else if (from == to || source->data || !random_is_kept(r, source) || draw(r, 2)) {
		command.op = SCRIPTED_WRITE;
		command.allocation = client_use(w->context, target->handle, true);
		memcpy(after[to] + command.offset, &command.value, 4);
	} else {
		uint32_t limit = target->bytes < source->bytes ? target->bytes : source->bytes;

		command.op = SCRIPTED_COPY;
		command.count = 1 + draw(r, limit);
		command.offset = draw(r, target->bytes - (uint32_t)command.count + 1);
		command.source.address = draw(r, source->bytes - (uint32_t)command.count + 1);
		command.source.segment = client_use(w->context, source->handle, false);
		command.allocation = client_use(w->context, target->handle, true);
		memmove(after[to] + command.offset, after[from] + command.source.address,
			command.count);
	}
	world_command(w->context, &command);
}

/*
 * Draws DoNotRetireInstance and, from 1.2 up to 2.0, an offer that takes effect when the buffer is
 * complete. (OFR-10)
 */
static void set_list_flags(struct work *w, uint32_t offered[LISTED_MAX])
{
	struct random *r = w->r;
	bool offers = !r->wddm2 && r->version >= DXGKDDI_INTERFACE_VERSION_WIN8;

	for (uint32_t i = 0; i < w->count; i++) {
		struct item *item = w->item[i];
		D3DDDI_ALLOCATIONLIST *entry =
			&w->context->c.pAllocationList[client_use(w->context, item->handle, false)];

		if (!r->wddm2 && draw(r, 8) == 0)
			entry->DoNotRetireInstance = 1;
		if (offers && !item->data && !(item->spec.flags & PINNED) && draw(r, 16) == 0)
			entry->OfferPriority = offered[i] = 1 + draw(r, 4);
	}
}

static bool submit(struct work *w)
{
	static const HRESULT none[] = {S_OK},
			     locked[] = {D3DDDIERR_CANTRENDERLOCKEDALLOCATION, S_OK};
	D3DDDICB_RENDER args = world_render_args(w->context);

	return random_expect(w->r, RANDOM_RENDER, w->item[0], world_render(w->context, &args),
			     w->held && !w->r->wddm2 ? locked : none);
}

void random_render(struct random *r)
{
	static unsigned char room[LISTED_MAX][PAGES_MAX * PAGE_BYTES];
	unsigned char *after[LISTED_MAX];
	uint32_t offered[LISTED_MAX] = {0};
	struct work w = {.r = r, .context = draw(r, 2) ? &r->second : &r->w.context};

	r->what = "render";
	choose(&w);
	if (!w.count)
		return;
	for (uint32_t i = 0; i < w.count; i++) {
		after[i] = room[i];
		memcpy(after[i], w.item[i]->model, w.item[i]->bytes);
	}
	for (uint32_t i = 1 + draw(r, COMMANDS_MAX); i; i--)
		put_command(&w, after);
	set_list_flags(&w, offered);
	if (!submit(&w))
		return;
	for (uint32_t i = 0; i < w.count; i++) {
		memcpy(w.item[i]->model, after[i], w.item[i]->bytes);
		w.item[i]->written = true;
		w.item[i]->offered |= offered[i] != 0;
		r->done[RANDOM_OFFER] += offered[i] != 0;
	}
}

/* ---- allocations that the CPU cannot access ---- */

static bool make_resident(struct random *r, D3DKMT_HANDLE handle)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = r->queue.hPagingQueue,
				    .NumAllocations = 1,
				    .AllocationList = &handle};
	HRESULT result = r->w.device.cb->pfnMakeResidentCb(r->w.device.handle, &args);

	return result == S_OK || result == E_PENDING;
}

static void evict(struct random *r, D3DKMT_HANDLE handle)
{
	D3DDDICB_EVICT args = {.NumAllocations = 1, .AllocationList = &handle};

	assert_int_equal(r->w.device.cb->pfnEvictCb(r->w.device.handle, &args), S_OK);
}

static void copy_and_compare(struct random *r, struct item *item, D3DKMT_HANDLE copy)
{
	struct client_context *context = random_home(r, item);
	struct scripted_command command = {.op = SCRIPTED_COPY,
					   .size_bytes = sizeof(command),
					   .count = item->bytes,
					   .source.segment =
						   client_use(context, item->handle, false),
					   .allocation = client_use(context, copy, true)};
	static const HRESULT none[] = {S_OK};

	world_command(context, &command);
	D3DDDICB_RENDER args = world_render_args(context);
	random_expect(r, RANDOM_COMPARE_BY_COPY, item, world_render(context, &args), none);
	if (r->wddm2) /* from 2.0 on no lock waits for the GPU */
		random_idle(r);
	random_compare(r, item, client_lock(&r->w.device, copy, READ_ONLY), 0, item->bytes);
	assert_int_equal(client_unlock(&r->w.device, copy), S_OK);
}

void random_compare_by_copy(struct random *r, struct item *item)
{
	struct scripted_allocation spec = {.size_bytes = item->bytes,
					   .flags = CPU_VISIBLE,
					   .read_set = MEMORY | APERTURE,
					   .write_set = MEMORY | APERTURE};
	bool listed = item->listed;

	r->what = "comparison by a copy";
	if (!r->wddm2) {
		D3DKMT_HANDLE copy = world_allocate_as(&r->w.device, &spec);

		copy_and_compare(r, item, copy);
		assert_int_equal(client_deallocate(&r->w.device, copy), S_OK);
		return;
	}
	if (!(item->spec.flags & PHYSICAL) || !random_is_kept(r, item) ||
	    (!listed && (!random_may_list(r, item->bytes) || !make_resident(r, item->handle))))
		return;
	spec.flags |= PHYSICAL;
	D3DKMT_HANDLE copy = world_allocate_as(&r->w.device, &spec);
	if (make_resident(r, copy))
		copy_and_compare(r, item, copy);
	assert_int_equal(client_deallocate(&r->w.device, copy), S_OK);
	if (!listed)
		evict(r, item->handle);
}
