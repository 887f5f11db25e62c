/* SPDX-License-Identifier: MIT */
/*
 * load: the usual operations of a client, in an order drawn from a seed, until its standard input
 * ends: writes, checks, copies by the GPU, discards, offers, deallocations. It knows what every
 * word of its memory must be: every second word contains its position, those between contain the
 * program that wrote it and the time. At intervals it searches everything that is mapped into it,
 * and must find no word of another program. It writes a byte to its output for every operation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

#define SLOTS           10u
#define BYTES_MAX       (64u << 10)
#define DISCARD         0x182u /* Discard, WriteOnly, NoExistingReference */
#define LOOK_EACH       64u    /* operations, on average */
#define HOARD_LOOK_EACH 8u
#define FENCES          8u

struct slot {
	D3DKMT_HANDLE handle; /* 0: free */
	uint32_t bytes, tag;
	bool offered;
};

struct load {
	struct remote_device d;
	struct client_context context;
	struct slot slots[SLOTS];
	uint64_t seed;
	uint32_t tags;
};

static uint32_t draw(struct load *l, uint32_t below)
{
	l->seed = l->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(l->seed >> 33) % below;
}

/* Identifies this program: process ids have 22 bits. */
static uint32_t new_tag(struct load *l)
{
	return (uint32_t)getpid() << 10 | (++l->tags & 1023u);
}

static uint32_t word(uint32_t tag, uint32_t i)
{
	return i % 2 ? tag : REMOTE_MAGIC << 16 | i;
}

static void check_status(const char *what, HRESULT status)
{
	if (FAILED(status))
		remote_failed(what, status);
}

static uint32_t *lock(struct load *l, struct slot *slot, uint32_t flags)
{
	void *data = NULL;

	check_status("pfnLockCb", client_try_lock(&l->d.device, &slot->handle, flags, &data));
	return data;
}

static void unlock(struct load *l, struct slot *slot)
{
	check_status("pfnUnlockCb", client_unlock(&l->d.device, slot->handle));
}

static void fill(struct slot *slot, uint32_t *words)
{
	for (uint32_t i = 0; i < slot->bytes / 4; i++)
		words[i] = word(slot->tag, i);
}

static void check(struct load *l, struct slot *slot, const uint32_t *words)
{
	for (uint32_t i = 0; i < slot->bytes / 4; i++)
		if (words[i] != word(slot->tag, i)) {
			fprintf(stderr,
				"# load %d: word %u of slot %u (%u bytes) is 0x%08x, not 0x%08x\n",
				(int)getpid(), i, (uint32_t)(slot - l->slots), slot->bytes,
				words[i], word(slot->tag, i));
			remote_end(REMOTE_WRONG);
		}
}

static void allocate(struct load *l, struct slot *slot)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
			 (draw(l, 2) ? SOFTGPU_ALLOCATION_CACHED : 0),
		.size_bytes = (1 + draw(l, BYTES_MAX / 4096)) * 4096u,
		.renaming_limit = draw(l, 3),
	};

	if (slot->handle)
		return;
	*slot = (struct slot){.bytes = (uint32_t)spec.size_bytes};
	check_status("pfnAllocateCb",
		     client_try_allocate(&l->d.device, &spec, NULL, &slot->handle, NULL));
	uint32_t *words = lock(l, slot, 0);
	for (uint32_t i = 0; i < slot->bytes / 4; i++)
		if (words[i]) {
			fprintf(stderr, "# load: new memory is not zero but 0x%08x\n", words[i]);
			remote_end(REMOTE_WRONG);
		}
	slot->tag = new_tag(l);
	fill(slot, words);
	unlock(l, slot);
}

static void deallocate(struct load *l, struct slot *slot)
{
	if (slot->handle)
		check_status("pfnDeallocateCb", client_deallocate(&l->d.device, slot->handle));
	slot->handle = 0;
}

/* An offered allocation has unknown content, but can be reclaimed. */
static void ready(struct load *l, struct slot *slot)
{
	BOOL discarded = 0;
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &slot->handle, .pDiscarded = &discarded, .NumAllocations = 1};

	if (!slot->offered)
		return;
	check_status("pfnReclaimAllocationsCb",
		     l->d.device.cb->pfnReclaimAllocationsCb(l->d.device.handle, &reclaim));
	slot->offered = false;
	if (!discarded)
		return;
	slot->tag = new_tag(l);
	fill(slot, lock(l, slot, 0));
	unlock(l, slot);
}

static void offer(struct load *l, struct slot *slot)
{
	D3DDDICB_OFFERALLOCATIONS args = {.HandleList = &slot->handle,
					  .NumAllocations = 1,
					  .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	check_status("pfnOfferAllocationsCb",
		     l->d.device.cb->pfnOfferAllocationsCb(l->d.device.handle, &args));
	slot->offered = true;
}

static void rewrite(struct load *l, struct slot *slot)
{
	uint32_t *words = lock(l, slot, 0);

	check(l, slot, words);
	slot->tag = new_tag(l);
	fill(slot, words);
	unlock(l, slot);
}

static void discard(struct load *l, struct slot *slot)
{
	void *words = NULL;
	HRESULT status = client_try_lock(&l->d.device, &slot->handle, DISCARD, &words);

	if (status == D3DERR_WASSTILLDRAWING || status == E_NOTIMPL)
		return; /* no renaming for this one */
	check_status("pfnLockCb with Discard", status);
	slot->tag = new_tag(l);
	fill(slot, words);
	unlock(l, slot);
}

static void submit(struct load *l)
{
	D3DDDICB_RENDER args = {.CommandLength = l->context.command_bytes,
				.NumAllocations = l->context.allocations,
				.hContext = l->context.c.hContext};

	check_status("pfnRenderCb", l->d.device.cb->pfnRenderCb(l->d.device.handle, &args));
	l->context.c.pCommandBuffer = args.pNewCommandBuffer;
	l->context.c.CommandBufferSize = args.NewCommandBufferSize;
	l->context.c.pAllocationList = args.pNewAllocationList;
	l->context.c.AllocationListSize = args.NewAllocationListSize;
	l->context.command_bytes = l->context.allocations = 0;
}

static void copy(struct load *l, struct slot *from, struct slot *to)
{
	if (from == to || from->bytes > to->bytes)
		return;
	client_copy(&l->context, from->handle, to->handle, from->bytes);
	submit(l);
	if (from->bytes == to->bytes) {
		to->tag = from->tag;
		return;
	}
	/* Memory behind the copy is unchanged: this is checked, then the pattern is restored. */
	uint32_t *words = lock(l, to, 0);
	for (uint32_t i = 0; i < to->bytes / 4; i++) {
		uint32_t expected = word(i < from->bytes / 4 ? from->tag : to->tag, i);

		if (words[i] != expected) {
			fprintf(stderr, "# load: word %u after a copy is 0x%08x, not 0x%08x\n", i,
				words[i], expected);
			remote_end(REMOTE_WRONG);
		}
	}
	to->tag = new_tag(l);
	fill(to, words);
	unlock(l, to);
}

static void step(struct load *l)
{
	struct slot *slot = &l->slots[draw(l, SLOTS)], *other = &l->slots[draw(l, SLOTS)];

	allocate(l, slot);
	allocate(l, other);
	ready(l, slot);
	ready(l, other);
	switch (draw(l, 8)) {
	case 0:
		deallocate(l, slot);
		break;
	case 1:
		discard(l, slot);
		break;
	case 2:
		offer(l, slot);
		break;
	case 3:
	case 4:
		rewrite(l, slot);
		break;
	default:
		copy(l, slot, other);
		break;
	}
}

static void find_nothing(void)
{
	uint32_t found = remote_look_around();

	if (!found)
		return;
	fprintf(stderr, "# load %d: words of program %u are mapped into it\n", (int)getpid(),
		found);
	remote_end(REMOTE_FOREIGN);
}

static void work(struct load *l, uint32_t look_each)
{
	while (!remote_told_to_end()) {
		step(l);
		if (!draw(l, look_each))
			find_nothing();
		remote_say();
	}
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (!l->slots[i].handle)
			continue;
		ready(l, &l->slots[i]);
		check(l, &l->slots[i], lock(l, &l->slots[i], 0));
		unlock(l, &l->slots[i]);
	}
	find_nothing();
}

static void begin(struct load *l, const char *socket, const char *seed)
{
	l->seed = strtoull(seed, NULL, 0);
	remote_look_at_something();
	remote_open(&l->d, socket, "load", REMOTE_SOFTGPU);
	l->context.device = &l->d.device;
	check_status("pfnCreateContextCb",
		     l->d.device.cb->pfnCreateContextCb(l->d.device.handle, &l->context.c));
}

int remote_load(const char *socket, const char *seed)
{
	static struct load l;

	begin(&l, socket, seed);
	work(&l, LOOK_EACH);
	remote_close(&l.d);
	return REMOTE_DONE;
}

/*
 * The same, in a program that retains every descriptor and searches all the time; its fences
 * contain its own words, too.
 */
int remote_hoard(const char *socket, const char *seed)
{
	static struct load l;
	struct remote_device fences;
	const volatile uint64_t *value;

	remote_keep_all();
	remote_open(&fences, socket, "hoard", REMOTE_SCRIPTED);
	begin(&l, socket, seed);
	for (uint32_t i = 0; i < FENCES; i++) {
		D3DKMT_HANDLE fence = remote_make_fence(&fences, &value);

		check_status("a signal",
			     remote_signal(&fences, fence,
					   (uint64_t)new_tag(&l) << 32 | REMOTE_MAGIC << 16));
	}
	work(&l, HOARD_LOOK_EACH);
	remote_close(&l.d);
	remote_close(&fences);
	return REMOTE_DONE;
}
