/* SPDX-License-Identifier: MIT */
/* Fences in the hands of clients: which signals and waits need no message, and that nobody sleeps on who should not. */
#include <support/test.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <d3dkmthk.h>
#include <support/scripted_miniport.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>

#include "base/fence_word.h"
#include "client/client_private.h"
#include "host/host_private.h"
#include "sync/sync_private.h"

enum {
	SHARED = 0x3,
	CROSS_ADAPTER = 0x4,
	NO_SIGNAL = 0x10,
	NO_MAX_ON_TDR = 0x40,
	UNWAIT_ON_LAST = 0x400,
	REWIND = 0x4
};
enum { ALL = 0x1F0003 };

struct world {
	struct scripted_miniport *miniport, *second;
	struct vidmm_host *host;
	struct vidmm_adapter *adapter,
		*other; /* other: with GPU virtual addresses; NULL for most */
	struct vidmm_server *server;
};

struct program {
	struct vidmm_connection *connection;
	D3DKMT_HANDLE device, fence;
	const volatile uint64_t *value;
	int nt; /* of the fence that it made */
};

static struct vidmm_adapter *start_adapter(struct world *w, struct scripted_miniport *m)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .initialization_data = scripted_table(m),
						      .bar_sizes = bars,
						      .bar_count = 1};
	struct vidmm_adapter *adapter;

	assert_int_equal(vidmm_adapter_start(w->host, &options, &adapter), 0);
	return adapter;
}

static struct scripted_miniport *make_miniport(void)
{
	struct scripted_miniport *m = scripted_create();

	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_2);
	m->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	return m;
}

static void start_with(struct world *w, uint64_t memory_limit)
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

static void start(struct world *w)
{
	start_with(w, 0);
}

static void stop(struct world *w)
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

static int more(void *context)
{
	const struct world *w = context;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vidmm_server_connect(w->server, pair[1]), 0);
	return pair[0];
}

static void come_on(struct program *p, struct world *w, uint32_t adapter)
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

static void come(struct program *p, struct world *w)
{
	come_on(p, w, 0);
}

static void go(struct program *p)
{
	(void)vidmm_connection_enter(NULL);
	vidmm_disconnect(p->connection);
	if (p->nt >= 0)
		close(p->nt);
}

static void make(struct program *p, uint32_t flags)
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

static void open_of(struct program *p, const struct program *maker, uint32_t flags)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 open = {.hNtHandle = (HANDLE)(intptr_t)maker->nt,
						   .hDevice = p->device,
						   .Flags.Value = flags};

	(void)vidmm_connection_enter(p->connection);
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle2(&open), 0);
	p->fence = open.hSyncObject;
	p->value = open.MonitoredFence.FenceValueCPUVirtualAddress;
}

static NTSTATUS signal_with(struct program *p, uint64_t value, uint32_t flags)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->device,
								.ObjectCount = 1,
								.ObjectHandleArray = &p->fence,
								.FenceValueArray = &value,
								.Flags.Value = flags};

	(void)vidmm_connection_enter(p->connection);
	return D3DKMTSignalSynchronizationObjectFromCpu(&args);
}

static void raise_to(struct program *p, uint64_t value)
{
	assert_int_equal(signal_with(p, value, 0), STATUS_SUCCESS);
}

static NTSTATUS await(struct program *p, uint64_t value, int event)
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

static uint64_t requests(struct world *w)
{
	struct vidmm_client_info info[4];
	uint32_t count = vidmm_server_clients(w->server, info, 4);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += info[i].requests;
	return sum;
}

/* Of the host's only, or oldest, shared fence that clients have; NULL: none. */
static struct vmm_fence_page *page_in_host(struct world *w)
{
	struct vmm_world *world = &w->host->world;

	vmm_os_mutex_lock(&world->shared_lock);
	const struct vmm_epoch_sleepers *sleepers =
		vmm_list_empty(&world->epoch_sleepers)
			? NULL
			: vmm_container_of(world->epoch_sleepers.next, struct vmm_epoch_sleepers,
					   link);
	struct vmm_fence_page *page =
		sleepers ? vmm_container_of(sleepers->turns, struct vmm_fence_page, turns) : NULL;
	vmm_os_mutex_unlock(&world->shared_lock);
	return page;
}

/* ---- a thread of a program's that waits ---- */

struct sleeper {
	pthread_t thread;
	struct program *p;
	uint64_t value;
	NTSTATUS status;
};

static void *sleep_there(void *argument)
{
	struct sleeper *s = argument;

	s->status = await(s->p, s->value, 0);
	return NULL;
}

static void lie_down(struct sleeper *s, struct program *p, uint64_t value)
{
	*s = (struct sleeper){.p = p, .value = value};
	assert_int_equal(pthread_create(&s->thread, NULL, sleep_there, s), 0);
}

/* It is there, or will look again before it sleeps. */
static void fall_asleep(struct world *w, struct sleeper *s, struct program *p, uint64_t value)
{
	const struct vmm_fence_page *page = page_in_host(w);

	assert_non_null(page);
	lie_down(s, p, value);
	while (!atomic_load(&page->sleepers))
		sched_yield();
}

static NTSTATUS wake_up(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->status;
}

/* A host and two programs that have a fence in common, and its page. */
static void begin(struct world *w, struct program *a, struct program *b)
{
	start(w);
	come(a, w);
	make(a, SHARED);
	come(b, w);
	open_of(b, a, 0);
	raise_to(a, 1);
	assert_int_equal(await(b, 1, 0), STATUS_SUCCESS);
	assert_non_null(page_in_host(w));
}

static void end(struct world *w, struct program *a, struct program *b)
{
	go(a);
	go(b);
	stop(w);
}

/* ---- what needs no message ---- */

static void a_signal_and_a_wait_need_no_message(void **state)
{
	struct program a, b;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	uint64_t before = requests(&w);
	for (uint64_t i = 2; i < 1000; i++) {
		raise_to(i % 2 ? &a : &b, i);
		assert_true(*a.value == i && *b.value == i);
		assert_int_equal(await(i % 2 ? &b : &a, i, 0), STATUS_SUCCESS);
	}
	raise_to(&a, 5); /* MFN-23: it is behind */
	assert_true(*b.value == 999);
	assert_int_equal(requests(&w), before);
	end(&w, &a, &b);
}

static void a_sleeper_is_woken_by_another_program(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	uint64_t before = requests(&w);
	for (uint64_t i = 10; i < 60; i += 2) {
		fall_asleep(&w, &s, &b, i);
		raise_to(&a, i - 1); /* too little */
		raise_to(&a, i);
		assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	}
	assert_int_equal(requests(&w), before);
	end(&w, &a, &b);
}

/* A signal that goes by a message, here one that may rewind (MFN-24). */
static void a_sleeper_is_woken_by_the_host(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	fall_asleep(&w, &s, &b, 9);
	assert_int_equal(signal_with(&a, 0, REWIND), STATUS_SUCCESS);
	assert_true(*b.value == 0);
	assert_int_equal(signal_with(&a, 9, REWIND), STATUS_SUCCESS);
	assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	end(&w, &a, &b);
}

/* MFN-12: waits with an event are the host's, which is told. */
static void the_host_hears_of_what_it_waits_for(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct program a, b;
	struct world w;
	uint64_t count;

	(void)state;
	begin(&w, &a, &b);
	for (uint64_t i = 10; i < 30; i++) {
		assert_int_equal(await(&b, i, event), STATUS_SUCCESS);
		assert_int_equal(atomic_load(&page_in_host(&w)->awaited), 1);
		raise_to(&a, i);
		assert_int_equal(read(event, &count, sizeof(count)), sizeof(count));
		assert_int_equal(atomic_load(&page_in_host(&w)->awaited), 0);
	}
	/* One that began before any client had the page. */
	make(&a, SHARED);
	assert_int_equal(await(&a, 1, event), STATUS_SUCCESS);
	raise_to(&a, 1);
	assert_int_equal(read(event, &count, sizeof(count)), sizeof(count));
	close(event);
	end(&w, &a, &b);
}

/* ---- what ends a sleep ---- */

/* SFL-27: as for a wait in the host. */
static void the_end_of_an_opening_ends_the_waits(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT other = {a.fence}, own = {b.fence};
	fall_asleep(&w, &s, &b, 9);
	(void)vidmm_connection_enter(a.connection);
	assert_int_equal(D3DKMTDestroySynchronizationObject(&other), 0);
	assert_int_equal(wake_up(&s), VMM_CANCELLED);
	fall_asleep(&w, &s, &b, 9);
	(void)vidmm_connection_enter(b.connection);
	assert_int_equal(D3DKMTDestroySynchronizationObject(&own), 0);
	assert_int_equal(wake_up(&s), VMM_CANCELLED);
	assert_int_equal(signal_with(&a, 20, 0), STATUS_INVALID_PARAMETER); /* SYN-22 */
	assert_int_equal(await(&b, 20, 0), STATUS_INVALID_PARAMETER);
	end(&w, &a, &b);
}

/* MFN-18 */
static void the_end_of_the_device_ends_the_waits(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	const D3DKMT_DESTROYDEVICE destroy = {b.device};
	fall_asleep(&w, &s, &b, 9);
	(void)vidmm_connection_enter(b.connection);
	assert_int_equal(D3DKMTDestroyDevice(&destroy), 0);
	assert_int_equal(wake_up(&s), VMM_CANCELLED);
	assert_int_equal(await(&b, 20, 0), STATUS_INVALID_PARAMETER);
	end(&w, &a, &b);
}

static void mark_as_lost(struct program *p)
{
	D3DKMT_MARKDEVICEASERROR args = {.hDevice = p->device,
					 .Reason = D3DKMT_DEVICE_ERROR_REASON_GENERIC};

	(void)vidmm_connection_enter(p->connection);
	assert_int_equal(D3DKMTMarkDeviceAsError(&args), 0);
}

/* TDRS-15, TDRS-03: the fence of a device that is lost has all values. */
static void a_lost_device_satisfies_the_waits_of_others(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	fall_asleep(&w, &s, &b, 9);
	mark_as_lost(&a);
	assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	assert_true(*b.value == UINT64_MAX);
	assert_int_equal(signal_with(&a, 20, 0), STATUS_DEVICE_REMOVED);
	end(&w, &a, &b);
}

/* SFL-18, TDRS-06: unless it is not to be; who waits through the device comes back. */
static void a_lost_device_ends_its_waits(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	start(&w);
	come(&a, &w);
	make(&a, SHARED);
	come(&b, &w);
	open_of(&b, &a, NO_MAX_ON_TDR);
	raise_to(&b, 2);
	fall_asleep(&w, &s, &b, 9);
	mark_as_lost(&b);
	assert_int_equal(wake_up(&s), STATUS_DEVICE_REMOVED);
	assert_int_equal(signal_with(&b, 20, 0), STATUS_DEVICE_REMOVED);
	assert_true(*a.value == 2);
	raise_to(&a, 3);
	end(&w, &a, &b);
}

static void the_end_of_the_connection_ends_the_waits(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	fall_asleep(&w, &s, &b, 9);
	go(&b);
	assert_int_equal(wake_up(&s), STATUS_INVALID_PARAMETER);
	go(&a);
	stop(&w);
}

static void the_end_of_the_host_ends_the_waits(void **state)
{
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	fall_asleep(&w, &s, &b, 9);
	vidmm_server_destroy(w.server);
	w.server = NULL;
	/* Also where it hears of the end of an opening before that of its own sockets. */
	assert_int_equal(wake_up(&s), STATUS_DEVICE_REMOVED);
	assert_int_equal(signal_with(&b, 20, 0), STATUS_DEVICE_REMOVED);
	end(&w, &a, &b);
}

/* It dies behind its store and before what comes after that: the host does the rest. */
static void a_signal_that_is_cut_short_is_heard(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct program a, b;
	struct sleeper s;
	struct world w;
	uint64_t count;

	(void)state;
	begin(&w, &a, &b);
	assert_int_equal(await(&b, 9, event), STATUS_SUCCESS);
	fall_asleep(&w, &s, &b, 9);
	struct vmm_fence_page *page = page_in_host(&w);
	/* The same is what a program's own store would be, behind everybody's back. */
	atomic_store(&page->value, 9);
	go(&a);
	assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	assert_int_equal(read(event, &count, sizeof(count)), sizeof(count));
	close(event);
	go(&b);
	stop(&w);
}

/* ---- what somebody is to hear of ---- */

static void count_event(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	(void)text;
	atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

/* who sleeps goes to the host when somebody begins to listen. */
static void who_listens_hears_of_waits(void **state)
{
	_Atomic uint32_t heard = 0;
	struct program a, b;
	struct sleeper s;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	fall_asleep(&w, &s, &b, 9);
	uint32_t id =
		vidmm_subscribe(w.host, 1ull << VIDMM_EVENT_WAIT, count_event, (void *)&heard);
	const struct vmm_fence_page *page = page_in_host(&w);
	while (!atomic_load(&page->awaited))
		sched_yield();
	raise_to(&a, 9);
	assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	assert_int_equal(heard, 1);
	vidmm_unsubscribe(w.host, id);
	end(&w, &a, &b);
}

/* ---- a GPU that stores without telling gets an address ---- */

/* As begin, and a third program, on an adapter that gives a GPU an address of what is opened there (MFN-04). */
static void begin_beside_gpu(struct world *w, struct program *a, struct program *b,
			     struct program *c)
{
	start(w);
	w->second = make_miniport();
	w->second->settings.complete_at_once = true;
	scripted_mmu(w->second, 3, 1);
	w->other = start_adapter(w, w->second);
	come(a, w);
	make(a, SHARED | CROSS_ADAPTER);
	come(b, w);
	open_of(b, a, 0);
	come_on(c, w, 1);
	raise_to(a, 1);
	assert_int_equal(await(b, 1, 0), STATUS_SUCCESS);
	assert_non_null(page_in_host(w));
}

/* Who sleeps there goes to the host; from then on every signal and every wait is one message, and none is any more. */
static void an_address_for_a_gpu_shuts_the_page_for_good(void **state)
{
	struct program a, b, c;
	struct sleeper s;
	struct world w;

	(void)state;
	begin_beside_gpu(&w, &a, &b, &c);
	const struct vmm_fence_page *page = page_in_host(&w);
	uint64_t before = requests(&w);
	raise_to(&a, 2);
	assert_int_equal(requests(&w), before);
	fall_asleep(&w, &s, &b, 9);
	open_of(&c, &a, 0);
	assert_int_equal(atomic_load(&page->shut), 1);
	while (!atomic_load(&page->awaited))
		sched_yield();
	assert_int_equal(atomic_load(&page->sleepers), 0);
	before = requests(&w);
	raise_to(&a, 9);
	assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	assert_int_equal(requests(&w), before + 1);
	for (uint64_t i = 10; i < 20; i++) {
		before = requests(&w);
		raise_to(i % 2 ? &a : &b, i);
		assert_true(*a.value == i && *c.value == i);
		assert_int_equal(await(i % 2 ? &b : &a, i, 0), STATUS_SUCCESS);
		assert_int_equal(requests(&w), before + 2);
	}
	/* Also when that opening has ended, for which each asks once more. */
	const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT destroy = {c.fence};
	(void)vidmm_connection_enter(c.connection);
	assert_int_equal(D3DKMTDestroySynchronizationObject(&destroy), 0);
	raise_to(&b, 30);
	before = requests(&w);
	raise_to(&b, 31);
	assert_int_equal(requests(&w), before + 1);
	go(&c);
	end(&w, &a, &b);
}

/* Nobody had asked for the page before: then nobody gets it. */
static void what_a_gpu_has_first_has_no_page(void **state)
{
	struct program a, b, c;
	struct world w;

	(void)state;
	begin_beside_gpu(&w, &a, &b, &c);
	close(a.nt);
	make(&a, SHARED | CROSS_ADAPTER);
	open_of(&c, &a, 0);
	open_of(&b, &a, 0);
	raise_to(&b, 1);
	uint64_t before = requests(&w);
	for (uint64_t i = 2; i < 10; i++)
		raise_to(&b, i);
	assert_int_equal(requests(&w), before + 8);
	go(&c);
	end(&w, &a, &b);
}

/* It has seen the page open, and stores when it is shut, and whoever slept there waits in the host. */
static void a_signal_that_the_shutting_overtakes_is_heard(void **state)
{
	struct program a, b, c;
	struct sleeper s;
	struct world w;
	int32_t result;

	(void)state;
	begin_beside_gpu(&w, &a, &b, &c);
	struct vmm_fence_page *page = page_in_host(&w);
	struct vmm_wire_sync_told told = {.handle = a.fence};
	fall_asleep(&w, &s, &b, 9);
	open_of(&c, &a, 0);
	while (!atomic_load(&page->awaited))
		sched_yield();
	/* What vmm_client_signal does behind its look. */
	atomic_store(&page->value, 9);
	assert_int_equal(vmm_client_call(a.connection, VMM_WIRE_sync_told, 0, &told, &result),
			 VMM_OK);
	assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	assert_true(*c.value == 9);
	go(&c);
	end(&w, &a, &b);
}

enum { FENCES = 30, TURNS = 100 };

struct player {
	pthread_t thread;
	struct program p;
	uint64_t first;
	_Atomic uint64_t turn;
};

static void *take_turns(void *argument)
{
	struct player *l = argument;

	for (uint64_t i = 1; i <= TURNS; i++) {
		assert_int_equal(await(&l->p, 2 * i + l->first - 1, 0), STATUS_SUCCESS);
		raise_to(&l->p, 2 * i + l->first);
		atomic_store(&l->turn, i);
	}
	return NULL;
}

/*
 * Two programs take turns, and at some moment, another one for each fence, the page is shut under their hands. Were a signal lost both
 * would wait for ever; in the end the value is that of the last one. (A call that stored to the page and sent a message, too, would have
 * raised it to the same value twice, which is what once is: that no call does is seen by the messages above.)
 */
static void no_turn_is_lost_while_the_page_is_shut(void **state)
{
	struct player player[2] = {{.first = 0}, {.first = 1}};
	struct program c;
	struct world w;

	(void)state;
	begin_beside_gpu(&w, &player[0].p, &player[1].p, &c);
	for (uint32_t i = 0; i < FENCES; i++) {
		close(player[0].p.nt);
		make(&player[0].p, SHARED | CROSS_ADAPTER);
		open_of(&player[1].p, &player[0].p, 0);
		raise_to(&player[0].p, 1);
		for (uint32_t k = 0; k < 2; k++) {
			atomic_store(&player[k].turn, 0);
			assert_int_equal(
				pthread_create(&player[k].thread, NULL, take_turns, &player[k]), 0);
		}
		while (atomic_load(&player[i % 2].turn) < i * TURNS / FENCES)
			sched_yield();
		open_of(&c, &player[0].p, 0);
		for (uint32_t k = 0; k < 2; k++)
			pthread_join(player[k].thread, NULL);
		assert_true(*c.value == 2 * TURNS + 1);
	}
	go(&c);
	end(&w, &player[0].p, &player[1].p);
}

/* ---- who may not ---- */

/* SFL-15: who may not signal cannot; from then on nobody else is given the page, and whoever has it goes on. */
static void who_may_not_signal_has_no_page(void **state)
{
	struct program a, b, c;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	come(&c, &w);
	open_of(&c, &a, NO_SIGNAL);
	assert_int_equal(signal_with(&c, 20, 0), STATUS_ACCESS_DENIED);
	assert_true(*c.value == 1);
	const struct vmm_epoch_sleepers *sleepers = vmm_container_of(
		w.host->world.epoch_sleepers.next, struct vmm_epoch_sleepers, link);
	const struct vmm_sync_object *object =
		vmm_container_of(sleepers, struct vmm_sync_object, sleepers);
	int fd;
	assert_int_equal(vmm_os_memory_writable(&object->slot.page->memory, &fd),
			 VMM_NOT_SUPPORTED);
	assert_int_equal(vmm_os_memory_read_only(&object->slot.page->memory, &fd), VMM_OK);
	char name[64];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	int again = open(name, O_RDWR | O_CLOEXEC);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0),
			 MAP_FAILED);
	close(again);
	close(fd);
	uint64_t before = requests(&w);
	raise_to(&a, 2);
	assert_int_equal(requests(&w), before);
	open_of(&b, &a, 0); /* another opening: by messages */
	raise_to(&b, 3);
	assert_true(*c.value == 3);
	before = requests(&w);
	raise_to(&b, 4);
	assert_int_equal(requests(&w), before + 1);
	go(&c);
	end(&w, &a, &b);
}

/* Those of one device alone share a page; the last opening's end is not everybody's (SFL-28). */
static void others_go_by_messages(void **state)
{
	static const uint32_t flags[] = {0, SHARED | UNWAIT_ON_LAST, SHARED | NO_SIGNAL};
	struct program a;
	struct world w;

	(void)state;
	start(&w);
	come(&a, &w);
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(flags); i++) {
		make(&a, flags[i]);
		(void)signal_with(&a, 1, 0);
		uint64_t before = requests(&w);
		NTSTATUS status = signal_with(&a, 2, 0);
		assert_int_equal(status, flags[i] & NO_SIGNAL ? STATUS_ACCESS_DENIED : 0);
		assert_int_equal(requests(&w), before + 1);
		assert_null(page_in_host(&w));
		if (a.nt >= 0)
			close(a.nt);
		a.nt = -1;
	}
	go(&a);
	stop(&w);
}

/* The page is the parent's. */
static void a_child_does_not_signal(void **state)
{
	struct program a, b;
	struct world w;
	int status;

	(void)state;
	begin(&w, &a, &b);
	pid_t child = fork();
	if (child == 0)
		_exit(signal_with(&a, 9, 0) == STATUS_DEVICE_REMOVED ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(*a.value == 1);
	end(&w, &a, &b);
}

/* ---- lies ---- */

/* Whatever stands in the page: the host gets on, and other fences do. */
static void garbage_in_the_page_harms_nobody_else(void **state)
{
	static const uint32_t lies[] = {0, 1, UINT32_MAX, 0x80000000};
	int event = eventfd(0, EFD_CLOEXEC);
	struct program a, b;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	struct vmm_fence_page *page = page_in_host(&w);
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(lies); i++) {
		atomic_store(&page->value, i & 1 ? 0 : UINT64_MAX - i);
		atomic_store(&page->turns, lies[i]);
		atomic_store(&page->sleepers, lies[i]);
		atomic_store(&page->awaited, lies[i]);
		atomic_store(&page->cancels, lies[i]);
		assert_int_equal(await(&b, 5, event), STATUS_SUCCESS);
		(void)signal_with(&a, 7 + i, i & 1 ? REWIND : 0);
	}
	D3DKMT_HANDLE before = a.fence;
	close(a.nt);
	make(&a, SHARED);
	raise_to(&a, 1);
	assert_int_equal(await(&a, 1, 0), STATUS_SUCCESS);
	a.fence = before;
	close(event);
	end(&w, &a, &b);
}

struct flipper {
	pthread_t thread;
	struct vmm_fence_page *page;
	_Atomic bool stop;
};

static void *flip(void *argument)
{
	struct flipper *f = argument;

	while (!atomic_load(&f->stop)) {
		atomic_store(&f->page->value, 5);
		atomic_store(&f->page->value, 0);
	}
	return NULL;
}

/* MFN-14: one of the fences of a wait for many is rewound again and again, also between two looks of one delivery. */
static void a_value_that_comes_and_goes_holds_nobody_up(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct flipper f = {0};
	struct program a, b;
	struct world w;
	uint64_t count;

	(void)state;
	begin(&w, &a, &b);
	struct program other = a;
	make(&other, SHARED);
	raise_to(&other, 1);
	f.page = page_in_host(&w);
	const D3DKMT_HANDLE both[] = {a.fence, other.fence};
	const UINT64 values[] = {5, 1};
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {.hDevice = a.device,
								 .ObjectCount = 2,
								 .ObjectHandleArray = both,
								 .FenceValueArray = values,
								 .hAsyncEvent =
									 (HANDLE)(intptr_t)event};
	assert_int_equal(pthread_create(&f.thread, NULL, flip, &f), 0);
	for (uint32_t i = 0; i < 300; i++) {
		struct vmm_wire_sync_told told = {.handle = a.fence};
		int32_t result;

		assert_int_equal(D3DKMTWaitForSynchronizationObjectFromCpu(&wait), STATUS_SUCCESS);
		while (read(event, &count, sizeof(count)) < 0)
			assert_int_equal(vmm_client_call(a.connection, VMM_WIRE_sync_told, 0, &told,
							 &result),
					 VMM_OK);
	}
	atomic_store(&f.stop, true);
	pthread_join(f.thread, NULL);
	close(event);
	close(other.nt);
	end(&w, &a, &b);
}

/* ---- all at once ---- */

enum { ROUNDS = 2000 };

static void *play(void *argument)
{
	struct program *p = argument;

	for (uint64_t i = 1; i < ROUNDS; i++) {
		assert_int_equal(await(p, 2 * i, 0), STATUS_SUCCESS);
		raise_to(p, 2 * i + 1);
	}
	return NULL;
}

static void *go_on(void *argument)
{
	struct world *w = argument;

	for (uint32_t i = 0; i < 200; i++) {
		vmm_world_next_epoch(&w->host->world);
		sched_yield();
	}
	return NULL;
}

/* Each epoch has both asked again, in whatever they are at; now and then a signal is the host's. */
static void two_programs_take_turns_while_epochs_end(void **state)
{
	pthread_t player, other;
	struct program a, b;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	assert_int_equal(pthread_create(&player, NULL, play, &b), 0);
	assert_int_equal(pthread_create(&other, NULL, go_on, &w), 0);
	for (uint64_t i = 1; i < ROUNDS; i++) {
		assert_int_equal(signal_with(&a, 2 * i, i % 7 ? 0 : REWIND), STATUS_SUCCESS);
		assert_int_equal(await(&a, 2 * i + 1, 0), STATUS_SUCCESS);
	}
	pthread_join(player, NULL);
	pthread_join(other, NULL);
	end(&w, &a, &b);
}

/* ---- what waits keep in the host is their client's to pay for (Q-150) ---- */

static uint64_t memory(struct world *w)
{
	struct vidmm_client_info info[1];

	assert_int_equal(vidmm_server_clients(w->server, info, 1), 1);
	return info->memory_bytes;
}

enum { MANY = 500 };
static NTSTATUS await_many(struct program *p, uint64_t value, int event)
{
	D3DKMT_HANDLE handles[MANY];
	UINT64 values[MANY];

	for (uint32_t i = 0; i < MANY; i++) {
		handles[i] = p->fence;
		values[i] = value;
	}
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->device,
								 .ObjectCount = MANY,
								 .ObjectHandleArray = handles,
								 .FenceValueArray = values,
								 .hAsyncEvent =
									 (HANDLE)(intptr_t)event};

	(void)vidmm_connection_enter(p->connection);
	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}

/* Of waits with an event, one after the other, until the client has as much as it may: how many, and what each costs. */
static uint32_t fill_up(struct world *w, struct program *p, int event, uint32_t most,
			uint64_t *each)
{
	uint64_t before = memory(w);
	uint32_t count = 0;

	while (count < most && await(p, 7, event) == STATUS_SUCCESS)
		count++;
	*each = count ? (memory(w) - before) / count : 0;
	assert_int_equal(memory(w), before + *each * count);
	return count;
}

static void await_memory(struct world *w, uint64_t bytes)
{
	/* The event is told before the wait is given back. */
	while (memory(w) != bytes)
		sched_yield();
}

static void q_150_waits_with_events_are_charged(void **state)
{
	enum { COUNT = 20, ROOM = 5 };
	const int event = eventfd(0, EFD_CLOEXEC);
	struct program p;
	struct world w;
	uint64_t each, least;

	(void)state;
	assert_true(event >= 0);
	start(&w);
	come(&p, &w);
	make(&p, 0);
	uint64_t before = memory(&w);
	assert_int_equal(fill_up(&w, &p, event, COUNT, &each), COUNT);
	assert_true(each > 0);
	/* A wait for many costs more, and nothing once it is over. */
	assert_int_equal(await_many(&p, 7, event), STATUS_SUCCESS);
	least = memory(&w) - before - COUNT * each;
	assert_true(least > MANY * sizeof(struct vmm_sync_node));
	raise_to(&p, 7);
	await_memory(&w, before);
	/* So does one in the call itself, but only while it lasts. */
	assert_int_equal(await_many(&p, 7, 0), STATUS_SUCCESS);
	assert_int_equal(memory(&w), before);
	go(&p);
	stop(&w);

	start_with(&w, before + ROOM * each + each / 2);
	come(&p, &w);
	make(&p, 0);
	assert_int_equal(memory(&w), before);
	assert_int_equal(fill_up(&w, &p, event, COUNT, &each), ROOM);
	assert_int_equal(await(&p, 7, event), STATUS_INSUFFICIENT_RESOURCES);
	/* It would never come back: refused, it does so at once. */
	assert_int_equal(await_many(&p, 7, 0), STATUS_INSUFFICIENT_RESOURCES);
	assert_int_equal(await_many(&p, 7, event), STATUS_INSUFFICIENT_RESOURCES);
	assert_int_equal(memory(&w), before + ROOM * each);
	raise_to(&p, 7);
	await_memory(&w, before);
	assert_int_equal(fill_up(&w, &p, event, ROOM, &each),
			 ROOM); /* satisfied at once: nothing is kept */
	assert_int_equal(memory(&w), before);
	go(&p);
	stop(&w);
	close(event);
}

/* The end of the fence, and that of the client, which the account itself checks. */
static void q_150_waits_that_are_cancelled_cost_nothing(void **state)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	struct program p;
	struct world w;

	(void)state;
	start(&w);
	come(&p, &w);
	uint64_t before = memory(&w);
	make(&p, 0);
	assert_int_equal(await_many(&p, 7, event), STATUS_SUCCESS);
	assert_true(memory(&w) > before + MANY * sizeof(struct vmm_sync_node));
	const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT end = {.hSyncObject = p.fence};
	assert_int_equal(D3DKMTDestroySynchronizationObject(&end), STATUS_SUCCESS);
	await_memory(&w, before);
	make(&p, 0);
	assert_int_equal(await_many(&p, 7, event), STATUS_SUCCESS);
	go(&p);
	stop(&w);
	close(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_and_a_wait_need_no_message),
		cmocka_unit_test(a_sleeper_is_woken_by_another_program),
		cmocka_unit_test(a_sleeper_is_woken_by_the_host),
		cmocka_unit_test(the_host_hears_of_what_it_waits_for),
		cmocka_unit_test(the_end_of_an_opening_ends_the_waits),
		cmocka_unit_test(the_end_of_the_device_ends_the_waits),
		cmocka_unit_test(a_lost_device_satisfies_the_waits_of_others),
		cmocka_unit_test(a_lost_device_ends_its_waits),
		cmocka_unit_test(the_end_of_the_connection_ends_the_waits),
		cmocka_unit_test(the_end_of_the_host_ends_the_waits),
		cmocka_unit_test(a_signal_that_is_cut_short_is_heard),
		cmocka_unit_test(who_listens_hears_of_waits),
		cmocka_unit_test(an_address_for_a_gpu_shuts_the_page_for_good),
		cmocka_unit_test(what_a_gpu_has_first_has_no_page),
		cmocka_unit_test(a_signal_that_the_shutting_overtakes_is_heard),
		cmocka_unit_test(no_turn_is_lost_while_the_page_is_shut),
		cmocka_unit_test(who_may_not_signal_has_no_page),
		cmocka_unit_test(others_go_by_messages),
		cmocka_unit_test(a_child_does_not_signal),
		cmocka_unit_test(garbage_in_the_page_harms_nobody_else),
		cmocka_unit_test(a_value_that_comes_and_goes_holds_nobody_up),
		cmocka_unit_test(two_programs_take_turns_while_epochs_end),
		cmocka_unit_test(q_150_waits_with_events_are_charged),
		cmocka_unit_test(q_150_waits_that_are_cancelled_cost_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
