/* SPDX-License-Identifier: MIT */
/* Fences of clients: which signals and waits send no message, and when sleeping threads wake. */
#include "fence_world.h"

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

#include "base/fence_word.h"
#include "client/client_private.h"
#include "host/host_private.h"
#include "sync/sync_private.h"

static uint64_t requests(struct world *w)
{
	struct vidmm_client_info info[4];
	uint32_t count = vidmm_server_clients(w->server, info, 4);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += info[i].requests;
	return sum;
}

/*
 * Returns the page of the oldest shared fence that clients have mapped, as the host sees it; NULL:
 * there is none.
 */
static struct vmm_fence_page *page_in_host(struct world *w)
{
	struct vmm_world *world = &w->host->world;

	vmm_shared_lock(world);
	const struct vmm_epoch_sleepers *sleepers =
		vmm_list_empty(&world->epoch_sleepers)
			? NULL
			: vmm_container_of(world->epoch_sleepers.next, struct vmm_epoch_sleepers,
					   link);
	struct vmm_fence_page *page =
		sleepers ? vmm_container_of(sleepers->turns, struct vmm_fence_page, turns) : NULL;
	vmm_shared_unlock(world);
	return page;
}

/* ---- a thread of a client that waits ---- */

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

/*
 * Returns when the thread is counted as a sleeper: it sleeps, or will check the value again before
 * it does.
 */
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

/* Starts a host and two clients that share a fence and its page. */
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

/* ---- signals and waits without a message ---- */

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
	raise_to(&a, 999); /* the value that it has: no effect (MFN-23) */
	assert_int_equal(requests(&w), before);
	end(&w, &a, &b);
}

static void mfn_23_a_lower_value_is_sent_to_the_host_which_refuses_it(void **state)
{
	struct program a, b;
	struct world w;

	(void)state;
	begin(&w, &a, &b);
	raise_to(&a, 10);
	uint64_t before = requests(&w);
	assert_int_equal(signal_with(&a, 9, 0), STATUS_INVALID_PARAMETER);
	assert_int_equal(signal_with(&b, 0, 0), STATUS_INVALID_PARAMETER);
	assert_int_equal(requests(&w), before + 2);
	assert_true(*a.value == 10 && *b.value == 10);
	assert_int_equal(signal_with(&b, 9, REWIND), STATUS_SUCCESS); /* MFN-24 */
	assert_true(*a.value == 9);
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
		raise_to(&a, i - 1); /* too low to satisfy the wait */
		raise_to(&a, i);
		assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	}
	assert_int_equal(requests(&w), before);
	end(&w, &a, &b);
}

/* A signal that is sent as a message, here one with AllowFenceRewind. (MFN-24) */
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

/* Waits with an event are in the host, so a signal in the page sends a message. (MFN-12) */
static void a_signal_sends_a_message_while_the_host_waits(void **state)
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
	/* A wait that began before any client had mapped the page. */
	make(&a, SHARED);
	assert_int_equal(await(&a, 1, event), STATUS_SUCCESS);
	raise_to(&a, 1);
	assert_int_equal(read(event, &count, sizeof(count)), sizeof(count));
	close(event);
	end(&w, &a, &b);
}

/* ---- events that end a sleep ---- */

/* The end of the last opening ends the waits, like those in the host. (SFL-27) */
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

/* The fence of a lost device reaches its maximum. (TDRS-03, TDRS-15) */
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

/*
 * With NO_MAX_ON_TDR the fence keeps its value; only a wait by the lost device ends, with
 * STATUS_DEVICE_REMOVED. (SFL-18, TDRS-06)
 */
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
	/*
	 * The status is the same if the thread sees the end of the opening before that of its
	 * sockets.
	 */
	assert_int_equal(wake_up(&s), STATUS_DEVICE_REMOVED);
	assert_int_equal(signal_with(&b, 20, 0), STATUS_DEVICE_REMOVED);
	end(&w, &a, &b);
}

/*
 * The client dies between its store to the page and its message. The host then completes the
 * signal.
 */
static void mfn_12_the_host_completes_the_signal_of_a_client_that_dies(void **state)
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
	/* The test stores the value directly, as a client does that dies before its message. */
	atomic_store(&page->value, 9);
	go(&a);
	assert_int_equal(wake_up(&s), STATUS_SUCCESS);
	assert_int_equal(read(event, &count, sizeof(count)), sizeof(count));
	close(event);
	go(&b);
	stop(&w);
}

/* ---- fences with a subscriber for events ---- */

static void count_event(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	(void)text;
	atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

/* Threads asleep in the page move to waits in the host when a subscriber is added. */
static void q_130_a_subscriber_gets_an_event_for_each_wait(void **state)
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

/* ---- a GPU that can store without a message gets an address ---- */

/* Like begin, with a third client on an adapter where openings get a GPU address. (MFN-04) */
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

/*
 * A thread asleep in the page moves to a wait in the host; from then on every signal and every wait
 * costs exactly one message.
 */
static void a_gpu_address_disables_the_page_for_good(void **state)
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
	/* Still so after the opening has ended; each client requests the page once more. */
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

/* If no client had the page before, no client gets it now. */
static void a_fence_with_a_gpu_address_has_no_client_page(void **state)
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

/*
 * The signaling client has read that the page is enabled. It stores after the page was disabled,
 * when the waiting thread has moved to a wait in the host.
 */
static void a_signal_that_races_with_disabling_the_page_is_not_lost(void **state)
{
	struct program a, b, c;
	struct sleeper s;
	struct world w;
	int32_t result;

	(void)state;
	begin_beside_gpu(&w, &a, &b, &c);
	struct vmm_fence_page *page = page_in_host(&w);
	struct vmm_wire_sync_signaled signaled = {.handle = a.fence};
	fall_asleep(&w, &s, &b, 9);
	open_of(&c, &a, 0);
	while (!atomic_load(&page->awaited))
		sched_yield();
	/* The steps of vmm_client_signal after it has checked the page. */
	atomic_store(&page->value, 9);
	assert_int_equal(
		vmm_client_call(a.connection, VMM_WIRE_sync_signaled, 0, &signaled, &result),
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
 * Two clients signal in turns. At a random moment, another one for each fence, the page is
 * disabled. A lost signal would leave both waiting forever. At the end the value is that of the
 * last signal. (A signal that was made twice, by a store and by a message, would not change the
 * value. The counts of messages above exclude it.)
 */
static void no_signal_is_lost_while_the_page_is_disabled(void **state)
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

/* ---- openings without the right to signal ---- */

/*
 * An opening without the right to signal cannot signal. Afterwards no other client gets the page;
 * clients that have the page keep it. (SFL-15)
 */
static void sfl_15_an_opening_without_the_right_to_signal_has_no_page(void **state)
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
	open_of(&b, &a, 0); /* another opening: each signal is a message */
	raise_to(&b, 3);
	assert_true(*c.value == 3);
	before = requests(&w);
	raise_to(&b, 4);
	assert_int_equal(requests(&w), before + 1);
	go(&c);
	end(&w, &a, &b);
}

/*
 * Fences without a client page: those of one device alone, which share a page; those that end all
 * waits with the last opening (SFL-28); and those without the right to signal. Each signal is a
 * message.
 */
static void fences_without_a_client_page_are_signaled_by_messages(void **state)
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

/* Only the parent has the page. */
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

/* ---- clients that write garbage into the page ---- */

/* Garbage in the page affects neither the host nor other fences. */
static void garbage_in_the_page_affects_no_other_client(void **state)
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

/*
 * One fence of a wait for many is rewound repeatedly, also between two reads of its value in one
 * delivery. (MFN-14)
 */
static void a_rewound_value_blocks_no_other_waiter(void **state)
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
		struct vmm_wire_sync_signaled signaled = {.handle = a.fence};
		int32_t result;

		assert_int_equal(D3DKMTWaitForSynchronizationObjectFromCpu(&wait), STATUS_SUCCESS);
		while (read(event, &count, sizeof(count)) < 0)
			assert_int_equal(vmm_client_call(a.connection, VMM_WIRE_sync_signaled, 0,
							 &signaled, &result),
					 VMM_OK);
	}
	atomic_store(&f.stop, true);
	pthread_join(f.thread, NULL);
	close(event);
	close(other.nt);
	end(&w, &a, &b);
}

/* ---- everything together ---- */

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

/*
 * With each new epoch both clients request the page again, at any point of their calls. Now and
 * then the host signals.
 */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_and_a_wait_need_no_message),
		cmocka_unit_test(mfn_23_a_lower_value_is_sent_to_the_host_which_refuses_it),
		cmocka_unit_test(a_sleeper_is_woken_by_another_program),
		cmocka_unit_test(a_sleeper_is_woken_by_the_host),
		cmocka_unit_test(a_signal_sends_a_message_while_the_host_waits),
		cmocka_unit_test(the_end_of_an_opening_ends_the_waits),
		cmocka_unit_test(the_end_of_the_device_ends_the_waits),
		cmocka_unit_test(a_lost_device_satisfies_the_waits_of_others),
		cmocka_unit_test(a_lost_device_ends_its_waits),
		cmocka_unit_test(the_end_of_the_connection_ends_the_waits),
		cmocka_unit_test(the_end_of_the_host_ends_the_waits),
		cmocka_unit_test(mfn_12_the_host_completes_the_signal_of_a_client_that_dies),
		cmocka_unit_test(q_130_a_subscriber_gets_an_event_for_each_wait),
		cmocka_unit_test(a_gpu_address_disables_the_page_for_good),
		cmocka_unit_test(a_fence_with_a_gpu_address_has_no_client_page),
		cmocka_unit_test(a_signal_that_races_with_disabling_the_page_is_not_lost),
		cmocka_unit_test(no_signal_is_lost_while_the_page_is_disabled),
		cmocka_unit_test(sfl_15_an_opening_without_the_right_to_signal_has_no_page),
		cmocka_unit_test(fences_without_a_client_page_are_signaled_by_messages),
		cmocka_unit_test(a_child_does_not_signal),
		cmocka_unit_test(garbage_in_the_page_affects_no_other_client),
		cmocka_unit_test(a_rewound_value_blocks_no_other_waiter),
		cmocka_unit_test(two_programs_take_turns_while_epochs_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
