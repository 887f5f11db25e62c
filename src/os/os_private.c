/* SPDX-License-Identifier: MIT */
/*
 * Private objects: memfds that lie over ranges of a memory object's permanent mapping, because a descriptor can neither be cut
 * to a range nor taken back. A table by pages says which lies where; it is made with the first one of an object.
 *
 * Each costs a descriptor and, where it is mapped, up to two more mappings. What lies somewhere stays there when it is not used any
 * more: its owner may come again, and then it costs nothing. One that has had to give way is spare: its owner may have it
 * elsewhere, which costs a mapping, where a new one costs the kernel a page to find and to zero for each page.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* So many objects over one memory object; beyond, what nobody uses goes. */
#define KEPT_MAX  1024u
/* So many spare ones, with no more pages than the memory object has. */
#define SPARE_MAX 512u

/* What is in what is laid: zeroes, whatever its owner had, or what was at that place. */
enum content { NEW, ANY, CARRIED };

struct vmm_os_private {
	struct vmm_list link; /* in one of the record's lists */
	uint64_t owner;       /* 0: it has gone */
	uint64_t size;        /* pages that it has */
	uint64_t first;       /* page of the memory object that its first one lies over */
	uint64_t end;         /* first page behind it, as it was laid */
	uint64_t pages;       /* that it still lies over */
	uint64_t used;        /* pages, by what was laid and has not left */
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

static uint64_t owner_of(const struct vmm_os_private *o)
{
	return o ? o->owner : 0;
}

/* 0: there is none; of one whose owner has gone it is somebody who never comes. */
static uint64_t owner_of_any(const struct vmm_os_private *o)
{
	return o && !o->owner ? UINT64_MAX : owner_of(o);
}

/* From which page on another object lies there, or none; at most `end`. */
static uint64_t end_of_run(const struct vmm_os_memory_record *record, uint64_t page, uint64_t end)
{
	const struct vmm_os_private *o = record->over[page];

	while (page < end && record->over[page] == o)
		page++;
	return page;
}

static void destroy(struct vmm_os_private *o)
{
	close(o->fd);
	vmm_free(o);
}

static void remove_spare(struct vmm_os_memory_record *record, struct vmm_os_private *o)
{
	vmm_list_remove(&o->link);
	record->spare_count--;
	record->spare_pages -= o->size;
}

static void destroy_spare(struct vmm_os_memory_record *record, struct vmm_os_private *o)
{
	remove_spare(record, o);
	destroy(o);
}

/* The oldest go. */
static void keep_spare(struct vmm_os_memory_record *record, struct vmm_os_private *o)
{
	vmm_list_push_back(&record->spares, &o->link);
	record->spare_count++;
	record->spare_pages += o->size;
	while (record->spare_count > SPARE_MAX ||
	       record->spare_pages > record->size_bytes / VMM_PAGE_SIZE)
		destroy_spare(record,
			      vmm_container_of(record->spares.next, struct vmm_os_private, link));
}

/* Of the right size, the one that gave way last; or one that is not much too large. */
static struct vmm_os_private *take_spare(struct vmm_os_memory_record *record, uint64_t owner,
					 uint64_t pages)
{
	struct vmm_os_private *found = NULL;
	struct vmm_list *link;

	vmm_list_for_each (link, &record->spares) {
		struct vmm_os_private *o = vmm_container_of(link, struct vmm_os_private, link);

		if (o->owner == owner && o->size >= pages && o->size - pages <= pages / 8 &&
		    (!found || o->size <= found->size))
			found = o;
	}
	if (found)
		remove_spare(record, found);
	return found;
}

/* It lies over that many pages less. */
static void lose(struct vmm_os_memory_record *record, struct vmm_os_private *o, uint64_t pages)
{
	o->pages -= pages;
	if (o->pages)
		return;
	vmm_list_remove(&o->link);
	record->private_count--;
	if (o->owner && record->spares_of_use)
		keep_spare(record, o);
	else
		destroy(o);
}

static void uncover(const struct vmm_os_memory *memory, uint64_t page, uint64_t end)
{
	struct vmm_os_memory_record *record = memory->record;
	uint64_t offset = page * VMM_PAGE_SIZE, length = (end - page) * VMM_PAGE_SIZE;
	/*
	 * It replaces a mapping by what surrounds it, which needs no further one; out of memory for the kernel's own records
	 * there is nothing that could be done instead.
	 */
	char *at = vmm_os_map_over(memory->base + offset, length, memory->fd, offset, 0);

	vmm_assert(at);
	/* As the whole object is, or the kernel would keep it apart from its neighbours. */
	if (memory->size_bytes >= VMM_OS_HUGE_PAGE)
		(void)madvise(at, length, MADV_HUGEPAGE);
	while (page < end) {
		struct vmm_os_private *o = record->over[page];
		uint64_t next = end_of_run(record, page, end);

		for (uint64_t i = page; i < next; i++)
			record->over[i] = NULL;
		lose(record, o, next - page);
		page = next;
	}
}

void vmm_os_private_take(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE;

	if (!record->private_count)
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

/* What is at that page and behind it goes into the object. */
static bool fill(const struct vmm_os_memory *memory, const struct vmm_os_private *o,
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

static bool cover(const struct vmm_os_memory *memory, struct vmm_os_private *o, uint32_t how)
{
	struct vmm_os_memory_record *record = memory->record;
	uint64_t length = o->pages * VMM_PAGE_SIZE, page = o->first;

	if (!vmm_os_map_over(memory->base + o->first * VMM_PAGE_SIZE, length, o->fd, 0, how))
		return false;
	while (page < o->end) {
		struct vmm_os_private *before = record->over[page];
		uint64_t next = end_of_run(record, page, o->end);

		for (uint64_t i = page; i < next; i++)
			record->over[i] = o;
		if (before)
			lose(record, before, next - page);
		page = next;
	}
	vmm_list_push_back(&record->privates, &o->link);
	record->private_count++;
	return true;
}

static struct vmm_os_private *create(uint64_t owner, uint64_t pages)
{
	struct vmm_os_private *o = vmm_calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->owner = owner;
	o->size = pages;
	if (vmm_ok(vmm_os_open_object("vidmm private", pages * VMM_PAGE_SIZE, &o->fd))) {
		if (vmm_os_seal_size(o->fd))
			return o;
		close(o->fd);
	}
	vmm_free(o);
	return NULL;
}

static bool lay(const struct vmm_os_memory *memory, uint64_t page, uint64_t end, uint64_t owner,
		enum content content)
{
	struct vmm_os_private *o =
		content == ANY ? take_spare(memory->record, owner, end - page) : NULL;
	/* A spare one's pages are there, and most will be written. */
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
	if ((content == CARRIED && !fill(memory, o, length)) || !cover(memory, o, how)) {
		destroy(o);
		return false;
	}
	if (content == CARRIED)
		vmm_os_memory_discard(memory, page * VMM_PAGE_SIZE, length);
	return true;
}

static void count(const struct vmm_os_memory *memory, uint64_t page, uint64_t end, bool used)
{
	const struct vmm_os_memory_record *record = memory->record;

	while (page < end) {
		struct vmm_os_private *o = record->over[page];
		uint64_t next = end_of_run(record, page, end);

		vmm_assert(o && (used || o->used >= next - page));
		o->used += used ? next - page : page - next;
		page = next;
	}
}

static vmm_status lay_range(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			    uint64_t owner, enum content content, bool *fresh)
{
	struct vmm_os_memory_record *record = memory->record;
	uint64_t first = offset / VMM_PAGE_SIZE, end = first + length / VMM_PAGE_SIZE, next;
	bool all = true;

	vmm_assert(owner && length && (offset | length) % VMM_PAGE_SIZE == 0);
	vmm_assert(offset <= memory->size_bytes && length <= memory->size_bytes - offset);
	if (!make_table(record))
		return VMM_NO_MEMORY;
	record->spares_of_use |= content == ANY;
	for (uint64_t page = first; page < end; page = next) {
		bool own = owner_of(record->over[page]) == owner;

		for (next = page + 1; next < end && (owner_of(record->over[next]) == owner) == own;)
			next++;
		if (!own && !lay(memory, page, next, owner, content))
			return VMM_NO_MEMORY;
		all &= !own;
	}
	count(memory, first, end, true);
	*fresh = all;
	return VMM_OK;
}

vmm_status vmm_os_private_lay(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			      uint64_t owner, bool *fresh)
{
	bool all;

	return lay_range(memory, offset, length, owner, fresh ? NEW : ANY, fresh ? fresh : &all);
}

vmm_status vmm_os_private_carry(const struct vmm_os_memory *memory, uint64_t offset,
				uint64_t length, uint64_t owner)
{
	bool fresh;

	return lay_range(memory, offset, length, owner, CARRIED, &fresh);
}

uint64_t vmm_os_private_run(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			    uint64_t owner, bool *is)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE,
		 end = page + vmm_align_up(length, VMM_PAGE_SIZE) / VMM_PAGE_SIZE;

	if (!record->private_count) {
		*is = record->owner == owner;
		return length;
	}
	*is = owner_of_any(record->over[page]) == owner;
	while (++page < end && (owner_of_any(record->over[page]) == owner) == *is)
		;
	return page == end ? length : page * VMM_PAGE_SIZE - offset;
}

bool vmm_os_private_is_of(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			  uint64_t owner)
{
	bool is;

	return vmm_os_private_run(memory, offset, length, owner, &is) == length && is;
}

/* All of it is somewhere between its first page and its end, also where others lie over it. */
static void take_all(const struct vmm_os_memory *memory, struct vmm_os_private *o)
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

static bool is_surplus(const struct vmm_os_memory *memory, const struct vmm_os_private *o)
{
	return !o->owner || memory->record->private_count > KEPT_MAX;
}

bool vmm_os_private_is_surplus(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length)
{
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE;

	for (; page < end; page = end_of_run(memory->record, page, end))
		if (is_surplus(memory, memory->record->over[page]))
			return true;
	return false;
}

void vmm_os_private_leave(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			  bool may_go)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE, next;

	count(memory, page, end, false);
	for (; page < end; page = next) {
		struct vmm_os_private *o = record->over[page];

		next = end_of_run(record, page, end);
		if (may_go && o && !o->used && is_surplus(memory, o))
			take_all(memory, o);
	}
}

void vmm_os_private_end(const struct vmm_os_memory *memory, uint64_t owner)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &memory->record->privates) {
		struct vmm_os_private *o = vmm_container_of(link, struct vmm_os_private, link);

		if (o->owner != owner)
			continue;
		o->owner = 0;
		if (!o->used)
			take_all(memory, o);
	}
	vmm_list_for_each_safe (link, next, &memory->record->spares) {
		struct vmm_os_private *o = vmm_container_of(link, struct vmm_os_private, link);

		if (o->owner == owner)
			destroy_spare(memory->record, o);
	}
}

void vmm_os_private_finish(struct vmm_os_memory_record *record)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &record->privates) {
		struct vmm_os_private *o = vmm_container_of(link, struct vmm_os_private, link);

		vmm_assert(!o->used);
		lose(record, o, o->pages);
	}
	vmm_list_for_each_safe (link, next, &record->spares)
		destroy_spare(record, vmm_container_of(link, struct vmm_os_private, link));
	vmm_free(record->over);
}

uint64_t vmm_os_find_shown(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			   uint64_t owner, int *fd, uint64_t *at)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE;

	if (record->whole || (record->owner && record->owner == owner)) {
		*fd = memory->fd;
		*at = offset;
		return length;
	}
	vmm_assert(record->over);
	const struct vmm_os_private *o = record->over[page];

	/* Anything else is somebody else's, too. */
	vmm_assert(o && o->owner == owner);
	*fd = o->fd;
	*at = offset - o->first * VMM_PAGE_SIZE;
	return (end_of_run(record, page, page + length / VMM_PAGE_SIZE) - page) * VMM_PAGE_SIZE;
}
