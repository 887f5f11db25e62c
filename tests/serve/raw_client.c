/* SPDX-License-Identifier: MIT */
#include "raw_client.h"
#include "support/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "serve/serve_private.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* ---- the host ---- */

static void note_line(void *context, const char *line)
{
	struct served *served = context;

	pthread_mutex_lock(&served->lock);
	snprintf(served->line[served->lines++ % SERVED_LINES], sizeof(served->line[0]), "%s", line);
	pthread_cond_broadcast(&served->changed);
	pthread_mutex_unlock(&served->lock);
}

void served_start_with(struct served *served, const struct vidmm_client_limits *limits,
		       uint32_t clients_max, int adopt_ms)
{
	const struct vmm_server_hooks hooks = {.adopt_ms = adopt_ms};
	const struct client_options options = {.kind = VIDMM_HOST_LINUX, .vram_bytes = 4 * MIB};
	struct vidmm_server_options server = {
		.struct_size = sizeof(server),
		.clients_max = clients_max,
		.log = note_line,
		.log_context = served,
	};

	memset(served, 0, sizeof(*served));
	pthread_mutex_init(&served->lock, NULL);
	pthread_cond_init(&served->changed, NULL);
	if (limits)
		server.limits = *limits;
	client_start(&served->client, &options);
	assert_int_equal(
		vmm_server_create_hooked(served->client.host, &server, &hooks, &served->server), 0);
}

void served_start(struct served *served, const struct vidmm_client_limits *limits,
		  uint32_t clients_max)
{
	served_start_with(served, limits, clients_max, 0);
}

void served_stop(struct served *served)
{
	vidmm_server_destroy(served->server);
	if (served->client.findings)
		fail_msg("%u findings, first: %s", served->client.findings,
			 served->client.finding[0]);
	client_stop(&served->client);
	pthread_mutex_destroy(&served->lock);
	pthread_cond_destroy(&served->changed);
}

static bool was_logged(const struct served *served, const char *text)
{
	for (uint32_t i = 0; i < SERVED_LINES && i < served->lines; i++)
		if (strstr(served->line[i], text))
			return true;
	return false;
}

void served_await(struct served *served, const char *text)
{
	pthread_mutex_lock(&served->lock);
	while (!was_logged(served, text))
		pthread_cond_wait(&served->changed, &served->lock);
	pthread_mutex_unlock(&served->lock);
}

void served_await_lines(struct served *served, uint32_t count)
{
	pthread_mutex_lock(&served->lock);
	while (served->lines < count)
		pthread_cond_wait(&served->changed, &served->lock);
	pthread_mutex_unlock(&served->lock);
}

void served_await_clients(struct served *served, uint32_t count)
{
	while (vidmm_server_clients(served->server, NULL, 0) != count)
		sched_yield();
}

/* ---- packets ---- */

bool raw_send(int fd, const void *head, size_t head_bytes, const void *body, size_t body_bytes,
	      const int *fds, uint32_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control;
	struct iovec parts[2] = {{(void *)(uintptr_t)head, head_bytes},
				 {(void *)(uintptr_t)body, body_bytes}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = body_bytes ? 2 : 1};

	if (count) {
		assert_true(count <= 64);
		memset(&control, 0, sizeof(control));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
				      .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
}

size_t raw_receive(int fd, void *packet, size_t room, int *fds, uint32_t *count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(VMM_PROTOCOL_DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct iovec part = {packet, room};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t length;

	do
		length = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	*count = 0;
	if (length <= 0)
		return 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c) {
		*count = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), *count * sizeof(int));
	}
	return (size_t)length;
}

void raw_expect_end(int fd)
{
	static _Thread_local char packet[VMM_PROTOCOL_INLINE_MAX + 128];
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	while (raw_receive(fd, packet, sizeof(packet), fds, &count))
		while (count)
			close(fds[--count]);
}

/* ---- connecting and disconnecting ---- */

int raw_socket(struct served *served)
{
	return connect_to(served->server);
}

void raw_open(struct raw *raw, struct served *served, const char *name)
{
	raw_open_with(raw, served, name, 1024 * MIB);
}

static int open_userfault(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool say_hello(struct raw *raw, const char *name, uint64_t window_bytes, int userfault);

bool raw_open_freezable(struct raw *raw, struct served *served, const char *name)
{
	int userfault = open_userfault();

	if (userfault < 0)
		return false;
	memset(raw, 0, sizeof(*raw));
	raw->served = served;
	assert_true(say_hello(raw, name, 1024 * MIB, userfault));
	return true;
}

void raw_open_with(struct raw *raw, struct served *served, const char *name, uint64_t window_bytes)
{
	memset(raw, 0, sizeof(*raw));
	raw->served = served;
	assert_true(say_hello(raw, name, window_bytes, -1));
}

void raw_open_asking(struct raw *raw, struct served *served, const char *name)
{
	memset(raw, 0, sizeof(*raw));
	raw->served = served;
	raw->flags = VMM_HELLO_TEXTS;
	assert_true(say_hello(raw, name, MIB, -1));
}

bool raw_try_open(struct raw *raw, struct served *served, const char *name)
{
	memset(raw, 0, sizeof(*raw));
	raw->served = served;
	bool welcome = say_hello(raw, name, MIB, -1);
	if (!welcome)
		raw_close(raw);
	return welcome;
}

static void send_hello(struct raw *raw, const char *name, uint64_t window_bytes, int userfault)
{
	int pair[2];

	raw->userfault = userfault;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	raw->view = pair[0];
	raw->window_bytes = window_bytes;
	raw->window = mmap(NULL, raw->window_bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(raw->window != MAP_FAILED);
	struct vmm_message_hello hello = {
		.head = {.magic = VMM_PROTOCOL_MAGIC,
			 .kind = VMM_MESSAGE_HELLO,
			 .descriptors = userfault < 0 ? 1 : 2},
		.version = VMM_PROTOCOL_VERSION,
		.flags = raw->flags,
		.window_address = (uint64_t)(uintptr_t)raw->window,
		.window_bytes = raw->window_bytes,
	};
	snprintf(hello.name, sizeof(hello.name), "%s", name);
	const int given[] = {pair[1], userfault};
	assert_true(raw_send(raw->channel, &hello, sizeof(hello), NULL, 0, given,
			     hello.head.descriptors));
	close(pair[1]);
}

/* Returns false if the server refuses the client. */
static bool say_hello(struct raw *raw, const char *name, uint64_t window_bytes, int userfault)
{
	union {
		struct vmm_message_head head;
		struct vmm_message_welcome welcome;
		struct vmm_message_refused refused;
	} answer;
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	raw->channel = raw_socket(raw->served);
	send_hello(raw, name, window_bytes, userfault);
	size_t bytes = (size_t)raw_receive(raw->channel, &answer, sizeof(answer), fds, &count);
	if (bytes == sizeof(answer.refused) && answer.head.kind == VMM_MESSAGE_REFUSED)
		return false;
	assert_int_equal(bytes, sizeof(answer.welcome));
	assert_int_equal(answer.head.kind, VMM_MESSAGE_WELCOME);
	raw->welcome = answer.welcome;
	return true;
}

void raw_open_briefly(struct served *served, const char *name)
{
	struct raw raw = {.served = served};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	raw.channel = pair[0];
	send_hello(&raw, name, MIB, -1);
	raw_close(&raw);
	assert_int_equal(vidmm_server_connect(served->server, pair[1]), 0);
}

void raw_close(struct raw *raw)
{
	if (raw->channel >= 0)
		close(raw->channel);
	if (raw->view >= 0)
		close(raw->view);
	if (raw->userfault >= 0)
		close(raw->userfault);
	raw->userfault = -1;
	munmap(raw->window, raw->window_bytes);
	raw->channel = raw->view = -1;
}

void raw_disconnect(struct raw *raw)
{
	const struct vmm_message_head disconnect = {.magic = VMM_PROTOCOL_MAGIC,
						    .kind = VMM_MESSAGE_DISCONNECT};

	assert_true(raw_send(raw->channel, &disconnect, sizeof(disconnect), NULL, 0, NULL, 0));
	raw_expect_end(raw->channel);
	raw_close(raw);
}

int raw_join(struct raw *raw, int32_t *status)
{
	union {
		struct vmm_message_head head;
		struct vmm_message_welcome welcome;
		struct vmm_message_refused refused;
	} answer;
	const struct vmm_message_join join = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_JOIN},
		.session = {raw->welcome.session[0], raw->welcome.session[1]},
	};
	int fd = raw_socket(raw->served), fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	assert_true(raw_send(fd, &join, sizeof(join), NULL, 0, NULL, 0));
	assert_true(raw_receive(fd, &answer, sizeof(answer), fds, &count) >= sizeof(answer.head));
	*status = 0;
	if (answer.head.kind == VMM_MESSAGE_WELCOME)
		return fd;
	assert_int_equal(answer.head.kind, VMM_MESSAGE_REFUSED);
	*status = answer.refused.status;
	raw_expect_end(fd);
	close(fd);
	return -1;
}

/* ---- calls ---- */

/* A request that is too long for a packet is sent as a memfd. */
static int memfd_of(const struct vmm_wire_bytes *bytes)
{
	int fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, bytes->data, bytes->length), bytes->length);
	assert_int_equal(
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL),
		0);
	return fd;
}

static bool send_request(struct raw *raw, int channel, const struct vmm_wire_call *call)
{
	struct vmm_message_request message = {
		.head = {.magic = VMM_PROTOCOL_MAGIC,
			 .kind = VMM_MESSAGE_REQUEST,
			 .bytes = call->request.length},
		.operation = call->operation->number,
		.tag = ++raw->tag,
	};
	bool in_memfd = call->request.length > VMM_PROTOCOL_INLINE_MAX;
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count = 0;

	if (in_memfd)
		fds[count++] = memfd_of(&call->request);
	for (uint32_t i = 0; i < call->descriptor_count; i++)
		fds[count++] = (int)call->descriptors[i];
	message.head.descriptors = count;
	bool sent = raw_send(channel, &message, sizeof(message), call->request.data,
			     in_memfd ? 0 : call->request.length, fds, count);
	if (in_memfd)
		close(fds[0]);
	return sent;
}

static void ask(struct vmm_wire_call *call, const char *operation, const void *argument)
{
	const struct vmm_wire_operation *known = vmm_wire_operation_named(operation);

	assert_non_null(known);
	assert_int_equal(vmm_wire_make_request(call, known, argument), VMM_OK);
}

void raw_ask(struct raw *raw, int channel, const char *operation, const void *argument)
{
	struct vmm_wire_call call = {0};

	ask(&call, operation, argument);
	assert_true(send_request(raw, channel, &call));
	vmm_wire_finish(&call);
}

struct arrived {
	struct vmm_message_answer answer;
	uint8_t body[VMM_PROTOCOL_INLINE_MAX];
};

NTSTATUS raw_await(int channel)
{
	struct arrived *arrived = calloc(1, sizeof(*arrived));
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	assert_non_null(arrived);
	size_t length = raw_receive(channel, arrived, sizeof(*arrived), fds, &count);
	NTSTATUS status = length ? arrived->answer.status : STATUS_DEVICE_REMOVED;
	while (count)
		close(fds[--count]);
	free(arrived);
	return status;
}

static void accept_answer(struct vmm_wire_call *call, struct arrived *arrived, size_t length,
			  int *fds, uint32_t count, void *argument)
{
	uint32_t bytes = arrived->answer.head.bytes, first = 0;
	uint8_t *body = arrived->body;

	if (bytes > VMM_PROTOCOL_INLINE_MAX) {
		assert_true(count > 0);
		body = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fds[0], 0);
		assert_true(body != MAP_FAILED);
		close(fds[0]);
		first = 1;
	} else {
		assert_int_equal(length, sizeof(arrived->answer) + bytes);
	}
	call->descriptor_count = 0;
	for (uint32_t i = first; i < count; i++)
		call->descriptors[call->descriptor_count++] = fds[i];
	assert_int_equal(vmm_wire_read_answer(call, body, bytes, argument), VMM_OK);
	if (first)
		munmap(body, bytes);
}

static void execute(struct raw *raw, const struct vmm_message_view *view, int *fds, uint32_t count)
{
	int flags = MAP_FIXED |
		    (view->what == VMM_VIEW_MAP ? MAP_SHARED
						: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	int access = view->what != VMM_VIEW_MAP ? PROT_NONE
		     : view->writable           ? PROT_READ | PROT_WRITE
						: PROT_READ;
	char *address = (char *)(uintptr_t)view->address;

	assert_true(address >= raw->window &&
		    address + view->length <= raw->window + raw->window_bytes);
	assert_int_equal(count, view->what == VMM_VIEW_MAP);
	/*
	 * The bare system call: ThreadSanitizer takes mmap for a store to the range, which other
	 * threads use meanwhile.
	 */
	assert_true((char *)syscall(SYS_mmap, address, view->length, access, flags,
				    count ? fds[0] : -1, (off_t)view->offset) == address);
	raw->maps += count;
	struct uffdio_range range = {.start = view->address, .len = view->length};
	if (raw->userfault >= 0)
		(void)ioctl(raw->userfault, UFFDIO_WAKE, &range);
	while (count)
		close(fds[--count]);
}

void raw_catch_up(struct raw *raw, uint64_t number)
{
	union {
		struct vmm_message_head head;
		struct vmm_message_view view;
		struct vmm_message_notification notification;
	} message;
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	while (raw->views < number) {
		assert_true(raw_receive(raw->view, &message, sizeof(message), fds, &count) > 0);
		assert_int_equal(message.view.number, ++raw->views);
		if (message.head.kind == VMM_MESSAGE_VIEW)
			execute(raw, &message.view, fds, count);
	}
}

NTSTATUS raw_call_on(struct raw *raw, int channel, const char *operation, void *argument)
{
	struct vmm_wire_call call = {0};
	struct arrived *arrived = calloc(1, sizeof(*arrived));
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t count;

	assert_non_null(arrived);
	ask(&call, operation, argument);
	size_t length = 0;
	if (send_request(raw, channel, &call))
		length = raw_receive(channel, arrived, sizeof(*arrived), fds, &count);
	if (!length) {
		vmm_wire_finish(&call);
		free(arrived);
		return STATUS_DEVICE_REMOVED;
	}
	assert_true(length >= sizeof(arrived->answer));
	raw->answer = arrived->answer;
	assert_int_equal(raw->answer.head.kind, VMM_MESSAGE_ANSWER);
	assert_int_equal(raw->answer.tag, raw->tag);
	if (raw->view >= 0)
		raw_catch_up(raw, raw->answer.views);
	if (raw->answer.answered)
		accept_answer(&call, arrived, length, fds, count, argument);
	vmm_wire_finish(&call);
	free(arrived);
	return raw->answer.status;
}

/* ---- what most tests need ---- */

D3DKMT_HANDLE raw_adapter(struct raw *raw)
{
	D3DKMT_ADAPTERINFO info = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	assert_int_equal(raw_call(raw, "D3DKMTEnumAdapters2", &all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	return info.hAdapter;
}

D3DKMT_HANDLE raw_device(struct raw *raw)
{
	D3DKMT_CREATEDEVICE args = {.hAdapter = raw_adapter(raw)};

	assert_int_equal(raw_call(raw, "D3DKMTCreateDevice", &args), STATUS_SUCCESS);
	return args.hDevice;
}

NTSTATUS raw_try_allocate(struct raw *raw, D3DKMT_HANDLE device, uint64_t bytes,
			  D3DKMT_HANDLE *allocation)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = bytes};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};

	NTSTATUS status = raw_call(raw, "D3DKMTCreateAllocation", &args);
	*allocation = info.hAllocation;
	return status;
}

D3DKMT_HANDLE raw_allocate(struct raw *raw, D3DKMT_HANDLE device, uint64_t bytes)
{
	D3DKMT_HANDLE allocation;

	assert_int_equal(raw_try_allocate(raw, device, bytes, &allocation), STATUS_SUCCESS);
	return allocation;
}

NTSTATUS raw_lock(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation, void **data)
{
	D3DKMT_LOCK args = {.hDevice = device, .hAllocation = allocation};
	NTSTATUS status = raw_call(raw, "D3DKMTLock", &args);

	*data = args.pData;
	return status;
}

NTSTATUS raw_unlock(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	D3DKMT_UNLOCK args = {.hDevice = device, .NumAllocations = 1, .phAllocations = &allocation};

	return raw_call(raw, "D3DKMTUnlock", &args);
}

void raw_context(struct raw *raw, D3DKMT_HANDLE device, struct client_context *c)
{
	D3DKMT_CREATECONTEXT args = {.hDevice = device};

	assert_int_equal(raw_call(raw, "D3DKMTCreateContext", &args), STATUS_SUCCESS);
	memset(c, 0, sizeof(*c));
	c->c.hContext = (HANDLE)(uintptr_t)args.hContext;
	c->c.pCommandBuffer = args.pCommandBuffer;
	c->c.CommandBufferSize = args.CommandBufferSize;
	c->c.pAllocationList = args.pAllocationList;
	c->c.AllocationListSize = args.AllocationListSize;
	c->c.pPatchLocationList = args.pPatchLocationList;
	c->c.PatchLocationListSize = args.PatchLocationListSize;
}

void raw_render(struct raw *raw, struct client_context *c)
{
	D3DKMT_RENDER args = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)c->c.hContext,
		.CommandLength = c->command_bytes,
		.AllocationCount = c->allocations,
		.PatchLocationCount = c->patches,
	};

	assert_int_equal(raw_call(raw, "D3DKMTRender", &args), STATUS_SUCCESS);
	c->c.pCommandBuffer = args.pNewCommandBuffer;
	c->c.pAllocationList = args.pNewAllocationList;
	c->command_bytes = c->allocations = c->patches = 0;
}

D3DKMT_HANDLE raw_mutex(struct raw *raw, D3DKMT_HANDLE *global)
{
	D3DKMT_CREATEKEYEDMUTEX args = {0};

	assert_int_equal(raw_call(raw, "D3DKMTCreateKeyedMutex", &args), STATUS_SUCCESS);
	if (global)
		*global = args.hSharedHandle;
	return args.hKeyedMutex;
}

void raw_ask_acquire(struct raw *raw, int channel, D3DKMT_HANDLE mutex, uint64_t key)
{
	const D3DKMT_ACQUIREKEYEDMUTEX args = {.hKeyedMutex = mutex, .Key = key};

	raw_ask(raw, channel, "D3DKMTAcquireKeyedMutex", &args);
}

NTSTATUS raw_release(struct raw *raw, D3DKMT_HANDLE mutex, uint64_t key)
{
	D3DKMT_RELEASEKEYEDMUTEX args = {.hKeyedMutex = mutex, .Key = key};

	return raw_call(raw, "D3DKMTReleaseKeyedMutex", &args);
}

void served_await_inside(struct served *served, uint32_t calls)
{
	struct vidmm_client_info info[64];
	uint32_t inside;

	do {
		uint32_t count = vidmm_server_clients(served->server, info, 64);

		inside = 0;
		for (uint32_t i = 0; i < count; i++)
			inside += info[i].requests_in_flight;
		sched_yield();
	} while (inside != calls);
}

/* ---- how most tests begin and end ---- */

void served_meet(struct served *served, struct raw *one, const char *name, struct raw *two,
		 const char *name_of_two)
{
	served_start(served, NULL, 0);
	raw_open(one, served, name);
	if (two)
		raw_open(two, served, name_of_two);
}

void served_part(struct served *served, struct raw *one, struct raw *two)
{
	raw_disconnect(one);
	if (two)
		raw_disconnect(two);
	served_stop(served);
}
