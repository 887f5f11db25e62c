/* SPDX-License-Identifier: MIT */
/*
 * Cross-adapter resources (ALF-39): two adapters, two processes, one surface. softgpu knows no
 * pixels; a wrapper here describes surfaces, and a test may change its answers.
 */
#include "kmt_world.h"

#include "base/base.h"
#include "support/softgpu_table.h"

#include <d3dkmddi.h>
#include <dispmprt.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PAGE (4 * KIB)

/* 1000 pixels of 4 bytes make rows of 4096 bytes (a multiple of 128); 5 rows count as 8. */
enum { WIDTH = 1000, HEIGHT = 5, PITCH = 4096, ROWS = 8, BYTES = PITCH * ROWS };
enum { READ_ONLY = 0x1 };
enum { APERTURE = 0x2, BOTH_SEGMENTS = 0x3 };
enum { CREATE_RESOURCE = 0x1, CREATE_SHARED = 0x2, CROSS_ADAPTER = 0x800, NT_SECURITY = 0x40 };
#define CROSS (CREATE_RESOURCE | CREATE_SHARED | CROSS_ADAPTER)

/* ---- a miniport that describes surfaces ---- */

static DRIVER_INITIALIZATION_DATA softgpu;
static bool no_cap; /* read at the start */
static struct {
	D3DDDIFORMAT format;
	UINT width, pitch;    /* what is described; what the opening miniport answers */
	uint64_t opened_size; /* the size that the opening miniport asks to create */
	NTSTATUS describe, standard;
	_Atomic uint32_t created, destroyed, asked;
	D3DKMDT_GDISURFACEDATA question;
} miniport;

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT, PUNICODE_STRING, PDRIVER_INITIALIZATION_DATA);

static NTSTATUS APIENTRY query_adapter_info(IN_CONST_HANDLE hAdapter,
					    IN_CONST_PDXGKARG_QUERYADAPTERINFO args)
{
	NTSTATUS status = softgpu.DxgkDdiQueryAdapterInfo(hAdapter, args);

	if (args->Type == DXGKQAITYPE_DRIVERCAPS && NT_SUCCESS(status)) {
		DXGK_DRIVERCAPS *caps = args->pOutputData;

		caps->MemoryManagementCaps.CrossAdapterResource = !no_cap;
	}
	return status;
}

static NTSTATUS APIENTRY describe_allocation(IN_CONST_HANDLE hAdapter,
					     INOUT_PDXGKARG_DESCRIBEALLOCATION args)
{
	(void)hAdapter;
	args->Width = miniport.width;
	args->Height = HEIGHT;
	args->Format = miniport.format;
	return miniport.describe;
}

static NTSTATUS APIENTRY standard_data(IN_CONST_HANDLE hAdapter,
				       INOUT_PDXGKARG_GETSTANDARDALLOCATIONDRIVERDATA args)
{
	const struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
						.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						.size_bytes = miniport.opened_size,
						.segment_set = APERTURE};

	(void)hAdapter;
	atomic_fetch_add(&miniport.asked, 1);
	miniport.question = *args->pCreateGdiSurfaceData;
	args->pCreateGdiSurfaceData->Pitch = miniport.pitch;
	args->AllocationPrivateDriverDataSize = sizeof(wish);
	if (args->pAllocationPrivateDriverData)
		memcpy(args->pAllocationPrivateDriverData, &wish, sizeof(wish));
	return miniport.standard;
}

static NTSTATUS APIENTRY create_allocation(IN_CONST_HANDLE hAdapter,
					   INOUT_PDXGKARG_CREATEALLOCATION args)
{
	NTSTATUS status = softgpu.DxgkDdiCreateAllocation(hAdapter, args);

	if (NT_SUCCESS(status))
		atomic_fetch_add(&miniport.created, args->NumAllocations);
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
	ours.DxgkDdiQueryAdapterInfo = query_adapter_info;
	ours.DxgkDdiDescribeAllocation = describe_allocation;
	ours.DxgkDdiGetStandardAllocationDriverData = standard_data;
	ours.DxgkDdiCreateAllocation = create_allocation;
	ours.DxgkDdiDestroyAllocation = destroy_allocation;
	return __real_DxgkInitialize(driver, path, &ours);
}

static void reset_miniport(void)
{
	miniport.format = D3DDDIFMT_A8R8G8B8;
	miniport.width = WIDTH;
	miniport.pitch = PITCH;
	miniport.opened_size = BYTES;
	miniport.describe = miniport.standard = STATUS_SUCCESS;
}

/* ---- two adapters: the first is the attached process's, the second the other process's ---- */

struct hybrid {
	struct kmt_world w, other; /* of `other`: its device */
	struct vidmm_adapter *second;
	D3DKMT_HANDLE second_handle;
};

static void start(struct hybrid *h, void **state)
{
	static const uint64_t bar = 1 * MIB;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar,
						      .bar_count = 1,
						      .tdr = &client_no_tdr};
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};

	memset(&miniport, 0, sizeof(miniport));
	memset(&h->other, 0, sizeof(h->other));
	reset_miniport();
	kmt_start(&h->w, state);
	assert_int_equal(vidmm_adapter_start(h->w.client.host, &options, &h->second), 0);
	vidmm_d3dkmt_enter(h->w.other);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	h->second_handle = info[1].hAdapter;
	D3DKMT_CREATEDEVICE device = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	h->other.device = device.hDevice;
	vidmm_d3dkmt_enter(NULL);
}

static void stop(struct hybrid *h)
{
	vidmm_d3dkmt_enter(NULL);
	vidmm_adapter_stop(h->second);
	kmt_stop(&h->w);
	assert_int_equal(miniport.created, miniport.destroyed);
}

struct creation {
	struct softgpu_allocation wish;
	D3DDDI_ALLOCATIONINFO info[2];
	D3DKMT_CREATEALLOCATION args;
};

static void prepare(const struct hybrid *h, struct creation *c, uint32_t flags)
{
	memset(c, 0, sizeof(*c));
	c->wish = (struct softgpu_allocation){.version = SOFTGPU_ALLOCATION_VERSION,
					      .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					      .size_bytes = BYTES,
					      .segment_set = APERTURE};
	for (int i = 0; i < 2; i++) {
		c->info[i].pPrivateDriverData = &c->wish;
		c->info[i].PrivateDriverDataSize = sizeof(c->wish);
	}
	c->args = (D3DKMT_CREATEALLOCATION){
		.hDevice = h->w.device, .NumAllocations = 1, .pAllocationInfo = c->info};
	memcpy(&c->args.Flags, &flags, sizeof(flags));
}

static void expect_refused(struct hybrid *h, struct creation *c, const char *rule)
{
	assert_int_equal(D3DKMTCreateAllocation(&c->args), STATUS_INVALID_PARAMETER);
	kmt_found(&h->w, rule);
	assert_int_equal(c->args.hGlobalShare, 0);
	assert_int_equal(c->info[0].hAllocation, 0);
	assert_int_equal(miniport.created, miniport.destroyed);
}

static void create(struct hybrid *h, struct creation *c)
{
	prepare(h, c, CROSS);
	assert_int_equal(D3DKMTCreateAllocation(&c->args), STATUS_SUCCESS);
}

/* In the other process, on the second adapter. */
static NTSTATUS try_open(const struct hybrid *h, D3DKMT_HANDLE global, D3DKMT_HANDLE *resource,
			 D3DKMT_HANDLE *a)
{
	struct softgpu_allocation total;
	D3DDDI_OPENALLOCATIONINFO info = {0};
	D3DKMT_OPENRESOURCE open = {.hDevice = h->other.device,
				    .hGlobalShare = global,
				    .NumAllocations = 1,
				    .pOpenAllocationInfo = &info,
				    .pTotalPrivateDriverDataBuffer = &total,
				    .TotalPrivateDriverDataBufferSize = sizeof(total)};

	vidmm_d3dkmt_enter(h->w.other);
	NTSTATUS status = D3DKMTOpenResource(&open);
	vidmm_d3dkmt_enter(NULL);
	*resource = open.hResource;
	*a = info.hAllocation;
	return status;
}

/*
 * The GPU of that device executes it, for the process that has been entered. Returns when it is
 * complete.
 */
static void by_gpu(struct kmt_world *w, D3DKMT_HANDLE a, D3DKMT_HANDLE into, uint32_t word)
{
	struct client_context c;
	D3DKMT_RENDER args = {0};
	void *data;

	kmt_context(w, &c);
	if (into)
		client_copy(&c, a, into, PAGE);
	else
		client_fill(&c, a, PAGE, word);
	assert_int_equal(kmt_render(&c, &args), STATUS_SUCCESS);
	const D3DKMT_DESTROYCONTEXT end = {.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext};
	assert_int_equal(D3DKMTDestroyContext(&end), STATUS_SUCCESS);
	if (!into)
		return;
	assert_int_equal(kmt_lock(w, &into, READ_ONLY, &data), STATUS_SUCCESS);
	assert_int_equal(*(uint32_t *)data, word);
	assert_int_equal(kmt_unlock(w, into), STATUS_SUCCESS);
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

/* ---- requests to create one ---- */

static void alf_39_a_cross_adapter_resource_is_one_shared_allocation(void **state)
{
	struct creation c;
	struct hybrid h;

	start(&h, state);
	prepare(&h, &c, CROSS_ADAPTER | CREATE_RESOURCE);
	expect_refused(&h, &c, "ALF-39");
	prepare(&h, &c, CROSS);
	c.args.NumAllocations = 2;
	expect_refused(&h, &c, "ALF-39");
	prepare(&h, &c, CROSS);
	c.info[0].Flags.Primary = 1;
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_NOT_SUPPORTED);
	prepare(&h, &c, CROSS | 0x10020); /* an existing heap */
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_NOT_SUPPORTED);
	create(&h, &c);
	stop(&h);
}

static void alf_39_other_flags_and_segments_are_refused(void **state)
{
	static const uint32_t wrong[] = {0, SOFTGPU_ALLOCATION_CACHED, SOFTGPU_ALLOCATION_PROTECTED,
					 SOFTGPU_ALLOCATION_PERMANENT_SYSTEM};
	struct creation c;
	struct hybrid h;

	start(&h, state);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		prepare(&h, &c, CROSS);
		c.wish.flags = i ? c.wish.flags | wrong[i] : 0;
		expect_refused(&h, &c, "ALF-39");
	}
	prepare(&h, &c, CROSS);
	c.wish.segment_set = BOTH_SEGMENTS;
	expect_refused(&h, &c, "ALF-39");
	prepare(&h, &c, CROSS);
	c.wish.flags |= SOFTGPU_ALLOCATION_TILED_X;
	c.wish.stride_bytes = PITCH;
	c.wish.segment_set = BOTH_SEGMENTS; /* softgpu tiles only with both segments */
	expect_refused(&h, &c, "ALF-39");
	prepare(&h, &c, CROSS);
	c.wish.flags |= SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING;
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_NOT_SUPPORTED);
	assert_int_equal(miniport.created, miniport.destroyed);
	stop(&h);
}

static void alf_39_pitch_and_height_are_rounded_up(void **state)
{
	struct creation c;
	struct hybrid h;

	start(&h, state);
	prepare(&h, &c, CROSS);
	c.wish.size_bytes = BYTES - PAGE; /* space for 7 rows of 4096, or for more of 4000 */
	expect_refused(&h, &c, "ALF-39");
	miniport.width = 0;
	prepare(&h, &c, CROSS);
	expect_refused(&h, &c, "ALF-39");
	miniport.width = WIDTH / 2; /* in rows of 2048 */
	prepare(&h, &c, CROSS);
	c.wish.size_bytes = BYTES / 2;
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_SUCCESS);
	stop(&h);
}

static void alf_39_creation_fails_if_the_miniport_does_not_support_it(void **state)
{
	D3DKMT_CROSSADAPTERRESOURCE_SUPPORT support;
	D3DKMT_QUERYADAPTERINFO ask = {.Type = KMTQAITYPE_CROSSADAPTERRESOURCE_SUPPORT,
				       .pPrivateDriverData = &support,
				       .PrivateDriverDataSize = sizeof(support)};
	struct creation c;
	struct hybrid h;

	no_cap = true;
	start(&h, state);
	no_cap = false;
	prepare(&h, &c, CROSS);
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_NOT_SUPPORTED);
	ask.hAdapter = h.w.adapter;
	assert_int_equal(D3DKMTQueryAdapterInfo(&ask), STATUS_SUCCESS);
	assert_int_equal(support.SupportTier, D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_NONE);
	stop(&h);
	start(&h, state);
	ask.hAdapter = h.w.adapter;
	assert_int_equal(D3DKMTQueryAdapterInfo(&ask), STATUS_SUCCESS);
	assert_int_equal(support.SupportTier, D3DKMT_CROSSADAPTERRESOURCE_SUPPORT_TIER_COPY);
	miniport.format = D3DDDIFMT_UNKNOWN;
	prepare(&h, &c, CROSS);
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_NOT_SUPPORTED);
	reset_miniport();
	miniport.describe = STATUS_NOT_SUPPORTED;
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_NOT_SUPPORTED);
	assert_int_equal(miniport.created, miniport.destroyed);
	stop(&h);
}

/* ---- requests to open one ---- */

static void alf_39_the_opening_miniport_is_asked_for_the_same_surface(void **state)
{
	D3DKMT_HANDLE resource, a;
	struct creation c;
	struct hybrid h;

	start(&h, state);
	create(&h, &c);
	assert_int_equal(atomic_load(&miniport.asked), 0);
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &a), STATUS_SUCCESS);
	assert_int_equal(atomic_load(&miniport.asked), 2);
	assert_int_equal(miniport.question.Type,
			 D3DKMDT_GDISURFACE_TEXTURE_CPUVISIBLE_CROSSADAPTER);
	assert_int_equal(miniport.question.Width, WIDTH);
	assert_int_equal(miniport.question.Height, HEIGHT);
	assert_int_equal(miniport.question.Format, D3DDDIFMT_A8R8G8B8);
	assert_int_not_equal(resource, 0);
	assert_true(resource < a); /* HND-08 */
	stop(&h);
}

static void alf_39_opening_fails_if_the_miniport_describes_another_surface(void **state)
{
	D3DKMT_HANDLE resource, a;
	struct creation c;
	struct hybrid h;

	start(&h, state);
	create(&h, &c);
	for (int i = 0; i < 4; i++) {
		uint32_t before = atomic_load(&miniport.created) - atomic_load(&miniport.destroyed);

		reset_miniport();
		if (i == 0)
			miniport.pitch = WIDTH * 4;
		if (i == 1)
			miniport.pitch = 2 * PITCH;
		if (i == 2)
			miniport.opened_size = BYTES + PAGE;
		if (i == 3)
			miniport.opened_size = BYTES - PAGE;
		assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &a),
				 STATUS_INVALID_PARAMETER);
		kmt_found(&h.w, "ALF-39");
		assert_int_equal(resource, 0);
		assert_int_equal(a, 0);
		assert_int_equal(miniport.created - miniport.destroyed, before);
	}
	reset_miniport();
	miniport.standard = STATUS_NOT_SUPPORTED;
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &a), STATUS_NOT_SUPPORTED);
	reset_miniport();
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &a), STATUS_SUCCESS);
	stop(&h);
}

static void rop_07_only_cross_adapter_resources_open_on_another_adapter(void **state)
{
	D3DKMT_HANDLE resource, a;
	struct creation c;
	struct hybrid h;

	start(&h, state);
	prepare(&h, &c, CREATE_RESOURCE | CREATE_SHARED);
	assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_SUCCESS);
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &a),
			 STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ROP-07");
	create(&h, &c);
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &a), STATUS_SUCCESS);
	stop(&h);
}

/* The same by an NT handle, which has no number that other processes could guess. */
static NTSTATUS try_open_nt(const struct hybrid *h, int nt, D3DKMT_HANDLE *a)
{
	struct softgpu_allocation total;
	D3DDDI_OPENALLOCATIONINFO2 info = {0};
	D3DKMT_OPENRESOURCEFROMNTHANDLE open = {.hDevice = h->other.device,
						.hNtHandle = (HANDLE)(intptr_t)nt,
						.NumAllocations = 1,
						.pOpenAllocationInfo2 = &info,
						.pTotalPrivateDriverDataBuffer = &total,
						.TotalPrivateDriverDataBufferSize = sizeof(total)};

	vidmm_d3dkmt_enter(h->w.other);
	NTSTATUS status = D3DKMTOpenResourceFromNtHandle(&open);
	vidmm_d3dkmt_enter(NULL);
	*a = info.hAllocation;
	return status;
}

static void rop_07_alf_39_an_nt_handle_opens_on_another_adapter(void **state)
{
	D3DKMT_HANDLE a;
	struct hybrid h;

	start(&h, state);
	for (uint32_t crosses = 0; crosses < 2; crosses++) {
		struct creation c;
		HANDLE nt;

		prepare(&h, &c, (crosses ? CROSS : CREATE_RESOURCE | CREATE_SHARED) | NT_SECURITY);
		assert_int_equal(D3DKMTCreateAllocation(&c.args), STATUS_SUCCESS);
		assert_int_equal(c.args.hGlobalShare, 0);
		assert_int_equal(D3DKMTShareObjects(1, &c.args.hResource, NULL, 0x20000, &nt), 0);
		assert_int_equal(try_open_nt(&h, (int)(intptr_t)nt, &a),
				 crosses ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
		if (!crosses)
			kmt_found(&h.w, "ROP-07");
		close((int)(intptr_t)nt);
	}
	vidmm_d3dkmt_enter(h.w.other);
	by_gpu(&h.other, a, 0, 0x5a5a5a5a);
	vidmm_d3dkmt_enter(NULL);
	stop(&h);
}

/* ---- the content ---- */

static void alf_39_two_gpus_see_one_memory(void **state)
{
	D3DKMT_HANDLE resource, theirs;
	struct creation c;
	struct hybrid h;

	start(&h, state);
	create(&h, &c);
	D3DKMT_HANDLE ours = c.info[0].hAllocation;
	assert_int_equal(first_word(&h.w, ours), 0); /* and new content is zero */
	by_gpu(&h.w, ours, 0, 0xCAFE0001);
	assert_int_equal(first_word(&h.w, ours), 0xCAFE0001); /* the GPU has completed it */
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &theirs), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(h.w.other);
	D3DKMT_HANDLE copy = kmt_allocate(&h.other, PAGE);
	by_gpu(&h.other, theirs, copy, 0xCAFE0001);
	by_gpu(&h.other, theirs, 0, 0xCAFE0002);
	by_gpu(&h.other, theirs, copy, 0xCAFE0002);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(first_word(&h.w, ours), 0xCAFE0002);
	vidmm_adapter_check(h.w.client.adapter);
	vidmm_adapter_check(h.second);
	/* LOCK-24 applies across adapters, too. */
	void *data;
	vidmm_d3dkmt_enter(h.w.other);
	assert_int_equal(kmt_lock(&h.other, &theirs, READ_ONLY, &data), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "LOCK-24");
	stop(&h);
}

static void alf_39_the_resource_outlives_its_creator(void **state)
{
	D3DKMT_HANDLE resource, theirs, none;
	struct creation c;
	struct hybrid h;

	start(&h, state);
	create(&h, &c);
	by_gpu(&h.w, c.info[0].hAllocation, 0, 0xBEEF0001);
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0xBEEF0001);
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &theirs), STATUS_SUCCESS);
	const D3DKMT_DESTROYDEVICE end = {.hDevice = h.w.device};
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &none, &none), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "ROP-01"); /* no reference to the resource is left */
	vidmm_d3dkmt_enter(h.w.other);
	D3DKMT_HANDLE copy = kmt_allocate(&h.other, PAGE);
	by_gpu(&h.other, theirs, copy, 0xBEEF0001);
	/* Destroying its last allocation ends the opened resource. */
	assert_int_equal(kmt_destroy(&h.other, 0, &theirs, 1), STATUS_SUCCESS);
	assert_int_equal(kmt_destroy(&h.other, resource, NULL, 0), STATUS_INVALID_PARAMETER);
	kmt_found(&h.w, "HND-07");
	stop(&h);
}

static void alf_39_pnp_05_one_adapter_works_while_the_other_has_no_power(void **state)
{
	D3DKMT_HANDLE resource, theirs;
	struct creation c;
	struct hybrid h;

	start(&h, state);
	create(&h, &c);
	D3DKMT_HANDLE ours = c.info[0].hAllocation, copy = kmt_allocate(&h.w, PAGE);
	by_gpu(&h.w, ours, copy, 0);
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &theirs), STATUS_SUCCESS);
	assert_int_equal(
		vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		0);
	vidmm_d3dkmt_enter(h.w.other);
	D3DKMT_HANDLE mine = kmt_allocate(&h.other, PAGE);
	by_gpu(&h.other, theirs, 0, 0x51EE9);
	by_gpu(&h.other, theirs, mine, 0x51EE9);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(vidmm_adapter_set_power(h.w.client.adapter, VIDMM_POWER_D0, 0), 0);
	by_gpu(&h.w, ours, copy, 0x51EE9);
	vidmm_adapter_check(h.w.client.adapter);
	stop(&h);
}

static void alf_39_the_opening_adapter_may_stop_first(void **state)
{
	D3DKMT_HANDLE resource, theirs;
	struct creation c;
	struct hybrid h;

	start(&h, state);
	create(&h, &c);
	assert_int_equal(try_open(&h, c.args.hGlobalShare, &resource, &theirs), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(h.w.other);
	by_gpu(&h.other, theirs, 0, 0xF00D);
	vidmm_d3dkmt_enter(NULL);
	vidmm_adapter_stop(h.second); /* with packets of its device in flight */
	assert_int_equal(first_word(&h.w, c.info[0].hAllocation), 0xF00D);
	kmt_stop(&h.w);
	assert_int_equal(miniport.created, miniport.destroyed);
}

/* Every internal allocation fails in turn; a failed creation leaves nothing behind. */
static void out_of_memory_while_creating_a_cross_adapter_resource(void **state)
{
	D3DKMT_HANDLE resource, a;
	uint32_t attempts = 0, live;
	struct creation c;
	NTSTATUS status;
	struct hybrid h;

	start(&h, state);
	do {
		prepare(&h, &c, CROSS);
		vmm_calloc_fail_after(++attempts);
		status = D3DKMTCreateAllocation(&c.args);
		vmm_calloc_fail_after(0);
		assert_true(!status || status == STATUS_NO_MEMORY);
		assert_int_equal(miniport.created - miniport.destroyed, status ? 0 : 1);
	} while (status);
	assert_true(attempts > 8);
	live = 1;
	attempts = 0;
	do {
		vmm_calloc_fail_after(++attempts);
		status = try_open(&h, c.args.hGlobalShare, &resource, &a);
		vmm_calloc_fail_after(0);
		assert_true(!status || status == STATUS_NO_MEMORY);
		assert_int_equal(miniport.created - miniport.destroyed, status ? live : live + 1);
	} while (status);
	assert_true(attempts > 8);
	stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(alf_39_a_cross_adapter_resource_is_one_shared_allocation),
		ON_BOTH(alf_39_other_flags_and_segments_are_refused),
		ON_BOTH(alf_39_pitch_and_height_are_rounded_up),
		ON_BOTH(alf_39_creation_fails_if_the_miniport_does_not_support_it),
		ON_BOTH(alf_39_the_opening_miniport_is_asked_for_the_same_surface),
		ON_BOTH(alf_39_opening_fails_if_the_miniport_describes_another_surface),
		ON_BOTH(rop_07_only_cross_adapter_resources_open_on_another_adapter),
		ON_BOTH(rop_07_alf_39_an_nt_handle_opens_on_another_adapter),
		ON_BOTH(alf_39_two_gpus_see_one_memory),
		ON_BOTH(alf_39_the_resource_outlives_its_creator),
		ON_BOTH(alf_39_pnp_05_one_adapter_works_while_the_other_has_no_power),
		ON_BOTH(alf_39_the_opening_adapter_may_stop_first),
		{"sim: out_of_memory_while_creating_a_cross_adapter_resource",
		 out_of_memory_while_creating_a_cross_adapter_resource, NULL, NULL, &kmt_sim},
	};

	return cmocka_run_group_tests_name("kmt_cross_adapter", tests, NULL, NULL);
}
