/* SPDX-License-Identifier: MIT */
#include "fence_world.h"
#include "support/connect.h"

#include <unistd.h>

struct vidmm_adapter *start_adapter(struct world *w, struct scripted_miniport *m)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	struct vidmm_tdr_options tdr = VIDMM_TDR_DEFAULTS;
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .initialization_data = scripted_table(m),
						      .bar_sizes = bars,
						      .bar_count = 1,
						      .tdr = &tdr};
	struct vidmm_adapter *adapter;

	tdr.level = 0; /* a machine that stalls threads for seconds causes no timeout */
	assert_int_equal(vidmm_adapter_start(w->host, &options, &adapter), 0);
	return adapter;
}

struct scripted_miniport *make_miniport(void)
{
	struct scripted_miniport *m = scripted_create();

	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_2);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	return m;
}

void start_with(struct world *w, uint64_t memory_limit)
{
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_LINUX};
	const struct vidmm_server_options server = {.struct_size = sizeof(server),
						    .limits.memory_bytes = memory_limit};

	*w = (struct world){.miniport = make_miniport()};
	assert_int_equal(vidmm_host_create(&host, &w->host), 0);
	w->adapter = start_adapter(w, w->miniport);
	assert_int_equal(vidmm_server_create(w->host, &server, &w->server), 0);
}

void start(struct world *w)
{
	start_with(w, 0);
}

void stop(struct world *w)
{
	if (w->server)
		vidmm_server_destroy(w->server);
	if (w->other)
		vidmm_adapter_stop(w->other);
	vidmm_adapter_stop(w->adapter);
	vidmm_host_destroy(w->host);
	if (w->second)
		scripted_destroy(w->second);
	scripted_destroy(w->miniport);
}

int more(void *context)
{
	const struct world *w = context;

	return connect_to(w->server);
}

void come_on(struct program *p, struct world *w, uint32_t adapter)
{
	D3DKMT_ADAPTERINFO info[2] = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};
	D3DKMT_CREATEDEVICE device = {0};

	*p = (struct program){.nt = -1};
	assert_int_equal(vidmm_connect_fd(more(w), "program", more, w, &p->connection), 0);
	(void)vidmm_connection_enter(p->connection);
	assert_int_equal(D3DKMTEnumAdapters2(&all), 0);
	device.hAdapter = info[adapter].hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&device), 0);
	p->device = device.hDevice;
}

void come(struct program *p, struct world *w)
{
	come_on(p, w, 0);
}

void go(struct program *p)
{
	(void)vidmm_connection_enter(NULL);
	vidmm_disconnect(p->connection);
	if (p->nt >= 0)
		close(p->nt);
}

void make(struct program *p, uint32_t flags)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = p->device,
		.Info = {.Type = D3DDDI_MONITORED_FENCE, .Flags.Value = flags}};
	HANDLE nt = NULL;

	(void)vidmm_connection_enter(p->connection);
	assert_int_equal(D3DKMTCreateSynchronizationObject2(&create), 0);
	p->fence = create.hSyncObject;
	p->value = create.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	if (!(flags & SHARED))
		return;
	assert_int_equal(D3DKMTShareObjects(1, &p->fence, NULL, ALL, &nt), 0);
	p->nt = (int)(intptr_t)nt;
}

void open_of(struct program *p, const struct program *maker, uint32_t flags)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 open = {.hNtHandle = (HANDLE)(intptr_t)maker->nt,
						   .hDevice = p->device,
						   .Flags.Value = flags};

	(void)vidmm_connection_enter(p->connection);
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle2(&open), 0);
	p->fence = open.hSyncObject;
	p->value = open.MonitoredFence.FenceValueCPUVirtualAddress;
}

NTSTATUS signal_with(struct program *p, uint64_t value, uint32_t flags)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->device,
								.ObjectCount = 1,
								.ObjectHandleArray = &p->fence,
								.FenceValueArray = &value,
								.Flags.Value = flags};

	(void)vidmm_connection_enter(p->connection);
	return D3DKMTSignalSynchronizationObjectFromCpu(&args);
}

void raise_to(struct program *p, uint64_t value)
{
	assert_int_equal(signal_with(p, value, 0), STATUS_SUCCESS);
}

NTSTATUS await(struct program *p, uint64_t value, int event)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &p->fence,
								 .FenceValueArray = &value,
								 .hAsyncEvent =
									 (HANDLE)(intptr_t)event};

	(void)vidmm_connection_enter(p->connection);
	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}
