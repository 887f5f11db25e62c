/* SPDX-License-Identifier: MIT */
#include "show_world.h"

#include <string.h>

void show_mmio(struct scripted_miniport *m)
{
	m->settings.source_count = 2;
	m->settings.child_count = 2;
	m->settings.caps.FlipCaps.FlipOnVSyncMmIo = 1;
	m->settings.caps.FlipCaps.FlipImmediateMmIo = 1;
}

void show_dma(struct scripted_miniport *m)
{
	show_mmio(m);
	m->settings.caps.FlipCaps.Value = 0;
}

void show_start_with(struct show *s, void **state, world_setup *setup,
		     const struct client_options *options)
{
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	memset(s, 0, sizeof(*s));
	world_start_with(&s->w, state, setup ? setup : show_mmio, options);
	world_open(&s->w);
	vidmm_d3dkmt_attach(s->w.device.process);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	s->adapter = info.hAdapter;
	D3DKMT_CREATEDEVICE device = {.hAdapter = s->adapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	s->device = device.hDevice;
	D3DKMT_CREATECONTEXT context = {.hDevice = s->device};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	s->context = context.hContext;
}

void show_start(struct show *s, void **state, world_setup *setup)
{
	const struct client_options options = {0};

	show_start_with(s, state, setup, &options);
}

void show_stop(struct show *s)
{
	const D3DKMT_DESTROYDEVICE device = {.hDevice = s->device};

	world_run(&s->w);
	s->w.m->settings.complete_at_once = true;
	assert_int_equal(D3DKMTDestroyDevice(&device), STATUS_SUCCESS);
	world_stop(&s->w);
}

D3DKMT_HANDLE show_allocate(struct show *s, uint32_t source)
{
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = WORLD_CPU_VISIBLE};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec),
				      .VidPnSourceId = source == UINT32_MAX ? 0 : source};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = s->device, .NumAllocations = 1, .pAllocationInfo = &info};

	info.Flags.Primary = source != UINT32_MAX;
	assert_int_equal(D3DKMTCreateAllocation(&args), STATUS_SUCCESS);
	return info.hAllocation;
}

void show_destroy(struct show *s, D3DKMT_HANDLE allocation)
{
	const D3DKMT_DESTROYALLOCATION args = {
		.hDevice = s->device, .phAllocationList = &allocation, .AllocationCount = 1};

	assert_int_equal(D3DKMTDestroyAllocation(&args), STATUS_SUCCESS);
	vidmm_settle(s->w.client.host);
}

D3DKMT_PRESENT show_blt(const struct show *s, D3DKMT_HANDLE from, D3DKMT_HANDLE to)
{
	D3DKMT_PRESENT args;

	memset(&args, 0, sizeof(args));
	args.hContext = s->context;
	args.hSource = from;
	args.hDestination = to;
	args.Flags.Blt = 1;
	args.Color = 0xC0105;
	return args;
}

D3DKMT_PRESENT show_flip(const struct show *s, uint32_t source, D3DKMT_HANDLE to)
{
	D3DKMT_PRESENT args = show_blt(s, to, 0);

	args.Flags.Value = 0;
	args.Flags.Flip = 1;
	args.VidPnSourceId = source;
	args.FlipInterval = D3DDDI_FLIPINTERVAL_ONE;
	return args;
}

NTSTATUS show_present(struct show *s, const D3DKMT_PRESENT *args)
{
	D3DKMT_PRESENT copy = *args;
	NTSTATUS status = D3DKMTPresent(&copy);

	vidmm_settle(s->w.client.host);
	return status;
}

uint64_t show_address(const struct show *s, uint32_t source)
{
	const struct scripted_call *call, *last = NULL;

	for (uint32_t i = 0; (call = scripted_at(s->w.m, i)) != NULL; i++)
		if (call->ddi == VIDMM_DDI_SET_VIDPN_SOURCE_ADDRESS &&
		    call->in.source_address.VidPnSourceId == source)
			last = call;
	assert_non_null(last);
	return (uint64_t)last->in.source_address.PrimaryAddress.QuadPart;
}

void show_vsync(struct show *s, uint32_t target)
{
	scripted_vsync(s->w.m, target, show_address(s, target));
	vidmm_settle(s->w.client.host);
}

void show_now(struct show *s, uint32_t source, D3DKMT_HANDLE primary)
{
	const D3DKMT_PRESENT args = show_flip(s, source, primary);
	uint64_t before = show_displayed(s);

	assert_int_equal(show_present(s, &args), STATUS_SUCCESS);
	world_run(&s->w);
	vidmm_settle(s->w.client.host);
	if (show_displayed(s) == before)
		show_vsync(s, source);
	assert_int_equal(show_displayed(s), before + 1);
}

uint64_t show_displayed(const struct show *s)
{
	return client_events(&s->w.client, VIDMM_EVENT_DISPLAY);
}
