/* SPDX-License-Identifier: MIT */
/*
 * Unusual locks during an adapter reset (TDR-11): an alternate address, or a page list. The
 * pointers stay valid and reach no bytes of another allocation.
 */
#include "base/base.h"
#include "world.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 64 * 1024, WORDS = BYTES / 4, STRIDE = 512 };

/* A reset of the engine alone would not change memory. */
static const struct vidmm_registry_value whole[] = {{"PerEngineTdr", 0}};
static const struct client_options small = {
	.vram_bytes = 2 * MIB, .aperture_bytes = 4 * MIB, .registry = whole, .registry_count = 1};

/*
 * A miniport whose ranges are in a window behind the segment; 0 bytes: at the allocation's own
 * placement.
 */
static uint64_t window_bytes, bar;

static void keep_a_window(void *context, DXGK_QUERYSEGMENTOUT3 *out)
{
	(void)context;
	if (!out->pSegmentDescriptor)
		return;
	bar = (uint64_t)out->pSegmentDescriptor[0].CpuTranslatedAddress.QuadPart;
	out->pSegmentDescriptor[0].Size -= window_bytes;
	out->pSegmentDescriptor[0].CommitLimit -= window_bytes;
}

static bool answer_window(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args, NTSTATUS *status)
{
	(void)context;
	(void)status;
	if (window_bytes)
		args->CPUTranslatedAddress.QuadPart = (LONGLONG)(bar + 2 * MIB - window_bytes);
	return false;
}

/* Another client's device, which the timeout loses first; on virtual time. */
struct guilty {
	struct client_device device;
	struct client_context context;
};

static void open_guilty(struct world *w, struct guilty *g)
{
	client_open(&w->client, &g->device);
	client_context(&g->device, 0, &g->context);
	for (uint32_t i = 0; i < 4; i++) { /* it gets all buffers that it will need */
		client_stall(&g->context, 1000);
		client_submit(&g->context);
	}
	client_idle(&w->client);
}

static void hang_guilty(struct world *w, struct guilty *g)
{
	const struct softgpu_command command = {SOFTGPU_HANG, 0, sizeof(command)};

	client_command(&g->context, &command, sizeof(command));
	client_submit(&g->context);
	vidmm_sleep_until_ns(w->client.host, vidmm_now_ns(w->client.host) + 10000000000);
	client_context_end(&g->context);
	client_close(&g->device);
}

static void hang(struct world *w)
{
	struct guilty g;

	open_guilty(w, &g);
	hang_guilty(w, &g);
}

/*
 * Fills all of video memory with other allocations. Stores through the pointer of the lost lock do
 * not change them.
 */
static void expect_isolated(struct world *w, uint32_t *words, uint32_t count)
{
	struct client_device device;
	struct client_context context;
	uint64_t bytes = 2 * MIB - window_bytes;

	client_open(&w->client, &device);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE all = allocate_in(&device, bytes, CPU, VRAM);
	client_reference(&context, all, true);
	client_submit(&context);
	client_idle(&w->client);
	assert_int_equal(client_residency(&device, all), IN_VRAM);
	uint32_t *theirs = client_lock(&device, all, 0);

	for (uint32_t i = 0; i < bytes / 4; i++)
		theirs[i] = 0x77777777;
	for (uint32_t i = 0; i < count; i++)
		words[i] = 0x88888888;
	for (uint32_t i = 0; i < bytes / 4; i++)
		assert_int_equal(theirs[i], 0x77777777);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(words[i], 0x88888888);
	assert_int_equal(client_unlock(&device, all), S_OK);
	vidmm_adapter_check(w->client.adapter);
	client_context_end(&context);
	client_close(&device);
}

static D3DKMT_HANDLE tiled_in_vram(struct world *w)
{
	struct softgpu_allocation wish = wish_of(BYTES, CPU | SOFTGPU_ALLOCATION_TILED_Y, VRAM);

	wish.stride_bytes = STRIDE;
	D3DKMT_HANDLE a = allocate_wish(&w->device, &wish);
	use_now(w, a, true);
	assert_int_equal(client_residency(&w->device, a), IN_VRAM);
	return a;
}

static void alternate_address_lock_across_reset(void **state)
{
	struct world w;

	probe.edit_segments = keep_a_window;
	world_start(&w, state, &small);
	probe.answer_acquire = answer_window;
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);

	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, ACQUIRE_APERTURE | USE_ALTERNATE_VA);

	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = 0x66666666;
	hang(&w);
	for (uint32_t i = 0; i < WORDS; i++)
		assert_int_equal(words[i], 0); /* content in video memory is lost */
	vidmm_adapter_check(w.client.adapter);
	expect_isolated(&w, words, WORDS);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_forget(&w.client);
	world_stop(&w);
}

static void tdr_11_swz_24_an_alternate_address_stays_mapped_across_a_reset(void **state)
{
	alternate_address_lock_across_reset(state);
	window_bytes = BYTES;
	alternate_address_lock_across_reset(state);
	window_bytes = 0;
}

static void tdr_11_lock_21_listed_pages_stay_mapped_across_a_reset(void **state)
{
	static const UINT list[] = {3, 4};
	struct world w;
	void *data;

	world_start(&w, state, &small);
	D3DKMT_HANDLE a = tiled_in_vram(&w), b = tiled_in_vram(&w), handle = a;
	assert_int_equal(lock_pages(&w.device, &handle, ACQUIRE_APERTURE, list, 2, &data), S_OK);
	uint32_t *words = data;

	for (uint32_t i = 0; i < 2 * PAGE / 4; i++)
		words[i] = 0x55555555;
	/* The same for an unlocked one whose pages have not been copied back yet. */
	assert_int_equal(lock_pages(&w.device, &b, ACQUIRE_APERTURE, list, 2, &data), S_OK);
	hang(&w);
	vidmm_adapter_check(w.client.adapter);
	expect_isolated(&w, words, 2 * PAGE / 4);
	assert_int_equal(client_unlock(&w.device, b), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	vidmm_adapter_check(w.client.adapter);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	assert_int_equal(client_deallocate(&w.device, b), S_OK);
	client_forget(&w.client);
	world_stop(&w);
}

static bool is_readable(const void *address)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	ssize_t written = write(ends[1], address, 4);

	assert_true(written == 4 || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return written == 4;
}

/* No pages are left that the pointer could reach instead: it faults, and a reason says so. */
static void lose_pointer(void **state, uint32_t flags)
{
	struct client_options little = small;
	struct guilty g;
	struct world w;

	little.system_memory_bytes = 2 * MIB;
	world_start(&w, state, &little);
	open_guilty(&w, &g);
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);
	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, flags);
	words[0] = 0x55555555;
	(void)lock_all_system_memory(&w, PAGE);
	w.client.reasons = 0;
	hang_guilty(&w, &g);
	assert_false(is_readable(words));
	assert_non_null(strstr(w.client.reason, "TDR-11: adapter reset: no system memory"));
	vidmm_adapter_check(w.client.adapter);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_forget(&w.client);
	world_stop(&w);
}

static void tdr_11_without_system_memory_the_pointer_of_a_lock_faults(void **state)
{
	lose_pointer(state, 0);
	lose_pointer(state, ACQUIRE_APERTURE | USE_ALTERNATE_VA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(tdr_11_swz_24_an_alternate_address_stays_mapped_across_a_reset),
		ON_SIM(tdr_11_lock_21_listed_pages_stay_mapped_across_a_reset),
		ON_SIM(tdr_11_without_system_memory_the_pointer_of_a_lock_faults),
	};

	(void)on_linux;
	return cmocka_run_group_tests_name("locks over a reset", tests, NULL, NULL);
}
