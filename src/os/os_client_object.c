/* SPDX-License-Identifier: MIT */
/*
 * Client objects: memfds that are mapped over ranges of a memory object's permanent mapping,
 * because a descriptor can neither be restricted to a range nor revoked. A table indexed by page
 * records which object covers which page; it is allocated with the first client object of a memory
 * object.
 *
 * Each client object costs a descriptor and, where it is mapped, up to two more mappings. An unused
 * object stays mapped: if its owner uses the range again, that costs nothing. An object that was
 * displaced by another becomes a spare. Its owner may get it at another range, which costs one
 * mapping. A new object instead costs the kernel the allocation and zeroing of every page.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maximum number of client objects over one memory object; above it, unused ones are removed. */
#define MAPPED_MAX 1024u
/* Maximum number of spares; they have at most as many pages as the memory object. */
#define SPARE_MAX  512u

/*
 * Content of newly mapped objects: zeros, whatever the owner's spare has, or a copy of the range.
 */
enum content { ZEROED, ANY, COPIED };

struct vmm_os_client_object {
	struct vmm_list link; /* in the record's client_objects or spares */
	uint64_t owner;       /* 0: the owner has gone */
	uint64_t size;        /* in pages */
	uint64_t first;       /* first page of the memory object that it was mapped over */
	uint64_t end;         /* end of the range that it was mapped over, exclusive */
	uint64_t pages;       /* pages that it still covers */
	uint64_t used;        /* pages in use: covered and not released */
	int fd;
};

uint64_t vmm_os_viewer_owner(struct vmm_os_viewer *viewer)
{
	static _Atomic uint64_t last;
	uint64_t known = atomic_load(&viewer->owner), number;

	if (vmm_likely(known))
		return known;
	number = atomic_fetch_add(&last, 1) + 1;
	return atomic_compare_exchange_strong(&viewer->owner, &known, number) ? number : known;
}

static bool make_table(struct vmm_os_memory_record *record)
{
	if (!record->over)
		record->over =
			vmm_calloc(record->size_bytes / VMM_PAGE_SIZE, sizeof(*record->over));
	return record->over;
}

static uint64_t owner_of(const struct vmm_os_client_object *o)
{
	return o ? o->owner : 0;
}

/*
 * Like owner_of, but returns UINT64_MAX for an object whose owner has gone: no viewer has that
 * number, and 0 would mean that there is no object.
 */
static uint64_t owner_of_any(const struct vmm_os_client_object *o)
{
	return o && !o->owner ? UINT64_MAX : owner_of(o);
}

/*
 * Returns the page at which the run of pages covered by one object (or by none) ends; at most
 * `end`.
 */
static uint64_t end_of_run(const struct vmm_os_memory_record *record, uint64_t page, uint64_t end)
{
	const struct vmm_os_client_object *o = record->over[page];

	while (page < end && record->over[page] == o)
		page++;
	return page;
}

static void destroy(struct vmm_os_client_object *o)
{
	close(o->fd);
	vmm_free(o);
}

static void remove_spare(struct vmm_os_memory_record *record, struct vmm_os_client_object *o)
{
	vmm_list_remove(&o->link);
	record->spare_count--;
	record->spare_pages -= o->size;
}

static void destroy_spare(struct vmm_os_memory_record *record, struct vmm_os_client_object *o)
{
	remove_spare(record, o);
	destroy(o);
}

/* Keeps an object as a spare and destroys the oldest spares beyond the limits. */
static void keep_spare(struct vmm_os_memory_record *record, struct vmm_os_client_object *o)
{
	vmm_list_push_back(&record->spares, &o->link);
	record->spare_count++;
	record->spare_pages += o->size;
	while (record->spare_count > SPARE_MAX ||
	       record->spare_pages > record->size_bytes / VMM_PAGE_SIZE)
		destroy_spare(record, vmm_container_of(record->spares.next,
						       struct vmm_os_client_object, link));
}

/*
 * Takes the smallest spare that fits and is at most one eighth too large; among equals the newest.
 */
static struct vmm_os_client_object *take_spare(struct vmm_os_memory_record *record, uint64_t owner,
					       uint64_t pages)
{
	struct vmm_os_client_object *found = NULL;
	struct vmm_list *link;

	vmm_list_for_each (link, &record->spares) {
		struct vmm_os_client_object *o =
			vmm_container_of(link, struct vmm_os_client_object, link);

		if (o->owner == owner && o->size >= pages && o->size - pages <= pages / 8 &&
		    (!found || o->size <= found->size))
			found = o;
	}
	if (found)
		remove_spare(record, found);
	return found;
}

/* Uncovers pages of an object; one that covers none becomes a spare or is destroyed. */
static void remove_pages(struct vmm_os_memory_record *record, struct vmm_os_client_object *o,
			 uint64_t pages)
{
	o->pages -= pages;
	if (o->pages)
		return;
	vmm_list_remove(&o->link);
	record->client_object_count--;
	if (o->owner && record->spares_usable)
		keep_spare(record, o);
	else
		destroy(o);
}

static void uncover(const struct vmm_os_memory *memory, uint64_t page, uint64_t end)
{
	struct vmm_os_memory_record *record = memory->record;
	uint64_t offset = page * VMM_PAGE_SIZE, length = (end - page) * VMM_PAGE_SIZE;
	/*
	 * This mapping merges with its neighbors, so it needs no further one. It fails only if the
	 * kernel lacks memory for its own records, and then no other action is possible.
	 */
	char *at = vmm_os_map_over(memory->base + offset, length, memory->fd, offset, 0);

	vmm_assert(at);
	/*
	 * Same advice as for the whole object, or the kernel would not merge the mapping with its
	 * neighbors.
	 */
	if (memory->size_bytes >= VMM_OS_HUGE_PAGE)
		(void)madvise(at, length, MADV_HUGEPAGE);
	while (page < end) {
		struct vmm_os_client_object *o = record->over[page];
		uint64_t next = end_of_run(record, page, end);

		for (uint64_t i = page; i < next; i++)
			record->over[i] = NULL;
		remove_pages(record, o, next - page);
		page = next;
	}
}

void vmm_os_client_object_uncover(const struct vmm_os_memory *memory, uint64_t offset,
				  uint64_t length)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE;

	if (!record->client_object_count)
		return;
	while (page < end) {
		uint64_t next = page;

		while (next < end && record->over[next])
			next++;
		if (next > page)
			uncover(memory, page, next);
		page = next + 1;
	}
}

/* Copies the range's present content into the object. */
static bool copy_content(const struct vmm_os_memory *memory, const struct vmm_os_client_object *o,
			 uint64_t length)
{
	const char *from = memory->base + o->first * VMM_PAGE_SIZE;
	ssize_t part;

	for (uint64_t done = 0; done < length; done += (uint64_t)part) {
		part = pwrite(o->fd, from + done, length - done, (off_t)done);
		if (part <= 0)
			return false;
	}
	return true;
}

static bool cover(const struct vmm_os_memory *memory, struct vmm_os_client_object *o, uint32_t how)
{
	struct vmm_os_memory_record *record = memory->record;
	uint64_t length = o->pages * VMM_PAGE_SIZE, page = o->first;

	if (!vmm_os_map_over(memory->base + o->first * VMM_PAGE_SIZE, length, o->fd, 0, how))
		return false;
	while (page < o->end) {
		struct vmm_os_client_object *before = record->over[page];
		uint64_t next = end_of_run(record, page, o->end);

		for (uint64_t i = page; i < next; i++)
			record->over[i] = o;
		if (before)
			remove_pages(record, before, next - page);
		page = next;
	}
	vmm_list_push_back(&record->client_objects, &o->link);
	record->client_object_count++;
	return true;
}

static struct vmm_os_client_object *create(uint64_t owner, uint64_t pages)
{
	struct vmm_os_client_object *o = vmm_calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->owner = owner;
	o->size = pages;
	if (vmm_ok(vmm_os_open_object("vidmm client object", pages * VMM_PAGE_SIZE, &o->fd))) {
		if (vmm_os_seal_size(o->fd))
			return o;
		close(o->fd);
	}
	vmm_free(o);
	return NULL;
}

static bool cover_run(const struct vmm_os_memory *memory, uint64_t page, uint64_t end,
		      uint64_t owner, enum content content)
{
	struct vmm_os_client_object *o =
		content == ANY ? take_spare(memory->record, owner, end - page) : NULL;
	/* A spare's pages exist, and most will be written: map them all at once. */
	uint32_t how = o ? VMM_OS_MAP_POPULATE : 0;
	uint64_t length = (end - page) * VMM_PAGE_SIZE;

	if (!o)
		o = create(owner, end - page);
	if (!o)
		return false;
	o->first = page;
	o->end = end;
	o->pages = end - page;
	o->used = 0;
	if ((content == COPIED && !copy_content(memory, o, length)) || !cover(memory, o, how)) {
		destroy(o);
		return false;
	}
	if (content == COPIED)
		vmm_os_memory_discard(memory, page * VMM_PAGE_SIZE, length);
	return true;
}

static void count_use(const struct vmm_os_memory *memory, uint64_t page, uint64_t end, bool used)
{
	const struct vmm_os_memory_record *record = memory->record;

	while (page < end) {
		struct vmm_os_client_object *o = record->over[page];
		uint64_t next = end_of_run(record, page, end);

		vmm_assert(o && (used || o->used >= next - page));
		o->used += used ? next - page : page - next;
		page = next;
	}
}

static vmm_status cover_range(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			      uint64_t owner, enum content content, bool *fresh)
{
	struct vmm_os_memory_record *record = memory->record;
	uint64_t first = offset / VMM_PAGE_SIZE, end = first + length / VMM_PAGE_SIZE, next;
	bool all = true;

	vmm_assert(owner && length && (offset | length) % VMM_PAGE_SIZE == 0);
	vmm_assert(offset <= memory->size_bytes && length <= memory->size_bytes - offset);
	if (!make_table(record))
		return VMM_NO_MEMORY;
	record->spares_usable |= content == ANY;
	for (uint64_t page = first; page < end; page = next) {
		bool own = owner_of(record->over[page]) == owner;

		for (next = page + 1; next < end && (owner_of(record->over[next]) == owner) == own;)
			next++;
		if (!own && !cover_run(memory, page, next, owner, content))
			return VMM_NO_MEMORY;
		all &= !own;
	}
	count_use(memory, first, end, true);
	*fresh = all;
	return VMM_OK;
}

vmm_status vmm_os_client_object_cover(const struct vmm_os_memory *memory, uint64_t offset,
				      uint64_t length, uint64_t owner, bool *fresh)
{
	bool all;

	return cover_range(memory, offset, length, owner, fresh ? ZEROED : ANY,
			   fresh ? fresh : &all);
}

vmm_status vmm_os_client_object_cover_with_content(const struct vmm_os_memory *memory,
						   uint64_t offset, uint64_t length, uint64_t owner)
{
	bool fresh;

	return cover_range(memory, offset, length, owner, COPIED, &fresh);
}

uint64_t vmm_os_client_object_owner_run(const struct vmm_os_memory *memory, uint64_t offset,
					uint64_t length, uint64_t owner, bool *is)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE,
		 end = page + vmm_align_up(length, VMM_PAGE_SIZE) / VMM_PAGE_SIZE;

	if (!record->client_object_count) {
		*is = record->owner == owner;
		return length;
	}
	*is = owner_of_any(record->over[page]) == owner;
	while (++page < end && (owner_of_any(record->over[page]) == owner) == *is)
		;
	return page == end ? length : page * VMM_PAGE_SIZE - offset;
}

bool vmm_os_client_object_is_owned_by(const struct vmm_os_memory *memory, uint64_t offset,
				      uint64_t length, uint64_t owner)
{
	bool is;

	return vmm_os_client_object_owner_run(memory, offset, length, owner, &is) == length && is;
}

/*
 * Uncovers all pages of an object: all lie in [first, end), where other objects may cover some
 * pages.
 */
static void uncover_all(const struct vmm_os_memory *memory, struct vmm_os_client_object *o)
{
	uint64_t end = o->end, next;

	for (uint64_t page = o->first; page < end; page = next) {
		next = end_of_run(memory->record, page, end);
		if (memory->record->over[page] != o)
			continue;
		bool last = o->pages == next - page;

		uncover(memory, page, next);
		if (last)
			return;
	}
}

static bool is_surplus(const struct vmm_os_memory *memory, const struct vmm_os_client_object *o)
{
	return !o->owner || memory->record->client_object_count > MAPPED_MAX;
}

bool vmm_os_client_object_is_surplus(const struct vmm_os_memory *memory, uint64_t offset,
				     uint64_t length)
{
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE;

	for (; page < end; page = end_of_run(memory->record, page, end))
		if (is_surplus(memory, memory->record->over[page]))
			return true;
	return false;
}

void vmm_os_client_object_release(const struct vmm_os_memory *memory, uint64_t offset,
				  uint64_t length, bool may_remove)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE, next;

	count_use(memory, page, end, false);
	for (; page < end; page = next) {
		struct vmm_os_client_object *o = record->over[page];

		next = end_of_run(record, page, end);
		if (may_remove && o && !o->used && is_surplus(memory, o))
			uncover_all(memory, o);
	}
}

void vmm_os_client_object_end_owner(const struct vmm_os_memory *memory, uint64_t owner)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &memory->record->client_objects) {
		struct vmm_os_client_object *o =
			vmm_container_of(link, struct vmm_os_client_object, link);

		if (o->owner != owner)
			continue;
		o->owner = 0;
		if (!o->used)
			uncover_all(memory, o);
	}
	vmm_list_for_each_safe (link, next, &memory->record->spares) {
		struct vmm_os_client_object *o =
			vmm_container_of(link, struct vmm_os_client_object, link);

		if (o->owner == owner)
			destroy_spare(memory->record, o);
	}
}

void vmm_os_client_object_finish(struct vmm_os_memory_record *record)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &record->client_objects) {
		struct vmm_os_client_object *o =
			vmm_container_of(link, struct vmm_os_client_object, link);

		vmm_assert(!o->used);
		remove_pages(record, o, o->pages);
	}
	vmm_list_for_each_safe (link, next, &record->spares)
		destroy_spare(record, vmm_container_of(link, struct vmm_os_client_object, link));
	vmm_free(record->over);
}

uint64_t vmm_os_find_visible(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			     uint64_t owner, int *fd, uint64_t *at)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE;

	if (record->shareable || (record->owner && record->owner == owner)) {
		*fd = memory->fd;
		*at = offset;
		return length;
	}
	vmm_assert(record->over);
	const struct vmm_os_client_object *o = record->over[page];

	/* Any other object is another owner's. */
	vmm_assert(o && o->owner == owner);
	*fd = o->fd;
	*at = offset - o->first * VMM_PAGE_SIZE;
	return (end_of_run(record, page, page + length / VMM_PAGE_SIZE) - page) * VMM_PAGE_SIZE;
}
