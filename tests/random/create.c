/* SPDX-License-Identifier: MIT */
/* Creates and ends allocations with random legal properties. */
#include "random.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES (8u * KIB)
#define PINNED_MAX  2u

/*
 * Returns the flags with which an allocation is pinned, or has a swizzling range from its creation
 * on.
 */
static uint32_t stay_of(const struct random *r)
{
	return PINNED | (r->wddm2 ? 0u : ALTERNATE);
}

static uint32_t count_pinned(const struct random *r)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ITEMS; i++)
		count += r->item[i].handle && (r->item[i].spec.flags & stay_of(r));
	return count;
}

static uint32_t draw_flags(struct random *r)
{
	uint32_t flags = draw(r, 4) ? CPU_VISIBLE : 0, rare = PINNED | EXISTING | EXISTING_KERNEL;

	if (r->wddm2 && draw(r, 4))
		flags |= PHYSICAL;
	for (uint32_t bit = 1; bit <= r->known && bit; bit <<= 1)
		if ((bit & r->known) && draw(r, bit & rare ? 24 : 7) == 0)
			flags |= bit;
	return flags;
}

static void draw_spec(struct random *r, struct item *item)
{
	struct scripted_allocation *s = &item->spec;

	*s = (struct scripted_allocation){
		.size_bytes = (1 + draw(r, PAGES_MAX)) * PAGE_BYTES,
		.alignment = draw(r, 3) ? 0 : PAGE_BYTES << draw(r, 3),
		.read_set = 1 + draw(r, 7),
		.renaming_limit = r->wddm2 ? 0 : draw(r, 4),
		.priority = draw(r, 3) ? 0 : 0x28000000u + draw(r, 0xA0000000u),
		.flags = draw_flags(r),
	};
	s->write_set = s->read_set;
	if (draw(r, 4) == 0) /* the GPU may write in fewer places than it may read */
		s->write_set = (s->read_set & (1 + draw(r, 7))) ? s->read_set & (1 + draw(r, 7))
								: s->read_set;
	if (!s->write_set)
		s->write_set = s->read_set;
	item->primary = draw(r, 8) == 0;
	if (item->primary) /* a display reads it, in the segments of the write set (ALF-31) */
		s->read_set = s->write_set;
	if (!r->wddm2 && (s->flags & ALTERNATE)) /* swizzling ranges are in segment 1 */
		s->read_set = s->write_set = MEMORY;
	if (s->flags & PINNED) {
		s->size_bytes = PAGE_BYTES << draw(r, 2);
		s->read_set = s->write_set = draw(r, 2) ? MEMORY : HIDDEN;
	}
	if ((s->flags & (EXISTING | EXISTING_KERNEL)) == 0 && draw(r, 3) == 0)
		s->eviction_set = APERTURE;
	if (draw(r, 3) == 0)
		s->preferred = (uint32_t)__builtin_ctz(r->wddm2 ? s->write_set : s->read_set) + 1;
	item->bytes = (uint32_t)s->size_bytes;
}

struct flags_case random_case(const struct random *r, const struct item *item)
{
	const struct scripted_allocation *s = &item->spec;
	return (struct flags_case){
		.version = r->version,
		.flags = s->flags,
		.primary = item->primary,
		.memory = s->flags & EXISTING,
		.kernel_memory = s->flags & EXISTING_KERNEL,
		.aperture = s->write_set & APERTURE,
		.hidden = s->write_set & HIDDEN,
		.coherent = r->coherent,
		.ranges = r->ranges,
		.map_aperture2 = r->lists,
		.vpr = r->vpr && (s->write_set & MEMORY),
	};
}

static void draw_legal(struct random *r, struct item *item)
{
	char rules[128];
	struct flags_case c;

	do {
		draw_spec(r, item);
		c = random_case(r, item);
	} while (flags_judge(&c, rules) != FLAGS_GOOD ||
		 ((item->spec.flags & stay_of(r)) && count_pinned(r) >= PINNED_MAX));
}

/* Initializes the model: zero, or the content of existing memory. */
static void fill(struct random *r, struct item *item)
{
	item->model = calloc(1, item->bytes);
	assert_non_null(item->model);
	if (item->spec.flags & EXISTING_KERNEL)
		item->own = ExAllocatePool2(POOL_FLAG_NON_PAGED, item->bytes, 0x646e6152u);
	else if (item->spec.flags & EXISTING)
		item->own = aligned_alloc(PAGE_BYTES, item->bytes);
	else
		return;
	assert_non_null(item->own);
	random_scribble(r, item, item->own, 0, item->bytes);
}

static struct item *empty(struct random *r)
{
	for (uint32_t i = 0; i < ITEMS; i++)
		if (!r->item[i].handle)
			return &r->item[i];
	return NULL;
}

void random_create(struct random *r)
{
	/*
	 * A pinned allocation, and a primary with an alternate address, is placed at once or not
	 * created.
	 */
	static const HRESULT no_room[] = {D3DERR_OUTOFVIDEOMEMORY, S_OK}, none[] = {S_OK};
	struct item *item = empty(r);
	bool placed;

	if (!item) {
		random_destroy(r, random_item(r));
		return;
	}
	r->what = "create";
	draw_legal(r, item);
	item->lock_flags = NO_LOCK;
	item->resource = draw(r, 6) == 0 ? item : NULL;
	fill(r, item);
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &item->spec,
				      .PrivateDriverDataSize = sizeof(item->spec),
				      .pSystemMem = item->own,
				      .Flags.Primary = item->primary};
	D3DDDICB_ALLOCATE args = {
		.hResource = item->resource, .NumAllocations = 1, .pAllocationInfo = &info};

	placed = (item->spec.flags & PINNED) || (!r->wddm2 && (item->spec.flags & ALTERNATE));
	HRESULT result = r->w.device.cb->pfnAllocateCb(r->w.device.handle, &args);
	if (random_expect(r, RANDOM_CREATE, item, result, placed ? no_room : none)) {
		item->handle = info.hAllocation;
		r->properties |= item->spec.flags;
		return;
	}
	random_forget(item);
}

static HRESULT deallocate(struct random *r, HANDLE resource, const D3DKMT_HANDLE *handle,
			  uint32_t flags)
{
	D3DDDICB_DEALLOCATE args = {
		.hResource = resource, .NumAllocations = handle ? 1 : 0, .HandleList = handle};
	D3DDDICB_DEALLOCATE2 args2 = {.hResource = resource,
				      .NumAllocations = handle ? 1 : 0,
				      .HandleList = handle,
				      .Flags.Value = flags};

	return flags ? r->w.device.cb->pfnDeallocate2Cb(r->w.device.handle, &args2)
		     : r->w.device.cb->pfnDeallocateCb(r->w.device.handle, &args);
}

void random_destroy(struct random *r, struct item *item)
{
	static const HRESULT none[] = {S_OK};
	uint32_t flags = r->wddm2 ? draw(r, 4) : 0; /* AssumeNotInUse, SynchronousDestroy */
	bool by_resource = item->resource && draw(r, 2);

	r->what = "destroy";
	if (flags & 1) /* which the client must ensure (ALF-37) */
		random_idle(r);
	random_expect(r, RANDOM_DESTROY, item,
		      deallocate(r, by_resource ? item->resource : NULL,
				 by_resource ? NULL : &item->handle, flags),
		      none);
	if (item->resource && !by_resource)
		assert_int_equal(deallocate(r, item->resource, NULL, 0), S_OK);
	if (item->own && !item->lost && !item->offered && random_is_kept(r, item)) /* ALF-13 */
		random_compare(r, item, item->own, 0, item->bytes);
	random_forget(item);
}
