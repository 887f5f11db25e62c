/* SPDX-License-Identifier: MIT */
/*
 * Client objects: memfds that are mapped over ranges of a memory object's permanent mapping,
 * because a descriptor can neither be restricted to a range nor revoked. A table indexed by page
 * records which object covers which page; it is allocated with the first client object of a memory
 * object.
 *
 * An owner has one client object for a memory object. It is as large as the memory object, and each
 * page of it covers the page at the same offset only. So an owner costs one descriptor, whatever it
 * places where, and neighboring ranges of one owner are one mapping. Only pages that were used have
 * memory.
 *
 * A page that an owner no longer uses stays covered: if the owner uses it again, that costs
 * nothing. A page that was covered by another owner's meanwhile is stale. It keeps its memory,
 * which saves the kernel the allocation and zeroing of a page, until there are too many such pages.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"
#include "os/os_share.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maximum number of covered ranges of a memory object; above it, unused ones are uncovered. */
#define RANGES_MAX 1024u

/* Content of newly covered pages: zeros, whatever the stale pages have, or a copy of the range. */
enum content { ZEROED, ANY, COPIED };

struct vmm_os_client_object {
	struct vmm_list link; /* in the record's client_objects */
	uint64_t owner;       /* 0: the owner has gone */
	uint64_t covered;     /* pages that it covers */
	uint64_t stale;       /* pages that it no longer covers and that may have memory */
	int fd;
	uint8_t touched[]; /* a bit for each page that may have memory */
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

static uint64_t pages_of(const struct vmm_os_memory_record *record)
{
	return record->size_bytes / VMM_PAGE_SIZE;
}

static bool make_tables(struct vmm_os_memory_record *record)
{
	if (!record->over)
		record->over = vmm_calloc(pages_of(record), sizeof(*record->over));
	if (!record->uses)
		record->uses = vmm_calloc(pages_of(record), sizeof(*record->uses));
	return record->over && record->uses;
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

/* Returns the page at which the run of pages with the same state of use ends; at most `end`. */
static uint64_t end_of_use(const struct vmm_os_memory_record *record, uint64_t page, uint64_t end)
{
	bool used = record->uses[page];

	while (page < end && (record->uses[page] != 0) == used)
		page++;
	return page;
}

/* ---- pages of an object ---- */

static bool is_touched(const struct vmm_os_client_object *o, uint64_t page)
{
	return o->touched[page / 8] >> page % 8 & 1;
}

/* Gives the memory of pages back, which the object does not cover. Returns false if it cannot. */
static bool empty(struct vmm_os_memory_record *record, struct vmm_os_client_object *o,
		  uint64_t page, uint64_t end)
{
	uint64_t stale = 0;

	for (uint64_t i = page; i < end; i++)
		stale += is_touched(o, i);
	if (!stale)
		return true;
	if (fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)(page * VMM_PAGE_SIZE), (off_t)((end - page) * VMM_PAGE_SIZE)))
		return false;
	for (uint64_t i = page; i < end; i++)
		o->touched[i / 8] &= (uint8_t) ~(1u << i % 8);
	o->stale -= stale;
	record->stale -= stale;
	return true;
}

/* Gives the memory of all pages back that the object does not cover. */
static void empty_all(struct vmm_os_memory_record *record, struct vmm_os_client_object *o)
{
	uint64_t end = pages_of(record), next;

	for (uint64_t page = 0; page < end && o->stale; page = next) {
		next = end_of_run(record, page, end);
		if (record->over[page] != o)
			(void)empty(record, o, page, next);
	}
}

/* Limits the stale pages of all owners together to the pages of the memory object. */
static void limit_stale(struct vmm_os_memory_record *record)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &record->client_objects) {
		struct vmm_os_client_object *o =
			vmm_container_of(link, struct vmm_os_client_object, link);

		if (record->stale <= pages_of(record))
			return;
		if (o->owner)
			empty_all(record, o);
	}
}

static void destroy(struct vmm_os_memory_record *record, struct vmm_os_client_object *o)
{
	record->stale -= o->stale;
	vmm_list_remove(&o->link);
	vmm_os_close_charged(o->fd);
	vmm_free(o);
}

/* The object covers these pages from now on. */
static void add_pages(struct vmm_os_memory_record *record, struct vmm_os_client_object *o,
		      uint64_t page, uint64_t end)
{
	o->covered += end - page;
	for (; page < end; page++) {
		if (is_touched(o, page)) {
			o->stale--;
			record->stale--;
		}
		o->touched[page / 8] |= (uint8_t)(1u << page % 8);
	}
}

/* The object covers these pages no longer. One whose owner has gone ends with its last page. */
static void remove_pages(struct vmm_os_memory_record *record, struct vmm_os_client_object *o,
			 uint64_t page, uint64_t end)
{
	o->covered -= end - page;
	o->stale += end - page;
	record->stale += end - page;
	if (!o->owner && !o->covered)
		destroy(record, o);
	else if (o->owner && !record->stale_usable)
		(void)empty(record, o, page, end);
}

/* The number of places in [page, end] where the cover changes from one page to the next. */
static uint64_t edges(const struct vmm_os_memory_record *record, uint64_t page, uint64_t end)
{
	uint64_t count = 0;

	for (uint64_t i = page; i <= end; i++)
		count += (i ? record->over[i - 1] : NULL) !=
			 (i < pages_of(record) ? record->over[i] : NULL);
	return count;
}

/* The mapping of the range has changed: it shows the object, or none. */
static void note_cover(struct vmm_os_memory_record *record, uint64_t first, uint64_t end,
		       struct vmm_os_client_object *o)
{
	uint64_t next;

	record->edges -= edges(record, first, end);
	for (uint64_t page = first; page < end; page = next) {
		struct vmm_os_client_object *before = record->over[page];

		next = end_of_run(record, page, end);
		for (uint64_t i = page; i < next; i++) {
			record->over[i] = o;
			record->uses[i] = 0;
		}
		record->covered += o ? next - page : 0;
		record->covered -= before ? next - page : 0;
		if (before)
			remove_pages(record, before, page, next);
	}
	record->edges += edges(record, first, end);
	if (o)
		add_pages(record, o, first, end);
	limit_stale(record);
}

/*
 * The kernel merges a mapping with its neighbors only if all have the same advice as the whole
 * memory object.
 */
static void advise(const struct vmm_os_memory *memory, char *at, uint64_t length)
{
	if (memory->size_bytes >= VMM_OS_HUGE_PAGE)
		(void)madvise(at, length, MADV_HUGEPAGE);
}

static bool uncover(const struct vmm_os_memory *memory, uint64_t page, uint64_t end)
{
	uint64_t offset = page * VMM_PAGE_SIZE, length = (end - page) * VMM_PAGE_SIZE;
	char *at =
		vmm_os_map_over(memory->base + offset, length, memory->fd, memory->at + offset, 0);

	if (!at)
		return false;
	advise(memory, at, length);
	note_cover(memory->record, page, end, NULL);
	return true;
}

vmm_status vmm_os_client_object_uncover(const struct vmm_os_memory *memory, uint64_t offset,
					uint64_t length)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE;

	if (!record->covered)
		return VMM_OK;
	while (page < end) {
		uint64_t next = page;

		while (next < end && record->over[next])
			next++;
		if (next > page && !uncover(memory, page, next))
			return VMM_NO_MEMORY;
		page = next + 1;
	}
	return VMM_OK;
}

/* ---- covering ---- */

static struct vmm_os_client_object *find(const struct vmm_os_memory_record *record, uint64_t owner)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &record->client_objects) {
		struct vmm_os_client_object *o =
			vmm_container_of(link, struct vmm_os_client_object, link);

		if (o->owner == owner)
			return o;
	}
	return NULL;
}

static struct vmm_os_client_object *create(struct vmm_os_memory_record *record, uint64_t owner)
{
	struct vmm_os_client_object *o = vmm_calloc(1, sizeof(*o) + (pages_of(record) + 7) / 8);

	if (!o)
		return NULL;
	o->owner = owner;
	if (vmm_ok(vmm_os_open_object("vidmm client object", record->size_bytes, &o->fd))) {
		if (vmm_os_seal_size(o->fd)) {
			vmm_list_push_back(&record->client_objects, &o->link);
			return o;
		}
		vmm_os_close_charged(o->fd);
	}
	vmm_free(o);
	return NULL;
}

static struct vmm_os_client_object *find_or_create(struct vmm_os_memory_record *record,
						   uint64_t owner)
{
	struct vmm_os_client_object *o = find(record, owner);

	return o ? o : create(record, owner);
}

vmm_status vmm_os_client_object_prepare(const struct vmm_os_memory *memory, uint64_t owner)
{
	struct vmm_os_memory_record *record = memory->record;

	return make_tables(record) && find_or_create(record, owner) ? VMM_OK : VMM_NO_MEMORY;
}

/* Copies the range's present content into the object. */
static bool copy_content(const struct vmm_os_memory *memory, const struct vmm_os_client_object *o,
			 uint64_t offset, uint64_t length)
{
	ssize_t part;

	for (uint64_t done = 0; done < length; done += (uint64_t)part) {
		part = pwrite(o->fd, memory->base + offset + done, length - done,
			      (off_t)(offset + done));
		if (part <= 0)
			return false;
	}
	return true;
}

static bool cover_run(const struct vmm_os_memory *memory, uint64_t page, uint64_t end,
		      uint64_t owner, enum content content)
{
	struct vmm_os_memory_record *record = memory->record;
	struct vmm_os_client_object *o = find_or_create(record, owner);
	uint64_t offset = page * VMM_PAGE_SIZE, length = (end - page) * VMM_PAGE_SIZE;

	if (!o || (content == ZEROED && !empty(record, o, page, end)) ||
	    (content == COPIED && !copy_content(memory, o, offset, length)))
		return false;
	/* Pages that exist are mapped all at once: most will be written. */
	uint32_t how = content == ANY && is_touched(o, page) ? VMM_OS_MAP_POPULATE : 0;
	char *at = vmm_os_map_over(memory->base + offset, length, o->fd, offset, how);

	if (!at)
		return false;
	advise(memory, at, length);
	note_cover(record, page, end, o);
	if (content == COPIED)
		vmm_os_memory_discard(memory, offset, length);
	return true;
}

static void count_use(const struct vmm_os_memory *memory, uint64_t page, uint64_t end, bool used)
{
	const struct vmm_os_memory_record *record = memory->record;

	for (; page < end; page++) {
		vmm_assert(record->over[page] &&
			   (used ? record->uses[page] < UINT8_MAX : record->uses[page] > 0));
		record->uses[page] = (uint8_t)(record->uses[page] + (used ? 1 : -1));
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
	if (!make_tables(record))
		return VMM_NO_MEMORY;
	record->stale_usable |= content == ANY;
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

	if (!record->covered) {
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

static bool is_surplus(const struct vmm_os_memory *memory, const struct vmm_os_client_object *o)
{
	/* Each covered range has two edges, or shares one with the next. */
	return !o->owner || memory->record->edges > 2 * RANGES_MAX;
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

/*
 * Uncovers the unused pages of a range that an object covers. Where the kernel has no memory for
 * that the pages stay covered. They have no use, and their next user changes the mapping.
 */
static void uncover_unused(const struct vmm_os_memory *memory, uint64_t page, uint64_t end)
{
	uint64_t next;

	for (; page < end; page = next) {
		next = end_of_use(memory->record, page, end);
		if (!memory->record->uses[page])
			(void)uncover(memory, page, next);
	}
}

void vmm_os_client_object_release(const struct vmm_os_memory *memory, uint64_t offset,
				  uint64_t length, bool may_remove)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE, end = page + length / VMM_PAGE_SIZE, next;

	count_use(memory, page, end, false);
	for (; page < end; page = next) {
		next = end_of_run(record, page, end);
		if (may_remove && record->over[page] && is_surplus(memory, record->over[page]))
			uncover_unused(memory, page, next);
	}
}

void vmm_os_client_object_end_owner(const struct vmm_os_memory *memory, uint64_t owner)
{
	struct vmm_os_memory_record *record = memory->record;
	struct vmm_os_client_object *o = find(record, owner);
	uint64_t end = pages_of(record), next;

	if (!o)
		return;
	/* No page is emptied: what the owner has locked stays mapped there. */
	o->owner = 0;
	o->covered++; /* it is in use here */
	for (uint64_t page = 0; page < end && o->covered > 1; page = next) {
		next = end_of_run(record, page, end);
		if (record->over[page] == o)
			uncover_unused(memory, page, next);
	}
	if (!--o->covered)
		destroy(record, o);
}

void vmm_os_client_object_finish(struct vmm_os_memory_record *record)
{
	struct vmm_list *link, *next;

	for (uint64_t page = 0; record->uses && page < pages_of(record); page++)
		vmm_assert(!record->uses[page]);
	vmm_list_for_each_safe (link, next, &record->client_objects)
		destroy(record, vmm_container_of(link, struct vmm_os_client_object, link));
	vmm_free(record->over);
	vmm_free(record->uses);
}

uint64_t vmm_os_find_visible(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			     uint64_t owner, int *fd, uint64_t *at)
{
	const struct vmm_os_memory_record *record = memory->record;
	uint64_t page = offset / VMM_PAGE_SIZE;

	if (record->shareable || (record->owner && record->owner == owner)) {
		*fd = memory->fd;
		*at = memory->at + offset;
		return length;
	}
	vmm_assert(record->over);
	const struct vmm_os_client_object *o = record->over[page];

	/* Any other object is another owner's. */
	vmm_assert(o && o->owner == owner);
	*fd = o->fd;
	*at = offset;
	return (end_of_run(record, page, page + length / VMM_PAGE_SIZE) - page) * VMM_PAGE_SIZE;
}
