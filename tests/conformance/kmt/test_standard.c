/* SPDX-License-Identifier: MIT */
/*
 * Standard allocations: an existing heap. Memory of the client, or of a section, is the
 * allocation; the miniport describes the rest.
 */
#define _GNU_SOURCE /* memfd_create, MAP_ANONYMOUS */

#include "kmt_world.h"

#include "base/base.h"
#include "support/softgpu_table.h"

#include <d3dkmddi.h>
#include <dispmprt.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  (4 * KIB)
#define BYTES (8 * PAGE)

enum { READ_ONLY = 0x1 };
enum {
	CREATE_RESOURCE = 0x1,
	CREATE_SHARED = 0x2,
	NT_SECURITY = 0x40,
	EXISTING_SYSMEM = 0x20,
	STANDARD = 0x10000,
	EXISTING_SECTION = 0x20000,
};
#define HEAP    (STANDARD | EXISTING_SYSMEM)
#define SECTION (STANDARD | EXISTING_SECTION)

/* ---- a miniport whose answers a test may change ---- */

static DRIVER_INITIALIZATION_DATA softgpu;
static bool without_entry; /* read at the start */
static struct {
	bool changes_its_size, no_flag, odd_size, in_memory;
	UINT resource_bytes; /* private data for the resource */
	NTSTATUS answer;     /* instead of softgpu's answer; 0: softgpu's */
	/* what the miniport was asked */
	_Atomic uint32_t asked;
	struct {
		D3DKMDT_STANDARDALLOCATION_TYPE type;
		D3DKMDT_GDISURFACEDATA surface;
		bool buffer;
		UINT bytes;
	} question[2];
	_Atomic uint32_t created, destroyed;
	UINT created_bytes; /* private data for the resource, in the last creation */
	uint8_t created_byte;
	struct softgpu_allocation wish; /* of the last creation */
} miniport;

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);

static NTSTATUS APIENTRY standard_data(IN_CONST_HANDLE hAdapter,
				       INOUT_PDXGKARG_GETSTANDARDALLOCATIONDRIVERDATA args)
{
	uint32_t n = atomic_fetch_add(&miniport.asked, 1);

	if (n < 2) {
		miniport.question[n].type = args->StandardAllocationType;
		miniport.question[n].surface = *args->pCreateGdiSurfaceData;
		miniport.question[n].buffer = args->pAllocationPrivateDriverData;
		miniport.question[n].bytes = args->AllocationPrivateDriverDataSize;
	}
	if (miniport.answer)
		return miniport.answer;
	NTSTATUS status = softgpu.DxgkDdiGetStandardAllocationDriverData(hAdapter, args);
	args->ResourcePrivateDriverDataSize = miniport.resource_bytes;
	if (args->pResourcePrivateDriverData)
		memset(args->pResourcePrivateDriverData, 0xB5, miniport.resource_bytes);
	if (miniport.changes_its_size && n)
		args->AllocationPrivateDriverDataSize--;
	return status;
}

static NTSTATUS APIENTRY create_allocation(IN_CONST_HANDLE hAdapter,
					   INOUT_PDXGKARG_CREATEALLOCATION args)
{
	DXGK_ALLOCATIONINFO *info = args->pAllocationInfo;

	if (args->NumAllocations && info->PrivateDriverDataSize == sizeof(miniport.wish))
		memcpy(&miniport.wish, info->pPrivateDriverData, sizeof(miniport.wish));
	miniport.created_bytes = args->PrivateDriverDataSize;
	if (args->PrivateDriverDataSize)
		miniport.created_byte = *(const uint8_t *)args->pPrivateDriverData;
	NTSTATUS status = softgpu.DxgkDdiCreateAllocation(hAdapter, args);
	if (!NT_SUCCESS(status) || !args->NumAllocations)
		return status;
	atomic_fetch_add(&miniport.created, 1);
	if (miniport.no_flag)
		info->Flags.ExistingSysMem = 0;
	if (miniport.odd_size)
		info->Size += PAGE;
	if (miniport.in_memory) {
		info->SupportedReadSegmentSet |= 1;
		info->SupportedWriteSegmentSet |= 1;
		info->PreferredSegment.SegmentId0 = 1;
	}
	return status;
}

static NTSTATUS APIENTRY destroy_allocation(IN_CONST_HANDLE hAdapter,
					    IN_CONST_PDXGKARG_DESTROYALLOCATION args)
{
	atomic_fetch_add(&miniport.destroyed, args->NumAllocations);
	return softgpu.DxgkDdiDestroyAllocation(hAdapter, args);
}

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	DRIVER_INITIALIZATION_DATA ours = softgpu_table(data);

	softgpu = ours;
	ours.DxgkDdiGetStandardAllocationDriverData = without_entry ? NULL : standard_data;
	ours.DxgkDdiCreateAllocation = create_allocation;
	ours.DxgkDdiDestroyAllocation = destroy_allocation;
	return __real_DxgkInitialize(driver, path, &ours);
}

/* ---- a fixture with existing memory ---- */

struct heap {
	struct kmt_world w;
	char *memory; /* BYTES and one more page */
};

static void start(struct heap *h, void **state)
{
	memset(&miniport, 0, sizeof(miniport));
	kmt_start(&h->w, state);
	h->memory = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	assert_true(h->memory != MAP_FAILED);
}

static void stop(struct heap *h)
{
	vidmm_d3dkmt_enter(NULL);
	kmt_stop(&h->w);
	assert_int_equal(miniport.created, miniport.destroyed);
	assert_int_equal(munmap(h->memory, BYTES + PAGE), 0);
}

/* A creation that succeeds; a test changes it to be wrong. */
struct creation {
	D3DDDI_ALLOCATIONINFO2 info[2];
	D3DKMT_CREATESTANDARDALLOCATION what;
	D3DKMT_CREATEALLOCATION args;
};

static void prepare(const struct heap *h, struct creation *c, uint32_t flags)
{
	memset(c, 0, sizeof(*c));
	c->info[0].pSystemMem = h->memory;
	c->info[1].pSystemMem = h->memory;
	c->what.Type = D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP;
	c->what.ExistingHeapData.Size = BYTES;
	c->args = (D3DKMT_CREATEALLOCATION){.hDevice = h->w.device,
					    .pStandardAllocation = &c->what,
					    .NumAllocations = 1,
					    .pAllocationInfo2 = c->info};
	memcpy(&c->args.Flags, &flags, sizeof(flags));
}

static NTSTATUS create(struct creation *c)
{
	return D3DKMTCreateAllocation2(&c->args);
}

static void expect_refused(struct heap *h, struct creation *c, const char *rule)
{
	uint32_t before = atomic_load(&miniport.created);

	assert_int_equal(create(c), STATUS_INVALID_PARAMETER);
	kmt_found(&h->w, rule);
	assert_int_equal(c->info[0].hAllocation, 0);
	assert_int_equal(c->args.hResource, 0);
	assert_int_equal(atomic_load(&miniport.created), before);
}

/* The GPU fills one page, 4096 bytes, of the allocation with that word. */
static void fill(struct kmt_world *w, D3DKMT_HANDLE a, uint32_t word)
{
	struct client_context c;
	D3DKMT_RENDER args = {0};

	kmt_context(w, &c);
	client_fill(&c, a, PAGE, word);
	assert_int_equal(kmt_render(&c, &args), STATUS_SUCCESS);
	const D3DKMT_DESTROYCONTEXT end = {.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext};
	assert_int_equal(D3DKMTDestroyContext(&end), STATUS_SUCCESS);
}

static uint32_t first_word(struct kmt_world *w, D3DKMT_HANDLE a)
{
	uint32_t word;
	void *data;

	assert_int_equal(kmt_lock(w, &a, READ_ONLY, &data), STATUS_SUCCESS);
	memcpy(&word, data, sizeof(word));
	assert_int_equal(kmt_unlock(w, a), STATUS_SUCCESS);
	return word;
}

static int new_section(size_t bytes)
{
	int fd = memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static void name_section(struct creation *c, int fd)
{
	c->info[0].hSection = (HANDLE)(intptr_t)fd;
}

/* ---- arguments of the caller ---- */

static void alc_01_an_existing_heap_without_type_size_or_memory_is_refused(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP);
	c.args.pStandardAllocation = NULL;
	expect_refused(&h, &c, "ALC-01");
	prepare(&h, &c, HEAP);
	c.what.Type = 0;
	expect_refused(&h, &c, "ALC-01");
	c.what.Type = D3DKMT_STANDARDALLOCATIONTYPE_MAX;
	expect_refused(&h, &c, "ALC-01");
	prepare(&h, &c, HEAP);
	c.what.Flags.Value = 1;
	expect_refused(&h, &c, "ALC-01");
	prepare(&h, &c, HEAP);
	c.what.ExistingHeapData.Size = 0;
	expect_refused(&h, &c, "ALC-01");
	c.what.ExistingHeapData.Size = BYTES - 1;
	expect_refused(&h, &c, "ALC-01");
	prepare(&h, &c, HEAP);
	c.info[0].pSystemMem = NULL;
	expect_refused(&h, &c, "ALC-01");
	prepare(&h, &c, SECTION);
	c.info[0].pSystemMem = NULL;
	expect_refused(&h, &c, "ALC-01");
	prepare(&h, &c, HEAP);
	c.what.Type = D3DKMT_STANDARDALLOCATIONTYPE_INTERNALBACKINGSTORE;
	assert_int_equal(create(&c), STATUS_NOT_SUPPORTED);
	prepare(&h, &c, HEAP);
	c.what.ExistingHeapData.Size = 4096 * MIB;
	assert_int_equal(create(&c), STATUS_NOT_SUPPORTED);
	assert_int_equal(atomic_load(&miniport.asked), 0); /* so far the miniport was not called */
	prepare(&h, &c, HEAP);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	stop(&h);
}

static void alc_02_alf_38_a_heap_has_one_allocation_and_one_kind_of_memory(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP);
	c.args.NumAllocations = 2;
	expect_refused(&h, &c, "ALC-02");
	prepare(&h, &c, HEAP | CREATE_RESOURCE);
	c.args.NumAllocations = 0;
	expect_refused(&h, &c, "ALC-02");
	prepare(&h, &c, EXISTING_SYSMEM);
	expect_refused(&h, &c, "ALC-02");
	prepare(&h, &c, EXISTING_SECTION);
	expect_refused(&h, &c, "ALC-02");
	prepare(&h, &c, STANDARD);
	expect_refused(&h, &c, "ALF-38");
	prepare(&h, &c, HEAP | EXISTING_SECTION);
	expect_refused(&h, &c, "ALF-38");
	/* With or without a new resource: both are valid. */
	prepare(&h, &c, HEAP | CREATE_RESOURCE);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	assert_int_not_equal(c.args.hResource, 0);
	assert_int_equal(kmt_destroy(&h.w, c.args.hResource, NULL, 0), STATUS_SUCCESS);
	prepare(&h, &c, HEAP);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	assert_int_equal(c.args.hResource, 0);
	stop(&h);
}

static void alf_38_a_heap_for_an_existing_resource_is_refused(void **state)
{
	struct creation first, c;
	struct heap h;

	start(&h, state);
	prepare(&h, &first, HEAP | CREATE_RESOURCE);
	assert_int_equal(create(&first), STATUS_SUCCESS);
	prepare(&h, &c, HEAP);
	c.args.hResource = first.args.hResource;
	assert_int_equal(create(&c), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ALC-05");
	stop(&h);
}

static void alc_03_private_data_of_the_resource_is_refused(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP);
	c.args.PrivateDriverDataSize = sizeof(c.what);
	expect_refused(&h, &c, "ALC-03");
	c.args.PrivateDriverDataSize = 1u << 30; /* and its pointer is not read */
	expect_refused(&h, &c, "ALC-03");
	stop(&h);
}

/* Six bytes as of a client, and as many as the miniport's own data has. */
static void alc_03_private_data_of_a_standard_allocation_may_be_any_bytes(void **state)
{
	const uint32_t sizes[] = {6, sizeof(struct softgpu_allocation), PAGE};
	struct creation c;
	struct heap h;

	start(&h, state);
	for (uint32_t i = 0; i < 3; i++) {
		uint8_t bytes[PAGE], before[PAGE];

		memset(bytes, 0x3C, sizeof(bytes));
		memset(before, 0x3C, sizeof(before));
		memset(&miniport.wish, 0, sizeof(miniport.wish));
		atomic_store(&miniport.asked, 0);
		prepare(&h, &c, HEAP);
		c.info[0].pPrivateDriverData = bytes;
		c.info[0].PrivateDriverDataSize = sizes[i];
		assert_int_equal(create(&c), STATUS_SUCCESS);
		assert_memory_equal(bytes, before, sizeof(bytes));
		assert_int_equal(c.info[0].PrivateDriverDataSize, sizes[i]);
		/* The miniport gets what it answered. */
		assert_int_equal(atomic_load(&miniport.asked), 2);
		assert_int_equal(miniport.question[0].bytes, 0);
		assert_int_equal(miniport.wish.size_bytes, BYTES);
		assert_true(miniport.wish.flags & SOFTGPU_ALLOCATION_EXISTING_SYSTEM);
		assert_int_equal(kmt_destroy(&h.w, 0, &c.info[0].hAllocation, 1), STATUS_SUCCESS);
	}
	stop(&h);
}

static void alc_07_hprivateruntimeresourcehandle_is_unchanged(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP | CREATE_RESOURCE);
	c.args.hPrivateRuntimeResourceHandle = (HANDLE)(uintptr_t)0xDEADBEEF;
	assert_int_equal(create(&c), STATUS_SUCCESS);
	assert_int_equal((uintptr_t)c.args.hPrivateRuntimeResourceHandle, 0xDEADBEEF);
	stop(&h);
}

/* ---- calls of the miniport ---- */

static void alf_38_the_miniport_is_asked_for_sizes_then_for_data(void **state)
{
	char behind[64] = "not the caller's business";
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP);
	c.info[0].pPrivateDriverData = behind; /* size 0: nothing may be written there */
	assert_int_equal(create(&c), STATUS_SUCCESS);
	assert_string_equal(behind, "not the caller's business");
	assert_int_equal(atomic_load(&miniport.asked), 2);
	assert_int_equal(miniport.question[0].bytes, 0);
	assert_false(miniport.question[0].buffer);
	assert_int_equal(miniport.question[1].bytes, sizeof(struct softgpu_allocation));
	assert_true(miniport.question[1].buffer);
	for (int i = 0; i < 2; i++) {
		const D3DKMDT_GDISURFACEDATA *surface = &miniport.question[i].surface;

		assert_int_equal(miniport.question[i].type, D3DKMDT_STANDARDALLOCATION_GDISURFACE);
		assert_int_equal(surface->Type, D3DKMDT_GDISURFACE_EXISTINGSYSMEM);
		assert_int_equal((uint64_t)surface->Pitch * surface->Height, BYTES);
	}
	/* The miniport is asked to create what it described. */
	assert_int_equal(miniport.wish.size_bytes, BYTES);
	assert_true(miniport.wish.flags & SOFTGPU_ALLOCATION_EXISTING_SYSTEM);
	stop(&h);
}

static void alf_38_a_miniport_that_changes_size_or_flag_fails_the_call(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP);
	miniport.answer = STATUS_NOT_SUPPORTED;
	assert_int_equal(create(&c), STATUS_NOT_SUPPORTED);
	miniport.answer = STATUS_NO_MEMORY;
	assert_int_equal(create(&c), STATUS_NO_MEMORY);
	miniport.answer = 0;
	miniport.changes_its_size = true;
	expect_refused(&h, &c, "ALF-38");
	miniport.changes_its_size = false;
	miniport.no_flag = true;
	assert_int_equal(create(&c), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ALF-38");
	miniport.no_flag = false;
	miniport.odd_size = true;
	assert_int_equal(create(&c), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ALF-38");
	miniport.odd_size = false;
	assert_int_equal(c.info[0].hAllocation, 0);
	assert_int_equal(miniport.created, miniport.destroyed); /* ALF-33: undone */
	assert_int_equal(create(&c), STATUS_SUCCESS);
	stop(&h);
}

static void alf_38_without_the_miniport_ddi_creation_is_not_supported(void **state)
{
	struct creation c;
	struct heap h;

	without_entry = true;
	start(&h, state);
	without_entry = false;
	prepare(&h, &c, HEAP);
	assert_int_equal(create(&c), STATUS_NOT_SUPPORTED);
	assert_int_equal(c.info[0].hAllocation, 0);
	stop(&h);
}

/* Every internal allocation fails in turn; a failed creation leaves nothing behind. */
static void out_of_memory_while_creating_a_heap_changes_nothing(void **state)
{
	uint32_t attempts = 0;
	struct creation c;
	NTSTATUS status;
	struct heap h;

	start(&h, state);
	int fd = new_section(BYTES);
	do {
		prepare(&h, &c, SECTION | CREATE_RESOURCE | CREATE_SHARED);
		name_section(&c, fd);
		vmm_calloc_fail_after(++attempts);
		status = create(&c);
		vmm_calloc_fail_after(0);
		if (!status)
			break;
		assert_int_equal(status, STATUS_NO_MEMORY);
		assert_int_equal(c.args.hResource, 0);
		assert_int_equal(c.info[0].hAllocation, 0);
		assert_int_equal(miniport.created, miniport.destroyed);
	} while (true);
	assert_true(attempts > 8);
	close(fd);
	stop(&h);
}

/* ---- the memory ---- */

static void a_heap_is_the_memory_itself(struct heap *h, bool in_memory)
{
	struct creation c;
	void *data;

	miniport.in_memory = in_memory; /* the GPU then has its own copy */
	memset(h->memory, 0x5A, BYTES);
	prepare(h, &c, HEAP);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	D3DKMT_HANDLE a = c.info[0].hAllocation, copy = kmt_allocate(&h->w, PAGE);
	assert_int_equal(kmt_lock(&h->w, &a, 0, &data), STATUS_SUCCESS);
	assert_ptr_equal(data, h->memory);
	memset(data, 0x5B, 4);
	assert_int_equal(kmt_unlock(&h->w, a), STATUS_SUCCESS);
	struct client_context gpu;
	D3DKMT_RENDER args = {0};
	kmt_context(&h->w, &gpu);
	client_copy(&gpu, a, copy, PAGE);
	assert_int_equal(kmt_render(&gpu, &args), STATUS_SUCCESS);
	assert_int_equal(first_word(&h->w, copy), 0x5B5B5B5B); /* the GPU reads it */
	fill(&h->w, a, 0x11223344);
	assert_int_equal(kmt_destroy(&h->w, 0, &a, 1), STATUS_SUCCESS);
	/* The GPU's last write is in the client's memory after destruction. */
	assert_int_equal(((uint32_t *)h->memory)[0], 0x11223344);
	assert_int_equal(((uint32_t *)h->memory)[PAGE / 4], 0x5A5A5A5A);
}

static void alf_38_a_heap_uses_the_clients_memory(void **state)
{
	struct heap h;

	start(&h, state);
	a_heap_is_the_memory_itself(&h, false);
	a_heap_is_the_memory_itself(&h, true);
	stop(&h);
}

/* The GPU's copy in video memory is written to the client's memory before power off. */
static void alf_38_pnp_05_heap_content_survives_power_off(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	miniport.in_memory = true;
	prepare(&h, &c, HEAP);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	fill(&h.w, c.info[0].hAllocation, 0x2EE2);
	assert_int_equal(
		vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	assert_int_equal(*(uint32_t *)h.memory, 0x2EE2);
	/* it is the client's memory, and the adapter has no power */
	*(uint32_t *)h.memory = 0x2EE3;
	assert_int_equal(vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D0, 0), 0);
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0x2EE3);
	fill(&h.w, c.info[0].hAllocation, 0x2EE4);
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0x2EE4);
	stop(&h);
}

static void alf_11_a_heap_over_unmapped_memory_is_refused(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP);
	c.info[0].pSystemMem = h.memory + 1;
	assert_int_equal(create(&c), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ALF-11");
	prepare(&h, &c, HEAP);
	assert_int_equal(mprotect(h.memory + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(create(&c), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ALF-11");
	c.what.ExistingHeapData.Size = PAGE; /* which is smaller than that */
	assert_int_equal(create(&c), STATUS_SUCCESS);
	stop(&h);
}

/* ---- sections ---- */

static void alf_38_a_section_must_be_large_enough_and_writable(void **state)
{
	struct creation c;
	char path[64];
	struct heap h;

	start(&h, state);
	int fd = new_section(BYTES), end[2];
	prepare(&h, &c, SECTION);
	name_section(&c, fd);
	c.what.ExistingHeapData.Size = BYTES + PAGE;
	expect_refused(&h, &c, "ALF-38");
	c.what.ExistingHeapData.Size = BYTES;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int reader = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(reader >= 0);
	name_section(&c, reader);
	expect_refused(&h, &c, "ALF-38");
	assert_int_equal(pipe(end), 0);
	name_section(&c, end[1]);
	expect_refused(&h, &c, "ALF-38");
	name_section(&c, -1);
	assert_int_equal(create(&c), STATUS_INVALID_HANDLE);
	kmt_found(&h.w, "ALF-38");
	c.info[0].hSection = (HANDLE)((uintptr_t)1 << 32 | (uintptr_t)fd);
	assert_int_equal(create(&c), STATUS_INVALID_HANDLE);
	kmt_found(&h.w, "ALF-38");
	name_section(&c, fd);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	close(end[0]), close(end[1]), close(reader), close(fd);
	stop(&h);
}

/* An out-of-process section must be sealed, so that it cannot shrink while it is used. */
static void alf_38_alf_11_an_out_of_process_section_must_be_sealed(void **state)
{
	bool all_are = getenv("VIDMM_OUT_OF_PROCESS") != NULL;
	struct creation c;
	struct heap h;

	setenv("VIDMM_OUT_OF_PROCESS", "1", 1);
	start(&h, state);
	/*
	 * Memory that the client maps shared is refused, too: the client could have passed it as a
	 * section.
	 */
	prepare(&h, &c, HEAP);
	void *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	c.info[0].pSystemMem = shared;
	assert_int_equal(create(&c), STATUS_NOT_SUPPORTED);
	assert_int_equal(c.info[0].hAllocation, 0);
	assert_int_equal(munmap(shared, BYTES), 0);
	int open = memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(open, BYTES), 0);
	prepare(&h, &c, SECTION);
	name_section(&c, open);
	expect_refused(&h, &c, "ALF-38");
	assert_int_equal(fcntl(open, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	uint32_t *seen = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, open, 0);
	assert_true(seen != MAP_FAILED);
	seen[0] = 0x600D;
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0x600D);
	fill(&h.w, c.info[0].hAllocation, 0xABCD0003);
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0xABCD0003);
	assert_int_equal(kmt_destroy(&h.w, 0, &c.info[0].hAllocation, 1), STATUS_SUCCESS);
	assert_int_equal(seen[0], 0xABCD0003);
	assert_int_equal(munmap(seen, BYTES), 0);
	close(open);
	stop(&h);
	if (!all_are)
		unsetenv("VIDMM_OUT_OF_PROCESS");
}

static void alf_38_allocations_over_one_section_share_its_content(void **state)
{
	struct creation one, two;
	struct heap h;

	start(&h, state);
	int fd = new_section(BYTES);
	uint32_t *seen = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(seen != MAP_FAILED);
	seen[0] = 0x600D;
	prepare(&h, &one, SECTION);
	name_section(&one, fd);
	prepare(&h, &two, SECTION | CREATE_RESOURCE);
	name_section(&two, fd);
	assert_int_equal(create(&one), STATUS_SUCCESS);
	assert_int_equal(create(&two), STATUS_SUCCESS);
	close(fd); /* the allocations have their own reference */
	D3DKMT_HANDLE a = one.info[0].hAllocation, b = two.info[0].hAllocation;
	vidmm_adapter_check(h.w.client.adapter);
	assert_int_equal(first_word(&h.w, a), 0x600D);
	fill(&h.w, a, 0xABCD0001);
	assert_int_equal(first_word(&h.w, a), 0xABCD0001);
	assert_int_equal(first_word(&h.w, b), 0xABCD0001);
	assert_int_equal(kmt_destroy(&h.w, 0, &a, 1), STATUS_SUCCESS);
	fill(&h.w, b, 0xABCD0002);
	assert_int_equal(kmt_destroy(&h.w, two.args.hResource, NULL, 0), STATUS_SUCCESS);
	assert_int_equal(seen[0], 0xABCD0002);
	assert_int_equal(munmap(seen, BYTES), 0);
	stop(&h);
}

/*
 * The address that a lock of a section returns is valid only until the last allocation over it
 * ends.
 */
static void alf_11_a_heap_over_a_locked_sections_address_is_refused(void **state)
{
	struct creation c, more;
	struct heap h;
	void *data;

	start(&h, state);
	int fd = new_section(BYTES);
	prepare(&h, &c, SECTION);
	name_section(&c, fd);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	assert_int_equal(kmt_lock(&h.w, &c.info[0].hAllocation, 0, &data), STATUS_SUCCESS);
	prepare(&h, &more, HEAP);
	more.info[0].pSystemMem = (char *)data + BYTES - PAGE;
	more.what.ExistingHeapData.Size = PAGE;
	assert_int_equal(create(&more), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ALF-11");
	assert_int_equal(kmt_unlock(&h.w, c.info[0].hAllocation), STATUS_SUCCESS);
	/* The section itself may be used any number of times. */
	prepare(&h, &more, SECTION);
	name_section(&more, fd);
	assert_int_equal(create(&more), STATUS_SUCCESS);
	close(fd);
	stop(&h);
}

/* A shared section in the other process: its handle of the allocation. */
static void open_shared(struct heap *h, D3DKMT_HANDLE global, struct kmt_world *other,
			D3DKMT_HANDLE *a)
{
	D3DKMT_OPENADAPTERFROMLUID adapter = {.AdapterLuid = h->w.luid};
	D3DDDI_OPENALLOCATIONINFO info = {0};
	struct softgpu_allocation data;

	vidmm_d3dkmt_enter(h->w.other);
	assert_int_equal(D3DKMTOpenAdapterFromLuid(&adapter), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = adapter.hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	other->device = device.hDevice;
	D3DKMT_QUERYRESOURCEINFO ask = {.hDevice = device.hDevice, .hGlobalShare = global};
	assert_int_equal(D3DKMTQueryResourceInfo(&ask), STATUS_SUCCESS);
	/* ROP-03: what the miniport answered for the allocation, not for the resource */
	assert_int_equal(ask.TotalPrivateDriverDataSize, sizeof(data));
	assert_int_equal(ask.ResourcePrivateDriverDataSize, 0);
	assert_int_equal(ask.NumAllocations, 1);
	D3DKMT_OPENRESOURCE open = {.hDevice = device.hDevice,
				    .hGlobalShare = global,
				    .NumAllocations = 1,
				    .pOpenAllocationInfo = &info,
				    .pTotalPrivateDriverDataBuffer = &data,
				    .TotalPrivateDriverDataBufferSize = sizeof(data)};
	assert_int_equal(D3DKMTOpenResource(&open), STATUS_SUCCESS);
	assert_int_equal(open.TotalPrivateDriverDataBufferSize, sizeof(data));
	assert_int_equal(info.PrivateDriverDataSize, sizeof(data));
	assert_ptr_equal(info.pPrivateDriverData, &data);
	assert_int_equal(data.size_bytes, BYTES);
	open.TotalPrivateDriverDataBufferSize--;
	assert_int_equal(D3DKMTOpenResource(&open), STATUS_NO_MEMORY);
	kmt_found(&h->w, "ROP-02");
	/* With size 0 nothing is returned, with or without a pointer. */
	for (int i = 0; i < 2; i++) {
		open.pTotalPrivateDriverDataBuffer = i ? &data : NULL;
		open.TotalPrivateDriverDataBufferSize = 0;
		memset(&data, 0x3C, sizeof(data));
		info = (D3DDDI_OPENALLOCATIONINFO){.PrivateDriverDataSize = 0xdead};
		assert_int_equal(D3DKMTOpenResource(&open), STATUS_SUCCESS);
		assert_int_equal(open.TotalPrivateDriverDataBufferSize, 0);
		assert_int_equal(info.PrivateDriverDataSize, 0);
		assert_null(info.pPrivateDriverData);
		assert_int_equal(data.version, 0x3C3C3C3C);
	}
	*a = info.hAllocation;
}

static void rop_03_a_shared_section_has_the_miniports_private_data(void **state)
{
	struct kmt_world other = {0};
	struct creation c;
	D3DKMT_HANDLE a;
	struct heap h;

	start(&h, state);
	int fd = new_section(BYTES);
	uint32_t *seen = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(seen != MAP_FAILED);
	prepare(&h, &c, SECTION | CREATE_RESOURCE | CREATE_SHARED);
	name_section(&c, fd);
	miniport.resource_bytes = 16;
	/* its content would have to be copied back when no reference is left */
	miniport.in_memory = true;
	assert_int_equal(create(&c), STATUS_NOT_SUPPORTED);
	miniport.in_memory = false;
	assert_int_equal(create(&c), STATUS_SUCCESS);
	close(fd);
	assert_int_equal(miniport.created_bytes, 16); /* the miniport gets it back */
	assert_int_equal(miniport.created_byte, 0xB5);
	fill(&h.w, c.info[0].hAllocation, 0xFEED0001);
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0xFEED0001);
	open_shared(&h, c.args.hGlobalShare, &other, &a);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(kmt_destroy(&h.w, c.args.hResource, NULL, 0), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(h.w.other); /* the process that still uses it */
	fill(&other, a, 0xFEED0002);
	assert_int_equal(kmt_destroy(&other, 0, &a, 1), STATUS_SUCCESS);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = other.device}; /* waits for the GPU */
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	assert_int_equal(seen[0], 0xFEED0002);
	assert_int_equal(munmap(seen, BYTES), 0);
	stop(&h);
}

/* ---- shared heaps of client memory (ALF-40) ---- */

/* Opens the resource once more in the same device. */
static D3DKMT_HANDLE open_again(const struct heap *h, D3DKMT_HANDLE global)
{
	D3DDDI_OPENALLOCATIONINFO info = {0};
	D3DKMT_OPENRESOURCE open = {.hDevice = h->w.device,
				    .hGlobalShare = global,
				    .NumAllocations = 1,
				    .pOpenAllocationInfo = &info};

	assert_int_equal(D3DKMTOpenResource(&open), STATUS_SUCCESS);
	return info.hAllocation;
}

static void alf_38_alf_40_a_shared_heap_is_the_creators_memory(void **state)
{
	struct kmt_world other = {0};
	struct creation c;
	D3DKMT_HANDLE a;
	struct heap h;
	void *data;

	start(&h, state);
	memset(h.memory, 0x5A, BYTES);
	prepare(&h, &c, HEAP | CREATE_RESOURCE | CREATE_SHARED);
	miniport.in_memory = true; /* the GPU would have its own copy */
	assert_int_equal(create(&c), STATUS_NOT_SUPPORTED);
	assert_int_equal(c.args.hGlobalShare, 0);
	miniport.in_memory = false;
	assert_int_equal(create(&c), STATUS_SUCCESS);
	assert_int_equal(kmt_lock(&h.w, &c.info[0].hAllocation, 0, &data), STATUS_SUCCESS);
	assert_ptr_equal(data, h.memory);
	assert_int_equal(*(uint32_t *)data, 0x5A5A5A5A);
	assert_int_equal(kmt_unlock(&h.w, c.info[0].hAllocation), STATUS_SUCCESS);
	open_shared(&h, c.args.hGlobalShare, &other, &a);
	fill(&other, a, 0xFEED0001);
	/* LOCK-24: only the creator locks it. */
	assert_int_equal(kmt_lock(&other, &a, 0, &data), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "LOCK-24");
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0xFEED0001);
	assert_int_equal(kmt_destroy(&h.w, c.args.hResource, NULL, 0), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(h.w.other); /* the process that still uses it */
	fill(&other, a, 0xFEED0002);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = other.device};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	assert_int_equal(*(uint32_t *)h.memory, 0xFEED0002);
	assert_int_equal(*(uint32_t *)(h.memory + PAGE), 0x5A5A5A5A);
	stop(&h);
}

/* ALF-13: when the last handle has ended, the GPU's writes are there and no more will come. */
static void alf_40_the_last_handle_releases_the_memory(void **state)
{
	struct creation c;
	struct heap h;

	start(&h, state);
	prepare(&h, &c, HEAP | CREATE_RESOURCE | CREATE_SHARED);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	D3DKMT_HANDLE a = open_again(&h, c.args.hGlobalShare);
	fill(&h.w, c.info[0].hAllocation, 0xFEED0003);
	assert_int_equal(kmt_destroy(&h.w, c.args.hResource, NULL, 0), STATUS_SUCCESS);
	fill(&h.w, a, 0xFEED0004);
	assert_int_equal(kmt_destroy(&h.w, 0, &a, 1), STATUS_SUCCESS);
	if (!client_is_out_of_process()) /* otherwise nothing waits for the GPU */
		assert_int_equal(*(uint32_t *)h.memory, 0xFEED0004);
	/* It may be a heap again. */
	prepare(&h, &c, HEAP);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	fill(&h.w, c.info[0].hAllocation, 0xFEED0005);
	assert_int_equal(kmt_destroy(&h.w, 0, &c.info[0].hAllocation, 1), STATUS_SUCCESS);
	assert_int_equal(*(uint32_t *)h.memory, 0xFEED0005);
	stop(&h);
}

/* An NT handle names the resource and keeps no memory of an in-process client. */
static void alf_40_an_nt_handle_does_not_keep_the_memory(void **state)
{
	struct softgpu_allocation total;
	D3DDDI_OPENALLOCATIONINFO2 info = {0};
	struct creation c;
	struct heap h;
	HANDLE nt;

	start(&h, state);
	prepare(&h, &c, HEAP | CREATE_RESOURCE | CREATE_SHARED | NT_SECURITY);
	assert_int_equal(create(&c), STATUS_SUCCESS);
	assert_int_equal(D3DKMTShareObjects(1, &c.args.hResource, NULL, 0x20000, &nt), 0);
	D3DKMT_OPENRESOURCEFROMNTHANDLE open = {.hDevice = h.w.device,
						.hNtHandle = nt,
						.NumAllocations = 1,
						.pOpenAllocationInfo2 = &info,
						.pTotalPrivateDriverDataBuffer = &total,
						.TotalPrivateDriverDataBufferSize = sizeof(total)};
	assert_int_equal(D3DKMTOpenResourceFromNtHandle(&open), STATUS_SUCCESS);
	fill(&h.w, info.hAllocation, 0xFEED0006);
	assert_int_equal(kmt_destroy(&h.w, c.args.hResource, NULL, 0), STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&h.w, open.hResource, NULL, 0), STATUS_SUCCESS);
	open.TotalPrivateDriverDataBufferSize = sizeof(total);
	if (client_is_out_of_process()) { /* the section is there as long as the resource */
		assert_int_equal(D3DKMTOpenResourceFromNtHandle(&open), STATUS_SUCCESS);
		fill(&h.w, info.hAllocation, 0xFEED0007);
		assert_int_equal(kmt_destroy(&h.w, open.hResource, NULL, 0), STATUS_SUCCESS);
	} else {
		assert_int_equal(*(uint32_t *)h.memory, 0xFEED0006);
		assert_int_equal(D3DKMTOpenResourceFromNtHandle(&open), STATUS_INVALID_PARAMETER);
		kmt_found(&h.w, "ALF-40");
	}
	close((int)(intptr_t)nt);
	stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alc_01_an_existing_heap_without_type_size_or_memory_is_refused),
		ON_BOTH(alc_02_alf_38_a_heap_has_one_allocation_and_one_kind_of_memory),
		ON_BOTH(alf_38_a_heap_for_an_existing_resource_is_refused),
		ON_BOTH(alc_03_private_data_of_the_resource_is_refused),
		ON_BOTH(alc_03_private_data_of_a_standard_allocation_may_be_any_bytes),
		ON_BOTH(alc_07_hprivateruntimeresourcehandle_is_unchanged),
		ON_BOTH(alf_38_the_miniport_is_asked_for_sizes_then_for_data),
		ON_BOTH(alf_38_a_miniport_that_changes_size_or_flag_fails_the_call),
		ON_BOTH(alf_38_without_the_miniport_ddi_creation_is_not_supported),
		{"sim: out_of_memory_while_creating_a_heap_changes_nothing",
		 out_of_memory_while_creating_a_heap_changes_nothing, NULL, NULL, &kmt_sim},
		ON_BOTH(alf_38_a_heap_uses_the_clients_memory),
		ON_BOTH(alf_38_pnp_05_heap_content_survives_power_off),
		ON_BOTH(alf_11_a_heap_over_unmapped_memory_is_refused),
		ON_BOTH(alf_38_a_section_must_be_large_enough_and_writable),
		ON_BOTH(alf_38_alf_11_an_out_of_process_section_must_be_sealed),
		ON_BOTH(alf_38_allocations_over_one_section_share_its_content),
		ON_BOTH(alf_11_a_heap_over_a_locked_sections_address_is_refused),
		ON_BOTH(rop_03_a_shared_section_has_the_miniports_private_data),
		ON_BOTH(alf_38_alf_40_a_shared_heap_is_the_creators_memory),
		ON_BOTH(alf_40_the_last_handle_releases_the_memory),
		ON_BOTH(alf_40_an_nt_handle_does_not_keep_the_memory),
	};

	return cmocka_run_group_tests_name("kmt_standard", tests, NULL, NULL);
}
