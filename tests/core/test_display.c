/* SPDX-License-Identifier: MIT */
/* softgpu's display: the monitor shows what was presented, by blit, fill or flip. */
#include <support/client.h>

#include <string.h>
#include <d3dkmthk.h>

enum { WIDTH = 48, HEIGHT = 20, FRAME_NS = 20000000 };
#define MONITOR_BYTES (2u << 20)

static uint32_t on_sim = VIDMM_HOST_SIM, on_linux = VIDMM_HOST_LINUX;

struct screen {
	struct client client;
	struct vidmm_process *process;
	D3DKMT_HANDLE device, context;
};

static void start(struct screen *s, void **state, uint64_t flip_mmio)
{
	const struct vidmm_registry_value registry[] = {{"VideoPresentSources", 2},
							{"FlipMmio", flip_mmio}};
	const struct client_options options = {.kind = *(uint32_t *)*state,
					       .monitor_bytes = MONITOR_BYTES,
					       .registry = registry,
					       .registry_count = 2};
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	memset(s, 0, sizeof(*s));
	client_start(&s->client, &options);
	assert_int_equal(vidmm_process_open(s->client.host, "screen", &s->process), 0);
	vidmm_d3dkmt_attach(s->process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = info.hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	s->device = device.hDevice;
	D3DKMT_CREATECONTEXT context = {.hDevice = s->device};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	s->context = context.hContext;
}

static void stop(struct screen *s)
{
	if (s->client.findings)
		fail_msg("finding: %s", s->client.finding[0]);
	vidmm_process_close(s->process);
	client_stop(&s->client);
}

static D3DKMT_HANDLE picture(struct screen *s, uint32_t width, uint32_t height, int source)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = (uint64_t)width * height * 4,
					  .width = width,
					  .height = height};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec),
				      .VidPnSourceId = source > 0 ? (uint32_t)source : 0};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = s->device, .NumAllocations = 1, .pAllocationInfo = &info};

	info.Flags.Primary = source >= 0;
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

/* Pixel (x, y) gets base + y * 256 + x. */
static void paint(struct screen *s, D3DKMT_HANDLE a, uint32_t width, uint32_t height, uint32_t base)
{
	D3DKMT_LOCK lock = {.hDevice = s->device, .hAllocation = a};
	const D3DKMT_UNLOCK unlock = {
		.hDevice = s->device, .NumAllocations = 1, .phAllocations = &a};

	assert_int_equal(D3DKMTLock(&lock), STATUS_SUCCESS);
	uint32_t *pixel = lock.pData;
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width; x++)
			*pixel++ = base + y * 256 + x;
	assert_int_equal(D3DKMTUnlock(&unlock), STATUS_SUCCESS);
}

static D3DKMT_PRESENT ask(const struct screen *s, D3DKMT_HANDLE from, D3DKMT_HANDLE to,
			  uint32_t flags)
{
	D3DKMT_PRESENT args;

	memset(&args, 0, sizeof(args));
	args.hContext = s->context;
	args.hSource = from;
	args.hDestination = to;
	args.Flags.Value = flags;
	args.FlipInterval = D3DDDI_FLIPINTERVAL_ONE;
	return args;
}

enum { BLT = 0x1, FILL = 0x2, FLIP = 0x4 };

/* On real threads a frame may begin during the comparison: there only the calls are made. */
static bool can_look(const struct screen *s)
{
	return s->client.kind == VIDMM_HOST_SIM;
}

static const struct softgpu_monitor *monitor(const struct screen *s, uint32_t source)
{
	uint64_t bytes = 0;
	const char *bar = vidmm_adapter_bar(s->client.adapter, 1, &bytes);

	assert_int_equal(bytes, MONITOR_BYTES);
	return (const struct softgpu_monitor *)(const void *)(bar + source * (bytes / 2));
}

static void flip(struct screen *s, uint32_t source, D3DKMT_HANDLE primary)
{
	D3DKMT_PRESENT args = ask(s, primary, 0, FLIP);
	uint64_t before = client_events(&s->client, VIDMM_EVENT_DISPLAY);
	uint32_t frame;

	args.VidPnSourceId = source;
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	while (client_events(&s->client, VIDMM_EVENT_DISPLAY) == before)
		vidmm_sleep_until_ns(s->client.host, vidmm_now_ns(s->client.host) + FRAME_NS / 20);
	if (!can_look(s))
		return;
	frame = monitor(s, source)->frame; /* the first flip is visible before it is read */
	for (int i = 0; i < 40 && monitor(s, source)->frame == frame; i++)
		vidmm_sleep_until_ns(s->client.host, vidmm_now_ns(s->client.host) + FRAME_NS / 20);
}

static uint32_t pixel(const struct screen *s, uint32_t source, uint32_t x, uint32_t y)
{
	const struct softgpu_monitor *m = monitor(s, source);
	uint32_t value;

	assert_true(x < m->width && y < m->height);
	memcpy(&value,
	       (const char *)m + SOFTGPU_MONITOR_PIXELS + (size_t)y * m->pitch_bytes + x * 4,
	       sizeof(value));
	return value;
}

static void the_monitor_shows_the_flipped_primary(void **state)
{
	for (uint64_t mmio = 0; mmio < 2; mmio++) {
		struct screen s;

		start(&s, state, mmio);
		D3DKMT_HANDLE a = picture(&s, WIDTH, HEIGHT, 0), b = picture(&s, WIDTH, HEIGHT, 0);
		paint(&s, a, WIDTH, HEIGHT, 0x10000);
		paint(&s, b, WIDTH, HEIGHT, 0x20000);
		/* dark */
		if (can_look(&s))
			assert_int_equal(monitor(&s, 0)->width, 0);
		for (uint32_t i = 0; i < 4; i++) {
			flip(&s, 0, i % 2 ? b : a);
			if (!can_look(&s))
				continue;
			assert_int_equal(monitor(&s, 0)->width, WIDTH);
			assert_int_equal(monitor(&s, 0)->height, HEIGHT);
			for (uint32_t y = 0; y < HEIGHT; y++)
				for (uint32_t x = 0; x < WIDTH; x++)
					assert_int_equal(pixel(&s, 0, x, y),
							 (i % 2 ? 0x20000u : 0x10000u) + y * 256 +
								 x);
		}
		if (can_look(&s))
			assert_int_equal(monitor(&s, 1)->width, 0);
		stop(&s);
	}
}

static void presents_copy_fill_and_stretch(void **state)
{
	struct screen s;

	start(&s, state, 1);
	D3DKMT_HANDLE primary = picture(&s, WIDTH, HEIGHT, 1), small = picture(&s, 8, 4, -1);
	paint(&s, small, 8, 4, 0x30000);
	D3DKMT_PRESENT args = ask(&s, 0, primary, FILL); /* all of it */
	args.Color = 0x123456;
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	args = ask(&s, small, primary, BLT); /* scaled by two in width and three in height */
	args.Flags.DstRectValid = 1;
	args.DstRect = (RECT){10, 5, 26, 17};
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	RECT part = {2, 1, 4, 2};
	args = ask(&s, small, primary, BLT); /* a part of it, unscaled */
	args.Flags.DstRectValid = 1;
	args.DstRect = (RECT){40, 0, 48, 4};
	args.SubRectCnt = 1;
	args.pSrcSubRects = &part;
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	flip(&s, 1, primary);
	for (uint32_t y = 0; can_look(&s) && y < HEIGHT; y++)
		for (uint32_t x = 0; x < WIDTH; x++) {
			uint32_t expected = 0x123456;

			if (x >= 10 && x < 26 && y >= 5 && y < 17)
				expected = 0x30000 + (y - 5) / 3 * 256 + (x - 10) / 2;
			if (x >= 42 && x < 44 && y == 1)
				expected = 0x30000 + 256 + (x - 40);
			assert_int_equal(pixel(&s, 1, x, y), expected);
		}
	stop(&s);
}

/* Allocations that are no picture, rectangles outside, and formats that would need conversion. */
static void invalid_presents_are_refused(void **state)
{
	struct screen s;

	start(&s, state, 1);
	D3DKMT_HANDLE primary = picture(&s, WIDTH, HEIGHT, 0), small = picture(&s, 8, 4, -1);
	D3DKMT_PRESENT args = ask(&s, small, primary, BLT);
	args.Flags.LinearToSrgb = 1;
	assert_int_equal(D3DKMTPresent(&args), STATUS_GRAPHICS_CANNOTCOLORCONVERT);
	args = ask(&s, small, primary, BLT);
	args.Flags.DstRectValid = 1;
	args.DstRect = (RECT){WIDTH - 4, 0, WIDTH + 4, 4};
	assert_int_equal(D3DKMTPresent(&args), STATUS_ILLEGAL_INSTRUCTION);
	struct softgpu_allocation bytes = {.version = SOFTGPU_ALLOCATION_VERSION,
					   .size_bytes = 4096};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &bytes,
				      .PrivateDriverDataSize = sizeof(bytes)};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = s.device, .NumAllocations = 1, .pAllocationInfo = &info};
	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_SUCCESS);
	args = ask(&s, info.hAllocation, primary, BLT);
	assert_int_equal(D3DKMTPresent(&args), STATUS_INVALID_HANDLE);
	bytes.width = 64; /* more pixels than bytes, or a width without a height */
	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_INVALID_PARAMETER);
	bytes.height = 17;
	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_INVALID_PARAMETER);
	stop(&s);
}

/* Many sub rectangles do not fit one DMA buffer (DMA-29). */
static void a_present_of_many_rectangles_takes_several_buffers(void **state)
{
	enum { COUNT = 4096, SIDE = 64 };
	static RECT parts[COUNT];
	struct screen s;

	start(&s, state, 1);
	D3DKMT_HANDLE primary = picture(&s, SIDE, SIDE, 0);
	D3DKMT_PRESENT args = ask(&s, 0, primary, FILL);
	for (LONG i = 0; i < COUNT; i++)
		parts[i] = (RECT){i % SIDE, i / SIDE, i % SIDE + 1, i / SIDE + 1};
	args.SubRectCnt = COUNT;
	args.pSrcSubRects = parts;
	args.Color = 0xABCDEF;
	assert_int_equal(D3DKMTPresent(&args), STATUS_SUCCESS);
	flip(&s, 0, primary);
	for (uint32_t y = 0; can_look(&s) && y < SIDE; y++)
		for (uint32_t x = 0; x < SIDE; x++)
			assert_int_equal(pixel(&s, 0, x, y), 0xABCDEF);
	stop(&s);
}

static void the_monitor_is_dark_after_its_device_is_destroyed(void **state)
{
	struct screen s;

	start(&s, state, 1);
	D3DKMT_HANDLE primary = picture(&s, WIDTH, HEIGHT, 0);
	paint(&s, primary, WIDTH, HEIGHT, 0x40000);
	flip(&s, 0, primary);
	if (can_look(&s))
		assert_int_equal(pixel(&s, 0, 1, 1), 0x40101);
	const D3DKMT_DESTROYDEVICE destroy = {.hDevice = s.device};
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	if (can_look(&s))
		assert_int_equal(monitor(&s, 0)->width, 0);
	stop(&s);
}

#define BOTH(test)                                           \
	{"sim: " #test, test, NULL, NULL, &on_sim},          \
	{                                                    \
		"linux: " #test, test, NULL, NULL, &on_linux \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(the_monitor_shows_the_flipped_primary),
		BOTH(presents_copy_fill_and_stretch),
		BOTH(invalid_presents_are_refused),
		BOTH(a_present_of_many_rectangles_takes_several_buffers),
		BOTH(the_monitor_is_dark_after_its_device_is_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
