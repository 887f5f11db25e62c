/* SPDX-License-Identifier: MIT */
/*
 * Messages that no correct client sends, and clients that take as many resources as they can. Each
 * is refused or disconnected, and the log says why. No other client is affected, and no descriptor
 * is left behind.
 */
#include "raw_client.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/folder.h"

/* A correct client, which nothing that the others do may affect. */
struct scene {
	struct served served;
	struct raw witness;
	uint32_t descriptors;
};

static void begin(struct scene *s, const struct vidmm_client_limits *limits, uint32_t clients_max)
{
	served_start(&s->served, limits, clients_max);
	raw_open(&s->witness, &s->served, "witness");
	(void)raw_device(&s->witness);
	s->descriptors = folder_count("/proc/self/fd");
}

static void end(struct scene *s)
{
	(void)raw_device(&s->witness);
	served_await_clients(&s->served, 1);
	while (folder_count("/proc/self/fd") != s->descriptors)
		sched_yield();
	raw_disconnect(&s->witness);
	served_stop(&s->served);
}

/* ---- peers that have not sent a hello ---- */

static void message(int fd, const void *bytes, size_t length, const int *fds, uint32_t count)
{
	(void)raw_send(fd, bytes, length, NULL, 0, fds, count);
}

static struct vmm_message_hello good_hello(void)
{
	return (struct vmm_message_hello){
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_HELLO, .descriptors = 1},
		.version = VMM_PROTOCOL_VERSION,
		.window_address = 1ull << 32,
		.window_bytes = 1 * MIB,
		.name = "bad",
	};
}

/*
 * Sends an almost valid hello. The server refuses it with that status, or (0) only closes the
 * connection.
 */
static void try_hello(struct scene *s, const struct vmm_message_hello *hello, size_t length,
		      const int *fds, uint32_t count, int32_t status)
{
	struct vmm_message_refused refused;
	int got[VMM_PROTOCOL_DESCRIPTORS_MAX], fd = raw_socket(&s->served);
	uint32_t none;

	message(fd, hello, length, fds, count);
	size_t bytes = raw_receive(fd, &refused, sizeof(refused), got, &none);
	if (status) {
		assert_int_equal(bytes, sizeof(refused));
		assert_int_equal(refused.head.kind, VMM_MESSAGE_REFUSED);
		assert_int_equal(refused.status, status);
		assert_true(refused.why[0] && !refused.why[sizeof(refused.why) - 1]);
		raw_expect_end(fd);
	} else {
		assert_int_equal(bytes, 0);
	}
	close(fd);
}

static void peers_with_a_bad_first_message_are_refused(void **state)
{
	struct scene s;
	char noise[600];

	(void)state;
	begin(&s, NULL, 0);
	memset(noise, 0xA5, sizeof(noise));
	for (uint32_t kind = 0; kind < 140; kind++) {
		struct vmm_message_head head = {.magic = VMM_PROTOCOL_MAGIC, .kind = kind};
		int fd = raw_socket(&s.served);

		if (kind == VMM_MESSAGE_CLIENTS) {
			close(fd);
			continue;
		}
		message(fd, &head, sizeof(head), NULL, 0);
		raw_expect_end(fd);
		close(fd);
	}
	for (size_t length = 1; length < sizeof(noise); length += 7) {
		int fd = raw_socket(&s.served);

		message(fd, noise, length, NULL, 0);
		raw_expect_end(fd);
		close(fd);
	}
	/* A packet longer than any message, and one with more descriptors than any message. */
	size_t long_one = VMM_PROTOCOL_INLINE_MAX + 4096;
	char *large = calloc(1, long_one);
	int fds[20], fd = raw_socket(&s.served);
	assert_non_null(large);
	message(fd, large, long_one, NULL, 0);
	raw_expect_end(fd);
	close(fd);
	free(large);
	struct vmm_message_hello hello = good_hello();
	for (uint32_t i = 0; i < 20; i++)
		fds[i] = STDERR_FILENO;
	hello.head.descriptors = 20;
	try_hello(&s, &hello, sizeof(hello), fds, 20, 0);
	end(&s);
}

static void invalid_hellos_are_refused(void **state)
{
	struct scene s;
	int pair[2], event, pipes[2], stream[2];

	(void)state;
	begin(&s, NULL, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
	assert_int_equal(pipe(pipes), 0);
	event = eventfd(0, 0);
	const struct vmm_message_hello good = good_hello();
	struct vmm_message_hello h = good;

	h.version = 99;
	try_hello(&s, &h, sizeof(h), pair, 1, STATUS_INVALID_PARAMETER);
	h = good, h.flags = 4;
	try_hello(&s, &h, sizeof(h), pair, 1, STATUS_INVALID_PARAMETER);
	h = good, h.window_address += 1;
	try_hello(&s, &h, sizeof(h), pair, 1, STATUS_INVALID_PARAMETER);
	h = good, h.window_bytes = UINT64_MAX & ~0xFFFull;
	try_hello(&s, &h, sizeof(h), pair, 1, STATUS_INVALID_PARAMETER);
	h = good, h.window_address = 1ull << 60;
	try_hello(&s, &h, sizeof(h), pair, 1, STATUS_INVALID_PARAMETER);
	h = good, memset(h.name, 'x', sizeof(h.name));
	try_hello(&s, &h, sizeof(h), pair, 1, STATUS_INVALID_PARAMETER);
	h = good, h.head.bytes = 8;
	try_hello(&s, &h, sizeof(h), pair, 1, STATUS_INVALID_PARAMETER);
	try_hello(&s, &good, sizeof(h) - 8, pair, 1, STATUS_INVALID_PARAMETER);
	/* Descriptors of the wrong kind or number. */
	try_hello(&s, &good, sizeof(good), NULL, 0, 0);
	try_hello(&s, &good, sizeof(good), pipes, 1, STATUS_INVALID_PARAMETER);
	try_hello(&s, &good, sizeof(good), stream, 1, STATUS_INVALID_PARAMETER);
	try_hello(&s, &good, sizeof(good), &event, 1, STATUS_INVALID_PARAMETER);
	h = good, h.head.descriptors = 0;
	try_hello(&s, &h, sizeof(h), NULL, 0, STATUS_INVALID_PARAMETER);
	h = good, h.head.descriptors = 2;
	try_hello(&s, &h, sizeof(h), (const int[]){pair[0], event}, 2, STATUS_INVALID_PARAMETER);
	h = good, h.head.descriptors = 3;
	try_hello(&s, &h, sizeof(h), (const int[]){pair[0], event, event}, 3,
		  STATUS_INVALID_PARAMETER);
	close(event);
	for (uint32_t i = 0; i < 2; i++) {
		close(pair[i]);
		close(pipes[i]);
		close(stream[i]);
	}
	end(&s);
}

static void a_session_cannot_be_joined_by_a_guessed_number(void **state)
{
	struct scene s;
	struct raw thief;
	int32_t status;

	(void)state;
	begin(&s, NULL, 0);
	raw_open(&thief, &s.served, "thief");
	thief.welcome.session[1] ^= 1;
	assert_int_equal(raw_join(&thief, &status), -1);
	assert_int_equal(status, STATUS_ACCESS_DENIED);
	thief.welcome.session[0] = thief.welcome.session[1] = 0;
	assert_int_equal(raw_join(&thief, &status), -1);
	assert_int_equal(status, STATUS_ACCESS_DENIED);
	raw_disconnect(&thief);
	/* A session that has ended gets no further channels. */
	memcpy(thief.welcome.session, s.witness.welcome.session, 0);
	assert_int_equal(raw_join(&thief, &status), -1);
	assert_int_equal(status, STATUS_ACCESS_DENIED);
	end(&s);
}

static void silent_peers_do_not_block_new_clients(void **state)
{
	enum { SILENT = 200 };
	struct scene s;
	struct raw late;
	int fd[SILENT];

	(void)state;
	begin(&s, NULL, 0);
	for (uint32_t i = 0; i < SILENT; i++)
		fd[i] = raw_socket(&s.served);
	raw_expect_end(fd[0]);
	raw_open(&late, &s.served, "late");
	(void)raw_device(&late);
	for (uint32_t i = 0; i < SILENT; i++)
		close(fd[i]);
	raw_disconnect(&late);
	end(&s);
}

/* ---- clients ---- */

typedef void bad_fn(struct raw *raw);

/* Each case ends with the session disconnected by the server. */
static void cut_off_after(struct scene *s, bad_fn *send_it, const char *why)
{
	struct raw raw;

	raw_open(&raw, &s->served, "bad");
	send_it(&raw);
	raw_expect_end(raw.channel);
	served_await(&s->served, why);
	raw_close(&raw);
	served_await_clients(&s->served, 1);
	s->served.lines = 0;
}

static struct vmm_message_request request_of(uint32_t operation, uint32_t bytes)
{
	return (struct vmm_message_request){
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_REQUEST, .bytes = bytes},
		.operation = operation,
	};
}

static void shorter_than_it_says(struct raw *raw)
{
	const struct vmm_message_request r = request_of(1, 64);

	message(raw->channel, &r, sizeof(r), NULL, 0);
}

static void longer_than_it_says(struct raw *raw)
{
	const struct vmm_message_request r = request_of(1, 8);
	const char body[64] = {0};

	(void)raw_send(raw->channel, &r, sizeof(r), body, sizeof(body), NULL, 0);
}

static void a_head_alone(struct raw *raw)
{
	const struct vmm_message_request r = request_of(1, 0);

	message(raw->channel, &r, sizeof(r.head), NULL, 0);
}

static void no_memfd(struct raw *raw)
{
	const struct vmm_message_request r = request_of(1, VMM_PROTOCOL_INLINE_MAX + 8);

	message(raw->channel, &r, sizeof(r), NULL, 0);
}

static void send_as_memfd(struct raw *raw, int fd, uint32_t bytes)
{
	struct vmm_message_request r = request_of(1, bytes);

	r.head.descriptors = 1;
	message(raw->channel, &r, sizeof(r), &fd, 1);
	close(fd);
}

/* A read from this pipe would never return. */
static void a_pipe_as_memfd(struct raw *raw)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	send_as_memfd(raw, pipes[0], VMM_PROTOCOL_INLINE_MAX + 8);
	close(pipes[1]);
}

static int memfd(uint64_t bytes, bool sealed)
{
	int fd = memfd_create("bad", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static void a_memfd_without_seals(struct raw *raw)
{
	send_as_memfd(raw, memfd(1 * MIB, false), VMM_PROTOCOL_INLINE_MAX + 8);
}

static void a_memfd_that_is_too_short(struct raw *raw)
{
	send_as_memfd(raw, memfd(4096, true), VMM_PROTOCOL_INLINE_MAX + 8);
}

static void more_than_any_request(struct raw *raw)
{
	send_as_memfd(raw, memfd(1 * MIB, true), VMM_WIRE_BYTES_MAX + 8);
}

static void descriptors_that_do_not_come(struct raw *raw)
{
	struct vmm_message_request r = request_of(1, 0);

	r.head.descriptors = 3;
	message(raw->channel, &r, sizeof(r), NULL, 0);
}

static void another_hello(struct raw *raw)
{
	const struct vmm_message_hello hello = good_hello();

	message(raw->channel, &hello, sizeof(hello), &raw->view, 1);
}

static void too_long(struct raw *raw, uint32_t kind)
{
	const char payload[64] = {0};
	struct vmm_message_head head = {.magic = VMM_PROTOCOL_MAGIC, .kind = kind};

	(void)raw_send(raw->channel, &head, sizeof(head), payload, sizeof(payload), NULL, 0);
}

static void a_disconnect_message_that_is_too_long(struct raw *raw)
{
	too_long(raw, VMM_MESSAGE_DISCONNECT);
}

static void an_exit_message_that_is_too_long(struct raw *raw)
{
	too_long(raw, VMM_MESSAGE_EXITS);
}

static void another_magic(struct raw *raw)
{
	struct vmm_message_request r = request_of(1, 0);

	r.head.magic ^= 0x100;
	message(raw->channel, &r, sizeof(r), NULL, 0);
}

static void malformed_messages_end_their_client(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL, 0);
	cut_off_after(&s, shorter_than_it_says,
		      "the length of its request differs from its header");
	cut_off_after(&s, longer_than_it_says, "the length of its request differs from its header");
	cut_off_after(&s, a_head_alone, "the length of its request differs from its header");
	cut_off_after(&s, no_memfd, "has no memfd with its payload");
	cut_off_after(&s, a_pipe_as_memfd, "not in a sealed memfd");
	cut_off_after(&s, a_memfd_without_seals, "not in a sealed memfd");
	cut_off_after(&s, a_memfd_that_is_too_short, "not in a sealed memfd");
	cut_off_after(&s, more_than_any_request, "not in a sealed memfd");
	cut_off_after(&s, descriptors_that_do_not_come, "not as many descriptors");
	cut_off_after(&s, another_hello, "of a kind not allowed here");
	cut_off_after(&s, a_disconnect_message_that_is_too_long, "of a kind not allowed here");
	cut_off_after(&s, an_exit_message_that_is_too_long, "of a kind not allowed here");
	cut_off_after(&s, another_magic, "no message of this protocol");
	end(&s);
}

static void send_on_another_channel(uint32_t kind)
{
	const struct vmm_message_head head = {.magic = VMM_PROTOCOL_MAGIC, .kind = kind};
	struct scene s;
	struct raw raw;
	int32_t status;

	begin(&s, NULL, 0);
	raw_open(&raw, &s.served, "bad");
	int channel = raw_join(&raw, &status);
	message(channel, &head, sizeof(head), NULL, 0);
	raw_expect_end(channel);
	raw_expect_end(raw.channel);
	close(channel);
	raw_close(&raw);
	end(&s);
}

/* DISCONNECT and EXITS are valid on the first channel only. */
static void the_messages_of_the_first_channel_on_another_end_their_client(void **state)
{
	(void)state;
	send_on_another_channel(VMM_MESSAGE_DISCONNECT);
	send_on_another_channel(VMM_MESSAGE_EXITS);
}

static NTSTATUS refused(struct raw *raw, uint32_t operation, const void *body, uint32_t bytes)
{
	const struct vmm_message_request r = request_of(operation, bytes);
	struct vmm_message_answer answer;
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	assert_true(raw_send(raw->channel, &r, sizeof(r), body, bytes, NULL, 0));
	assert_int_equal(raw_receive(raw->channel, &answer, sizeof(answer), fds, &count),
			 sizeof(answer));
	assert_int_equal(answer.head.kind, VMM_MESSAGE_ANSWER);
	assert_int_equal(answer.answered, 0);
	return answer.status;
}

/* A valid message with an invalid request: the request fails, and the client may continue. */
static void invalid_requests_are_refused(void **state)
{
	struct scene s;
	struct raw raw;
	static const uint64_t body[512] = {[0] = 1};

	(void)state;
	begin(&s, NULL, 0);
	raw_open(&raw, &s.served, "odd");
	const uint32_t none[] = {0, 999, 1000, 1499, 1999, 2000, 2999, UINT32_MAX};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(refused(&raw, none[i], NULL, 0), STATUS_NOT_SUPPORTED);
	for (uint32_t operation = 1; operation < 2100; operation++)
		if (vmm_wire_operation(operation))
			assert_int_equal(refused(&raw, operation, body, sizeof(body)),
					 STATUS_INVALID_PARAMETER);
	(void)raw_device(&raw);
	raw_disconnect(&raw);
	end(&s);
}

/* Every operation without its argument fails with its own status, or is refused. */
static void requests_without_an_argument(void **state)
{
	struct scene s;
	struct raw raw;

	(void)state;
	begin(&s, NULL, 0);
	raw_open(&raw, &s.served, "empty");
	for (uint32_t operation = 1; operation < 2100; operation++) {
		const struct vmm_message_request r = request_of(operation, 0);

		if (!vmm_wire_operation(operation))
			continue;
		assert_true(raw_send(raw.channel, &r, sizeof(r), NULL, 0, NULL, 0));
		assert_true(raw_await(raw.channel) < 0);
	}
	client_forget(&s.served.client);
	raw_disconnect(&raw);
	end(&s);
}

static void a_client_that_never_reads_its_answers(void **state)
{
	struct scene s;
	struct raw raw;
	D3DKMT_ADAPTERINFO *info = calloc(1000, sizeof(*info));
	const D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1000, .pAdapters = info};
	struct vmm_wire_call call = {0};

	(void)state;
	assert_non_null(info);
	begin(&s, NULL, 0);
	raw_open(&raw, &s.served, "deaf");
	assert_int_equal(
		vmm_wire_make_request(&call, vmm_wire_operation_named("D3DKMTEnumAdapters2"), &all),
		0);
	const struct vmm_message_request r =
		request_of(call.operation->number, call.request.length);
	while (raw_send(raw.channel, &r, sizeof(r), call.request.data, call.request.length, NULL,
			0))
		;
	vmm_wire_finish(&call);
	free(info);
	served_await(&s.served, "does not read its answers");
	raw_close(&raw);
	end(&s);
}

/* ---- limits ---- */

static void channels_have_a_limit(void **state)
{
	const struct vidmm_client_limits limits = {.channels = 3};
	struct scene s;
	struct raw raw;
	int32_t status;

	(void)state;
	begin(&s, &limits, 0);
	raw_open(&raw, &s.served, "greedy");
	assert_int_equal(raw.welcome.channels_max, 3);
	int second = raw_join(&raw, &status), third = raw_join(&raw, &status);
	assert_true(second >= 0 && third >= 0);
	assert_int_equal(raw_join(&raw, &status), -1);
	assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
	(void)raw_device(&raw);
	/* A handle that was freed can be allocated again. */
	close(third);
	struct vidmm_client_info info[2];
	do
		assert_int_equal(vidmm_server_clients(s.served.server, info, 2), 2);
	while (info[1].channels != 2);
	third = raw_join(&raw, &status);
	assert_true(third >= 0);
	close(second);
	close(third);
	raw_disconnect(&raw);
	end(&s);
}

static void clients_have_a_limit(void **state)
{
	struct scene s;
	struct raw raw;
	int pair[2];

	(void)state;
	begin(&s, NULL, 2);
	raw_open(&raw, &s.served, "second");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	const struct vmm_message_hello hello = good_hello();
	try_hello(&s, &hello, sizeof(hello), pair, 1, STATUS_INSUFFICIENT_RESOURCES);
	served_await(&s.served, "the maximum of 2 clients is connected");
	raw_disconnect(&raw);
	/* An allocation counts until its last part is freed. */
	while (!raw_try_open(&raw, &s.served, "third"))
		;
	raw_disconnect(&raw);
	close(pair[0]);
	close(pair[1]);
	end(&s);
}

static void handles_have_a_limit(void **state)
{
	const struct vidmm_client_limits limits = {.handles = 10};
	struct scene s;
	struct raw raw;
	D3DKMT_HANDLE last = 0, next;

	(void)state;
	begin(&s, &limits, 0);
	raw_open(&raw, &s.served, "greedy");
	D3DKMT_HANDLE device = raw_device(&raw);
	NTSTATUS status;
	uint32_t count = 0;
	while ((status = raw_try_allocate(&raw, device, 4 * KIB, &next)) == STATUS_SUCCESS) {
		last = next;
		count++;
	}
	assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
	assert_int_equal(count, 8); /* in addition to the adapter and the device */
	served_await(&s.served, "it has reached its limit");
	D3DKMT_DESTROYALLOCATION end_it = {
		.hDevice = device, .AllocationCount = 1, .phAllocationList = &last};
	assert_int_equal(raw_call(&raw, "D3DKMTDestroyAllocation", &end_it), STATUS_SUCCESS);
	assert_int_equal(raw_try_allocate(&raw, device, 4 * KIB, &next), STATUS_SUCCESS);
	raw_disconnect(&raw);
	end(&s);
}

/*
 * The limit of system memory: each allocation has its backing store from the first lock on. Freed
 * memory can be allocated again.
 */
static void memory_has_a_limit(void **state)
{
	const struct vidmm_client_limits limits = {.memory_bytes = 4 * MIB};
	struct scene s;
	struct raw raw;
	struct vidmm_client_info info[2];
	D3DKMT_HANDLE held[8];
	uint32_t count = 0;
	NTSTATUS status = STATUS_SUCCESS;
	void *data;

	(void)state;
	begin(&s, &limits, 0);
	raw_open(&raw, &s.served, "greedy");
	D3DKMT_HANDLE device = raw_device(&raw);
	while (count < 8 && NT_SUCCESS(status)) {
		status = raw_try_allocate(&raw, device, 1 * MIB, &held[count]);
		if (NT_SUCCESS(status))
			status = raw_lock(&raw, device, held[count++], &data);
	}
	assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
	assert_int_equal(vidmm_server_clients(s.served.server, info, 2), 2);
	assert_true(info[1].memory_bytes > 3 * MIB && info[1].memory_bytes <= 4 * MIB);
	served_await(&s.served, "it has reached its limit");
	D3DKMT_DESTROYALLOCATION end_it = {
		.hDevice = device, .AllocationCount = 1, .phAllocationList = held};
	assert_int_equal(raw_unlock(&raw, device, held[0]), STATUS_SUCCESS);
	assert_int_equal(raw_call(&raw, "D3DKMTDestroyAllocation", &end_it), STATUS_SUCCESS);
	D3DKMT_HANDLE again = raw_allocate(&raw, device, 1 * MIB);
	assert_int_equal(raw_lock(&raw, device, again, &data), STATUS_SUCCESS);
	raw_disconnect(&raw);
	end(&s);
}

static uint64_t memory_of(struct scene *s)
{
	struct vidmm_client_info info[2];

	assert_int_equal(vidmm_server_clients(s->served.server, info, 2), 2);
	return info[1].memory_bytes;
}

/*
 * Creates a context and submits to it. Returns the client's charge on the host's memory after each.
 */
static NTSTATUS run_something(struct scene *s, uint64_t limit, uint64_t bytes[2])
{
	const struct vidmm_client_limits limits = {.memory_bytes = limit};
	struct client_context c;
	struct raw raw;

	begin(s, &limits, 0);
	raw_open(&raw, &s->served, "renders");
	raw_context(&raw, raw_device(&raw), &c);
	bytes[0] = memory_of(s);
	client_stall(&c, 1);
	D3DKMT_RENDER args = {.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext,
			      .CommandLength = c.command_bytes};
	NTSTATUS status = raw_call(&raw, "D3DKMTRender", &args);
	bytes[1] = memory_of(s);
	if (!NT_SUCCESS(status))
		served_await(&s->served, "it has reached its limit");
	raw_disconnect(&raw);
	end(s);
	return status;
}

/* Memory of DMA buffers is charged, with their lists and the copies of the client's buffers. */
static void buffers_are_charged(void **state)
{
	const uint64_t least = 256 * KIB; /* softgpu's DMA buffer */
	struct scene s;
	uint64_t bytes[2], again[2];

	(void)state;
	assert_int_equal(run_something(&s, 0, bytes), STATUS_SUCCESS);
	assert_true(bytes[0] >= 2 * least && bytes[1] >= bytes[0] + least);
	assert_int_equal(run_something(&s, bytes[1] - 1, again), STATUS_INSUFFICIENT_RESOURCES);
	assert_true(again[0] == bytes[0] && again[1] == bytes[0]);
	assert_int_equal(run_something(&s, bytes[1], again), STATUS_SUCCESS);
}

/* Queues a signal of an event behind all work of the context. */
static NTSTATUS queue_event(struct raw *raw, const struct client_context *c, int event)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)c->c.hContext,
		.Flags.EnqueueCpuEvent = 1,
		.CpuEventHandle = (HANDLE)(intptr_t)event};

	return raw_call(raw, "D3DKMTSignalSynchronizationObject2", &signal);
}

static NTSTATUS queue_wait(struct raw *raw, const struct client_context *c, D3DKMT_HANDLE fence,
			   uint32_t count)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 wait = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)c->c.hContext,
		.ObjectCount = count,
		.Fence.FenceValue = 1};

	for (uint32_t i = 0; i < count; i++)
		wait.ObjectHandleArray[i] = fence;
	return raw_call(raw, "D3DKMTWaitForSynchronizationObject2", &wait);
}

/* A client with a context that waits for a fence, and a context that can signal it. */
struct waiter {
	struct raw raw;
	struct client_context held, other;
	D3DKMT_HANDLE fence;
	uint64_t bytes; /* the charge before the first wait */
};

static void waiter_comes(struct scene *s, struct waiter *w)
{
	raw_open(&w->raw, &s->served, "waits");
	D3DKMT_HANDLE device = raw_device(&w->raw);
	raw_context(&w->raw, device, &w->held);
	raw_context(&w->raw, device, &w->other);
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {.hDevice = device,
						      .Info = {.Type = D3DDDI_FENCE}};
	assert_int_equal(raw_call(&w->raw, "D3DKMTCreateSynchronizationObject2", &create),
			 STATUS_SUCCESS);
	w->fence = create.hSyncObject;
	w->bytes = memory_of(s);
}

static void waiter_signals(struct waiter *w)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)w->other.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = {w->fence},
		.Fence.FenceValue = 1};

	assert_int_equal(raw_call(&w->raw, "D3DKMTSignalSynchronizationObject2", &signal),
			 STATUS_SUCCESS);
}

static void await_memory(struct scene *s, uint64_t bytes)
{
	while (memory_of(s) != bytes)
		sched_yield();
}

/* Waits in a context's queue are charged until they end. */
static void q_150_queued_waits_are_charged(void **state)
{
	enum { COUNT = 50, ROOM = 5 };
	struct vidmm_client_limits limits = {0};
	struct waiter w;
	struct scene s;

	(void)state;
	begin(&s, NULL, 0);
	waiter_comes(&s, &w);
	assert_int_equal(queue_wait(&w.raw, &w.held, w.fence, 1), STATUS_SUCCESS);
	uint64_t one = memory_of(&s) - w.bytes;
	assert_true(one > 0);
	for (uint32_t i = 1; i < COUNT; i++)
		assert_int_equal(queue_wait(&w.raw, &w.held, w.fence, 1), STATUS_SUCCESS);
	assert_int_equal(memory_of(&s), w.bytes + COUNT * one);
	waiter_signals(&w);
	await_memory(&s, w.bytes);
	/* A refused wait is not charged. */
	assert_int_equal(queue_event(&w.raw, &w.held, -1), STATUS_INVALID_PARAMETER);
	assert_int_equal(memory_of(&s), w.bytes);
	client_forget(&s.served.client);
	raw_close(&w.raw);
	end(&s);

	limits.memory_bytes = w.bytes + ROOM * one;
	begin(&s, &limits, 0);
	waiter_comes(&s, &w);
	for (uint32_t i = 0; i < ROOM; i++)
		assert_int_equal(queue_wait(&w.raw, &w.held, w.fence, 1), STATUS_SUCCESS);
	assert_int_equal(queue_wait(&w.raw, &w.held, w.fence, 1), STATUS_INSUFFICIENT_RESOURCES);
	served_await(&s.served, "it has reached its limit");
	assert_int_equal(memory_of(&s), limits.memory_bytes);
	const D3DKMT_DESTROYCONTEXT end_it = {.hContext =
						      (D3DKMT_HANDLE)(uintptr_t)w.held.c.hContext};
	assert_int_equal(raw_call(&w.raw, "D3DKMTDestroyContext", (void *)&end_it), STATUS_SUCCESS);
	assert_true(memory_of(&s) < w.bytes); /* including that of the context itself */
	assert_int_equal(queue_wait(&w.raw, &w.other, w.fence, 1), STATUS_SUCCESS);
	raw_close(&w.raw);
	end(&s);
}

/* Makes a semaphore; a wait is charged for each object that it names. */
static D3DKMT_HANDLE make_semaphore(struct raw *raw, D3DKMT_HANDLE device)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = device,
		.Info = {.Type = D3DDDI_SEMAPHORE, .Semaphore = {.MaxCount = 64}}};

	assert_int_equal(raw_call(raw, "D3DKMTCreateSynchronizationObject2", &create),
			 STATUS_SUCCESS);
	return create.hSyncObject;
}

/*
 * The context ends, then the client, with waits in its queue. The account itself checks that all
 * charges are refunded.
 */
static void q_150_abandoned_waits_are_refunded(void **state)
{
	enum { COUNT = 50, OBJECTS = 32 };
	struct client_context third;
	struct waiter w;
	struct scene s;

	(void)state;
	begin(&s, NULL, 0);
	waiter_comes(&s, &w);
	D3DKMT_HANDLE device = raw_device(&w.raw);
	raw_context(&w.raw, device, &third);
	D3DKMT_HANDLE semaphore = make_semaphore(&w.raw, device);
	uint64_t before = memory_of(&s);
	assert_int_equal(queue_wait(&w.raw, &w.held, semaphore, 1), STATUS_SUCCESS);
	uint64_t one = memory_of(&s) - before;
	assert_int_equal(queue_wait(&w.raw, &w.held, semaphore, OBJECTS), STATUS_SUCCESS);
	assert_true(memory_of(&s) > before + 2 * one + OBJECTS * sizeof(void *));
	uint64_t held = memory_of(&s) - before;
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(queue_wait(&w.raw, &third, semaphore, OBJECTS), STATUS_SUCCESS);
	D3DKMT_DESTROYDEVICE end_it = {.hDevice = device};
	assert_true(memory_of(&s) > before + held);
	assert_int_equal(raw_call(&w.raw, "D3DKMTDestroyDevice", &end_it), STATUS_SUCCESS);
	assert_int_equal(memory_of(&s), w.bytes + held); /* the waits of the other device stay */
	raw_close(&w.raw);
	end(&s);
}

/*
 * Each queued event keeps a descriptor of the client in the host. Their number is limited like that
 * of handles.
 */
static void events_have_a_limit(void **state)
{
	enum { LIMIT = 40 };
	const struct vidmm_client_limits limits = {.handles = LIMIT};
	struct client_context held, other;
	struct scene s;
	struct raw raw;
	uint64_t signaled = 0;
	NTSTATUS status;

	(void)state;
	begin(&s, &limits, 0);
	const int event = eventfd(0, EFD_CLOEXEC);
	raw_open(&raw, &s.served, "waits");
	D3DKMT_HANDLE device = raw_device(&raw);
	raw_context(&raw, device, &held);
	raw_context(&raw, device, &other);
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {.hDevice = device,
						      .Info = {.Type = D3DDDI_FENCE}};
	assert_int_equal(raw_call(&raw, "D3DKMTCreateSynchronizationObject2", &create),
			 STATUS_SUCCESS);
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 wait = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)held.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = {create.hSyncObject},
		.Fence.FenceValue = 1};
	assert_int_equal(raw_call(&raw, "D3DKMTWaitForSynchronizationObject2", &wait),
			 STATUS_SUCCESS);
	for (uint32_t i = 0; i < LIMIT; i++)
		assert_int_equal(queue_event(&raw, &held, event), STATUS_SUCCESS);
	assert_int_equal(queue_event(&raw, &held, event), STATUS_INSUFFICIENT_RESOURCES);
	served_await(&s.served, "it has reached its limit");
	/* An event whose wait has ended does not count. */
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 signal = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)other.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = {create.hSyncObject},
		.Fence.FenceValue = 1};
	assert_int_equal(raw_call(&raw, "D3DKMTSignalSynchronizationObject2", &signal),
			 STATUS_SUCCESS);
	while (signaled < LIMIT) {
		eventfd_t times;

		assert_int_equal(eventfd_read(event, &times), 0);
		signaled += times;
	}
	/* The last event is signaled before its charge is refunded. */
	while ((status = queue_event(&raw, &held, event)) == STATUS_INSUFFICIENT_RESOURCES)
		sched_yield();
	assert_int_equal(status, STATUS_SUCCESS);
	close(event);
	raw_disconnect(&raw);
	end(&s);
}

/* ---- the list of clients ---- */

static void the_list_of_clients_is_asked_for_over_the_socket(void **state)
{
	const struct vmm_message_head ask = {.magic = VMM_PROTOCOL_MAGIC,
					     .kind = VMM_MESSAGE_CLIENTS};
	struct {
		struct vmm_message_head head;
		struct vmm_message_client client[4];
	} list;
	struct scene s;
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	(void)state;
	begin(&s, NULL, 0);
	int fd = raw_socket(&s.served);
	message(fd, &ask, sizeof(ask), NULL, 0);
	assert_int_equal(raw_receive(fd, &list, sizeof(list), fds, &count),
			 sizeof(list.head) + sizeof(list.client[0]));
	assert_int_equal(list.head.kind, VMM_MESSAGE_LIST);
	assert_int_equal(list.head.bytes, sizeof(list.client[0]));
	assert_string_equal(list.client[0].name, "witness");
	assert_int_equal(list.client[0].pid, getpid());
	assert_int_equal(list.client[0].devices, 1);
	raw_expect_end(fd);
	close(fd);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_with_a_bad_first_message_are_refused),
		cmocka_unit_test(invalid_hellos_are_refused),
		cmocka_unit_test(a_session_cannot_be_joined_by_a_guessed_number),
		cmocka_unit_test(silent_peers_do_not_block_new_clients),
		cmocka_unit_test(malformed_messages_end_their_client),
		cmocka_unit_test(the_messages_of_the_first_channel_on_another_end_their_client),
		cmocka_unit_test(invalid_requests_are_refused),
		cmocka_unit_test(requests_without_an_argument),
		cmocka_unit_test(a_client_that_never_reads_its_answers),
		cmocka_unit_test(channels_have_a_limit),
		cmocka_unit_test(clients_have_a_limit),
		cmocka_unit_test(handles_have_a_limit),
		cmocka_unit_test(memory_has_a_limit),
		cmocka_unit_test(buffers_are_charged),
		cmocka_unit_test(events_have_a_limit),
		cmocka_unit_test(q_150_queued_waits_are_charged),
		cmocka_unit_test(q_150_abandoned_waits_are_refunded),
		cmocka_unit_test(the_list_of_clients_is_asked_for_over_the_socket),
	};

	return cmocka_run_group_tests_name("serve: harm", tests, NULL, NULL);
}
