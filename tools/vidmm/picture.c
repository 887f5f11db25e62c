/* SPDX-License-Identifier: MIT */
/*
 * `vidmm picture`: a test picture through the whole display path. The GPU draws each frame into one
 * of two primaries by D3DKMTPresent (fills, and a copy of a small image to twice its size), flips
 * to it, and the display engine copies it to the monitor's memory. It runs on sim, so that the same
 * frame gives the same file.
 */
#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <d3dkmthk.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

#include "png.h"
#include "replay.h"
#include "verb_help.h"

#define WIDTH         640
#define HEIGHT        360
#define BARS          7
#define SPRITE        32
#define VRAM_BYTES    ((uint64_t)16 << 20)
#define MONITOR_BYTES ((uint64_t)2 << 20)
#define FRAMES_MAX    100000ul
#define FRAME_NS      20000000u /* more than one refresh period at 60 Hz */

struct picture {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	D3DKMT_HANDLE device, context, primary[2], sprite;
};

static bool check(NTSTATUS status, const char *what)
{
	if (status < 0)
		fprintf(stderr, "vidmm: %s: 0x%08x\n", what, (unsigned)status);
	return status >= 0;
}

static void say(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context, (void)event;
	fprintf(stderr, "vidmm: %s\n", text);
}

static bool start(struct picture *p)
{
	static const struct vidmm_registry_value display = {"VideoPresentSources", 1};
	static const uint64_t bars[] = {VRAM_BYTES, MONITOR_BYTES};
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_SIM};
	const struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = bars,
						      .bar_count = 2,
						      .registry = &display,
						      .registry_count = 1};

	if (!check(vidmm_host_create(&host, &p->host), "host"))
		return false;
	(void)vidmm_subscribe(p->host, 1ull << VIDMM_EVENT_FINDING | 1ull << VIDMM_EVENT_FATAL, say,
			      NULL);
	return check(vidmm_adapter_start(p->host, &adapter, &p->adapter), "adapter") &&
	       check(vidmm_process_open(p->host, "picture", &p->process), "process");
}

static bool make(struct picture *p, uint32_t width, uint32_t height, bool primary,
		 D3DKMT_HANDLE *handle)
{
	struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes =
						  (uint64_t)width * height * SOFTGPU_PIXEL_BYTES,
					  .segment_set = 1,
					  .width = width,
					  .height = height};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = p->device, .NumAllocations = 1, .pAllocationInfo = &info};

	info.Flags.Primary = primary;
	if (!check(D3DKMTCreateAllocation(&args), "D3DKMTCreateAllocation"))
		return false;
	*handle = info.hAllocation;
	return true;
}

static bool open_device(struct picture *p)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 adapters = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};
	D3DKMT_CREATECONTEXT context = {0};

	vidmm_d3dkmt_attach(p->process);
	if (!check(D3DKMTEnumAdapters2(&adapters), "D3DKMTEnumAdapters2"))
		return false;
	device.hAdapter = info.hAdapter;
	if (!check(D3DKMTCreateDevice(&device), "D3DKMTCreateDevice"))
		return false;
	p->device = context.hDevice = device.hDevice;
	if (!check(D3DKMTCreateContext(&context), "D3DKMTCreateContext"))
		return false;
	p->context = context.hContext;
	return make(p, WIDTH, HEIGHT, true, &p->primary[0]) &&
	       make(p, WIDTH, HEIGHT, true, &p->primary[1]) &&
	       make(p, SPRITE, SPRITE, false, &p->sprite);
}

/* The sprite is a diagonal gradient that the CPU writes. */
static bool draw_sprite(struct picture *p)
{
	D3DKMT_LOCK lock = {.hDevice = p->device, .hAllocation = p->sprite};
	const D3DKMT_UNLOCK unlock = {
		.hDevice = p->device, .NumAllocations = 1, .phAllocations = &p->sprite};

	if (!check(D3DKMTLock(&lock), "D3DKMTLock"))
		return false;
	uint32_t *pixel = lock.pData;
	for (uint32_t y = 0; y < SPRITE; y++)
		for (uint32_t x = 0; x < SPRITE; x++)
			*pixel++ =
				0xFF0000 | (x * 255 / (SPRITE - 1)) << 8 | (y * 255 / (SPRITE - 1));
	return check(D3DKMTUnlock(&unlock), "D3DKMTUnlock");
}

static bool present(struct picture *p, D3DKMT_HANDLE source, D3DKMT_HANDLE destination,
		    D3DKMT_PRESENTFLAGS flags, RECT where, uint32_t color)
{
	D3DKMT_PRESENT args;

	memset(&args, 0, sizeof(args));
	args.hContext = p->context;
	args.hSource = source;
	args.hDestination = destination;
	args.Flags = flags;
	args.Flags.DstRectValid = destination != 0;
	args.DstRect = where;
	args.Color = color;
	args.FlipInterval = D3DDDI_FLIPINTERVAL_ONE;
	return check(D3DKMTPresent(&args), "D3DKMTPresent");
}

static bool draw_frame(struct picture *p, unsigned long frame)
{
	static const uint32_t colors[BARS] = {0xC0C0C0, 0xC0C000, 0x00C0C0, 0x00C000,
					      0xC000C0, 0xC00000, 0x0000C0};
	D3DKMT_HANDLE primary = p->primary[frame % 2];
	D3DKMT_PRESENTFLAGS fill = {.ColorFill = 1}, copy = {.Blt = 1}, flip = {.Flip = 1};
	LONG x = (LONG)(frame * 24 % (WIDTH - 2 * SPRITE)), y = HEIGHT / 2 - SPRITE;

	for (LONG i = 0; i < BARS; i++)
		if (!present(p, 0, primary, fill,
			     (RECT){i * WIDTH / BARS, 0, (i + 1) * WIDTH / BARS, HEIGHT},
			     colors[i]))
			return false;
	return present(p, p->sprite, primary, copy, (RECT){x, y, x + 2 * SPRITE, y + 2 * SPRITE},
		       0) &&
	       present(p, primary, 0, flip, (RECT){0}, 0);
}

/*
 * Writes the monitor's image to PATH. Returns false on failure; errno gives the reason unless it is
 * 0. main.c reports write errors of standard output.
 */
static bool save(const struct picture *p, const char *path)
{
	uint64_t bytes = 0;
	const struct softgpu_monitor *monitor = vidmm_adapter_bar(p->adapter, 1, &bytes);
	bool to_stdout = strcmp(path, "-") == 0;
	FILE *file = to_stdout ? stdout : fopen(path, "wb");

	if (!file)
		return false;
	bool done = png_write(file, (const char *)monitor + SOFTGPU_MONITOR_PIXELS, monitor->width,
			      monitor->height, monitor->pitch_bytes);
	if (to_stdout) /* main.c reports its errors */
		return done || ferror(file);
	return fclose(file) == 0 && done;
}

static void stop(struct picture *p)
{
	if (p->process)
		vidmm_process_close(p->process);
	if (p->adapter)
		vidmm_adapter_stop(p->adapter);
	if (p->host)
		vidmm_host_destroy(p->host);
}

static int run(struct picture *p, const char *path, unsigned long frames)
{
	if (!start(p) || !open_device(p) || !draw_sprite(p))
		return REPLAY_ENVIRONMENT;
	for (unsigned long frame = 0; frame < frames; frame++) {
		if (!draw_frame(p, frame))
			return REPLAY_ENVIRONMENT;
		vidmm_sleep_until_ns(p->host, vidmm_now_ns(p->host) + FRAME_NS);
	}
	if (!save(p, path)) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		return REPLAY_ENVIRONMENT;
	}
	return REPLAY_CLEAN;
}

static const char usage[] =
	"usage: vidmm picture FILE.png|- [FRAME]\n"
	"Draws a test picture with the software GPU, flips to it, and saves the\n"
	"monitor's image in frame FRAME (1 to 100000, default 1).\n"
	"-: standard output.\n";

int picture_main(int argc, const char **argv)
{
	struct picture picture = {0};
	unsigned long frames = 1;
	char *end = NULL;
	int code;

	if (verb_help(argc, argv, 1, 2, usage, &code))
		return code;
	if (argc == 3)
		frames = strtoul(argv[2], &end, 10);
	if ((end && (*end || end == argv[2])) || !frames || frames > FRAMES_MAX) {
		fprintf(stderr, "vidmm picture: \"%s\" is no frame from 1 to 100000\n%s", argv[2],
			usage);
		return REPLAY_USAGE;
	}
	code = run(&picture, argv[1], frames);
	stop(&picture);
	return code;
}
