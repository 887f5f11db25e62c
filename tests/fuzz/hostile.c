/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock_word.h"
#include "hostile.h"
#include "support/hang.h"
#include "wire/protocol.h"

#define WINDOW_ADDRESS ((uint64_t)1 << 44)
#define WINDOW_BYTES   ((uint64_t)1 << 36)
#define OBJECT_MAX     ((size_t)4 << 20) /* bytes that are searched of one object */
#define MOMENT_MS      20

/* ---- the script ---- */

/* Returns the next argument of the step. */
static uint32_t byte(struct hostile *h)
{
	if (h->argument == HOSTILE_ARGUMENTS)
		return 0;
	return h->script[2 + h->argument++];
}

void hostile_wrong(struct hostile *h, const char *what)
{
	if (!h->wrong)
		h->wrong = what;
}

/* ---- checks of what the host sends ---- */

static void look_through(struct hostile *h, const void *memory, size_t bytes, const char *what)
{
	if (memmem(memory, bytes, HOSTILE_CANARY, HOSTILE_CANARY_BYTES))
		hostile_wrong(h, what);
}

void hostile_learn(struct hostile *h, uint32_t handle)
{
	uint32_t at =
		h->pool_count < HOSTILE_POOL ? h->pool_count++ : draw_below(&h->draw, HOSTILE_POOL);

	h->pool[at] = handle;
}

static void keep_view(struct hostile *h, void *memory, size_t bytes)
{
	uint32_t at = h->view_count < HOSTILE_VIEWS ? h->view_count++
						    : draw_below(&h->draw, HOSTILE_VIEWS);

	if (h->views[at].memory)
		munmap(h->views[at].memory, h->views[at].bytes);
	h->views[at] = (struct hostile_view){memory, bytes};
}

/*
 * A shared fence that every opening may signal is sealed only against changes of its size
 * (docs/adr/0003-fences-without-a-message.md).
 */
static bool is_shared_fence(int fd)
{
	char path[32], name[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(path, name, sizeof(name) - 1);
	name[length > 0 ? length : 0] = 0;
	return !strncmp(name, "/memfd:shared fence", 19);
}

/*
 * A memory object of the host: the client may see all of it, and cannot change it in a way that
 * harms the host.
 */
static void look_at_object(struct hostile *h, int fd, bool writable)
{
	struct stat stat;
	int seals = fcntl(fd, F_GET_SEALS);

	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode) || stat.st_size <= 0)
		return;
	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
	    !((seals & F_SEAL_SEAL) || is_shared_fence(fd)) || !ftruncate(fd, 0))
		hostile_wrong(h, "a client can shrink an object that the host has mapped");
	size_t bytes = (size_t)stat.st_size < OBJECT_MAX ? (size_t)stat.st_size : OBJECT_MAX;
	void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return;
	h->mapped++;
	look_through(h, memory, bytes, "another client's bytes can be mapped");
	bool can_write = !mprotect(memory, bytes, PROT_READ | PROT_WRITE);
	if (can_write && !writable)
		hostile_wrong(h, "what is to be read can be written to");
	if (can_write)
		keep_view(h, memory, bytes);
	else
		munmap(memory, bytes);
}

static void take_descriptor(struct hostile *h, int fd, bool keep)
{
	if (!keep || h->descriptor_count == VMM_ARRAY_LENGTH(h->descriptors)) {
		close(fd);
		return;
	}
	h->descriptors[h->descriptor_count++] = fd;
	h->draw.descriptors = h->descriptors;
	h->draw.descriptor_count = h->descriptor_count;
}

/*
 * The epoch is read-only. The table is writable for the client, and the host must survive any
 * contents.
 */
static void look_at_words(struct hostile *h, const struct vmm_message_words *message, int fd)
{
	bool table = message->what == VMM_WORDS_TABLE;

	look_at_object(h, fd, table);
	if (!table)
		return;
	void *words = mmap(NULL, sizeof(struct vmm_lock_words), PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
	if (words != MAP_FAILED)
		hostile_words_take(h, words);
}

static void look_at_message(struct hostile *h, struct hostile_connection *c, const void *message,
			    size_t bytes, const int *fds, uint32_t fd_count)
{
	const struct vmm_message_head *head = message;
	bool view = false, writable = false;

	look_through(h, message, bytes, "another client's bytes are in a message");
	if (bytes < sizeof(*head) || head->magic != VMM_PROTOCOL_MAGIC ||
	    head->descriptors != fd_count)
		hostile_wrong(h, "the host sends what is no message");
	if (bytes >= sizeof(struct vmm_message_welcome) && head->kind == VMM_MESSAGE_WELCOME) {
		const struct vmm_message_welcome *welcome = message;

		c->welcome = true;
		memcpy(c->session, welcome->session, sizeof(c->session));
		h->welcomes++;
	}
	if (bytes >= sizeof(struct vmm_message_answer) && head->kind == VMM_MESSAGE_ANSWER) {
		const struct vmm_message_answer *answer = message;

		h->answers++;
		c->pending -= c->pending > 0;
		h->done += answer->answered && answer->status >= 0;
		h->refusals += !answer->answered;
	}
	if (bytes >= sizeof(struct vmm_message_view) && head->kind == VMM_MESSAGE_VIEW) {
		view = true;
		writable = ((const struct vmm_message_view *)message)->writable != 0;
	}
	if (bytes >= sizeof(struct vmm_message_adopt) && head->kind == VMM_MESSAGE_ADOPT)
		c->asked = ((const struct vmm_message_adopt *)message)->number;
	if (bytes >= sizeof(struct vmm_message_words) && head->kind == VMM_MESSAGE_WORDS &&
	    fd_count == 1)
		look_at_words(h, message, fds[0]);
	for (uint32_t i = 0; i < fd_count; i++) {
		if (view || head->bytes > VMM_PROTOCOL_INLINE_MAX)
			look_at_object(h, fds[i], writable || !view);
		take_descriptor(h, fds[i], !view);
	}
}

static bool receive(struct hostile *h, struct hostile_connection *c, int fd, void *message,
		    size_t *bytes, bool wait)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control;
	struct iovec part = {message, *bytes};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int fds[16];
	uint32_t count = 0;

	if (wait && poll(&poll_fd, 1, HANG_MS) == 0)
		hostile_wrong(h, "a call does not come back");
	ssize_t length = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*bytes = length > 0 ? (size_t)length : 0;
	if (length <= 0)
		return length < 0 && (errno == EAGAIN || errno == EINTR);
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&header); m; m = CMSG_NXTHDR(&header, m))
		if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_RIGHTS) {
			count = (uint32_t)((m->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(fds, CMSG_DATA(m), count * sizeof(int));
		}
	look_at_message(h, c, message, *bytes, fds, count);
	return true;
}

bool hostile_receive(struct hostile *h, struct hostile_connection *c, void *message, size_t *bytes,
		     bool wait)
{
	return c->fd >= 0 && receive(h, c, c->fd, message, bytes, wait);
}

/* Receives everything that has arrived, answers and view instructions. */
void hostile_drain(struct hostile *h, struct hostile_connection *c)
{
	static _Alignas(8) char message[VMM_PROTOCOL_INLINE_MAX + 256];
	const int fds[] = {c->fd, c->view};

	for (uint32_t i = 0; i < 2; i++) {
		size_t bytes;

		do
			bytes = sizeof(message);
		while (fds[i] >= 0 && receive(h, c, fds[i], message, &bytes, false) && bytes);
	}
}

bool hostile_is_free(struct hostile *h, struct hostile_connection *c)
{
	struct pollfd poll_fd = {.fd = c->fd, .events = POLLIN};
	uint32_t before;

	hostile_drain(h, c);
	/* A closed connection is always readable, and returns no bytes. */
	do
		before = c->pending;
	while (c->pending > 0 && c->fd >= 0 && poll(&poll_fd, 1, MOMENT_MS) == 1 &&
	       (hostile_drain(h, c), c->pending < before));
	return c->fd >= 0 && c->pending == 0;
}

bool hostile_send(struct hostile *h, int fd, const void *head, size_t head_bytes,
		  const void *payload, size_t payload_bytes, const int *fds, uint32_t fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(32 * sizeof(int))];
	} control = {0};
	struct iovec parts[2] = {{(void *)(uintptr_t)head, head_bytes},
				 {(void *)(uintptr_t)payload, payload_bytes}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = payload_bytes ? 2 : 1};

	(void)h;
	if (fd < 0)
		return false;
	if (fd_count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.align = (struct cmsghdr){.cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* ---- steps ---- */

static void drop(struct hostile_connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->view >= 0)
		close(c->view);
	*c = (struct hostile_connection){.fd = -1, .view = -1};
}

static void connect_again(struct hostile *h, struct hostile_connection *c)
{
	int pair[2];

	drop(c);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	c->fd = pair[0];
	/* Opens a connection; the other end belongs to the server, whatever is sent. */
	(void)!vmm_ok(vidmm_server_connect(h->server, pair[1]));
}

/* Returns a descriptor of the given kind; the caller closes it after it was sent. */
static int odd_descriptor(uint32_t what, size_t bytes)
{
	int pair[2], fd = -1;

	switch (what % 8) {
	case 0:
	case 1:
		fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd >= 0 && !ftruncate(fd, (off_t)bytes) && what % 8)
			(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
		return fd;
	case 2:
		return eventfd(0, EFD_CLOEXEC);
	case 3:
		return open("/dev/zero", O_RDONLY | O_CLOEXEC);
	case 4:
		return open("/", O_PATH | O_CLOEXEC);
	case 5:
		if (!pipe2(pair, O_CLOEXEC)) {
			close(pair[1]);
			fd = pair[0];
		}
		return fd;
	case 6:
		return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	default:
		return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
}

/* A userfaultfd of this program, like that of a client; nothing is mapped in the window. */
static int userfault(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1 /* user mode only */);
	if (fd >= 0)
		(void)ioctl(fd, UFFDIO_API, &api);
	return fd >= 0 ? fd : eventfd(0, EFD_CLOEXEC);
}

static void hello(struct hostile *h, struct hostile_connection *c, uint32_t variant)
{
	int pair[2], fds[3];
	uint32_t count = 1;
	struct vmm_message_hello m = {
		.head = {VMM_PROTOCOL_MAGIC, VMM_MESSAGE_HELLO, 0, 1},
		.version = VMM_PROTOCOL_VERSION,
		.window_address = WINDOW_ADDRESS,
		.window_bytes = WINDOW_BYTES,
		.flags = (variant & 16 ? VMM_HELLO_WORDS : variant >> 7) |
			 (variant & 32 ? VMM_HELLO_TEXTS : 0),
		.name = "hostile",
	};
	size_t bytes = sizeof(m);

	if (c->fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	fds[0] = pair[1];
	switch (variant % 16) {
	case 0:
		m.version++;
		break;
	case 1:
		m.window_address += 8;
		break;
	case 2:
		m.window_bytes = UINT64_MAX - 4095;
		break;
	case 3:
		m.window_bytes = 0;
		break;
	case 4:
		memset(m.name, 'x', sizeof(m.name));
		break;
	case 5:
		fds[count++] = odd_descriptor(byte(h), 4096);
		m.head.descriptors = count;
		break;
	case 6:
		m.head.descriptors = byte(h);
		break;
	case 7:
		bytes = byte(h) % sizeof(m);
		break;
	case 8:
		m.head.magic++;
		break;
	case 9:
		fds[count++] = userfault();
		m.head.descriptors = count;
		break;
	default: /* the connection works */
		break;
	}
	if (count > 1 && fds[1] < 0)
		count = m.head.descriptors = 1;
	(void)hostile_send(h, c->fd, &m, bytes, NULL, 0, fds, count);
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
	if (c->view >= 0)
		close(c->view);
	c->view = pair[0];
	c->first = true;
	size_t room = 256;
	_Alignas(8) char answer[256];
	if (variant % 16 > 8)
		(void)hostile_receive(h, c, answer, &room, true);
}

static void join(struct hostile *h, struct hostile_connection *c)
{
	struct hostile_connection *other = &h->connections[byte(h) % HOSTILE_CONNECTIONS];
	struct vmm_message_join m = {
		.head = {VMM_PROTOCOL_MAGIC, VMM_MESSAGE_JOIN, 0, 0},
		.session = {other->session[0], other->session[1]},
	};
	_Alignas(8) char answer[256];
	size_t room = sizeof(answer);

	if (byte(h) % 4 == 0)
		m.session[byte(h) % 2] ^= 1;
	c->device = other->device;
	if (hostile_send(h, c->fd, &m, sizeof(m), NULL, 0, NULL, 0))
		(void)hostile_receive(h, c, answer, &room, true);
}

/* Sends a request whose bytes are in a memfd, or in another file, with a true or a false length. */
static void lying_request(struct hostile *h, struct hostile_connection *c)
{
	uint32_t what = byte(h), said = VMM_PROTOCOL_INLINE_MAX + byte(h) * 4096u + 8;
	size_t real = what & 8 ? said : byte(h) * 4096u;
	int fds[12];
	uint32_t count = what & 16 ? 1 : 1 + byte(h) % 12;
	struct vmm_message_request m = {
		.head = {VMM_PROTOCOL_MAGIC, VMM_MESSAGE_REQUEST, said, count},
		.operation = 1 + byte(h) % 89,
		.tag = ++h->tag,
	};

	for (uint32_t i = 0; i < count; i++) {
		fds[i] = odd_descriptor(what + i, real);
		if (fds[i] < 0)
			fds[i] = eventfd(0, EFD_CLOEXEC);
	}
	if (what & 32)
		m.head.descriptors = byte(h);
	(void)hostile_send(h, c->fd, &m, sizeof(m), NULL, 0, fds, count);
	h->requests++;
	c->pending++;
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
}

static void raw_packet(struct hostile *h, struct hostile_connection *c)
{
	_Alignas(8) uint8_t packet[512];
	size_t bytes = byte(h) * 2u + 1;
	struct vmm_message_head head = {VMM_PROTOCOL_MAGIC, byte(h), byte(h), byte(h) % 3};

	for (size_t i = 0; i < bytes; i++)
		packet[i] = (uint8_t)draw_below(&h->draw, 256);
	if (byte(h) % 4)
		memcpy(packet, &head, bytes < sizeof(head) ? bytes : sizeof(head));
	(void)hostile_send(h, byte(h) % 8 ? c->fd : c->view, packet, bytes, NULL, 0, NULL, 0);
}

/*
 * Writes into memory that is shared with the host: command buffers, lists, locked allocations. No
 * command that runs forever.
 */
static void scribble(struct hostile *h)
{
	if (h->view_count == 0)
		return;
	const struct hostile_view *view = &h->views[byte(h) % h->view_count];
	size_t words = view->bytes / 8;

	for (uint32_t i = byte(h); i > 0 && words; i--) {
		uint64_t *word = (uint64_t *)view->memory +
				 draw_below(&h->draw, words > 512 ? 512 : (uint32_t)words);
		uint64_t opcode = draw_below(&h->draw, 7), flags = draw_below(&h->draw, 8);
		uint64_t size = draw_below(&h->draw, 20) * 8u;

		*(volatile uint64_t *)word = draw_below(&h->draw, 3)
						     ? opcode | flags << 16 | size << 32
						     : h->pool[draw_below(&h->draw, HOSTILE_POOL)];
	}
}

static void scribble_words(struct hostile *h)
{
	uint32_t times = byte(h), way = byte(h);

	hostile_words(h, times, way, byte(h) & 1);
}

static void close_something(struct hostile *h, struct hostile_connection *c)
{
	switch (byte(h) % 4) {
	case 0:
		drop(c);
		break;
	case 1:
		if (c->fd >= 0)
			shutdown(c->fd, SHUT_WR);
		break;
	case 2:
		if (c->view >= 0)
			close(c->view);
		c->view = -1;
		break;
	default:
		if (c->fd >= 0)
			shutdown(c->fd, SHUT_RD);
		break;
	}
}

/* Sends an encoded call with one word changed. */
static void bent_call(struct hostile *h, struct hostile_connection *c)
{
	const uint8_t *arguments = h->script + 2;

	h->bend = (struct hostile_bend){.how = arguments[1] % HOSTILE_BENDS,
					.at = arguments[2] | (uint32_t)arguments[3] << 8,
					.value = arguments[4]};
	hostile_draw_one(h, c, arguments[0]);
	h->bend = (struct hostile_bend){0};
}

static void tell(struct hostile *h, struct hostile_connection *c, uint32_t kind)
{
	const struct vmm_message_head head = {VMM_PROTOCOL_MAGIC, kind, 0, 0};

	(void)hostile_send(h, c->fd, &head, sizeof(head), NULL, 0, NULL, 0);
}

static void step(struct hostile *h)
{
	uint32_t what = h->script[0], which = h->script[1];
	struct hostile_connection *c = &h->connections[which % HOSTILE_CONNECTIONS];

	if (c->fd < 0)
		connect_again(h, c);
	switch (what % HOSTILE_KINDS) {
	case 0:
		connect_again(h, c);
		break;
	case 1:
		hello(h, c, byte(h));
		break;
	case 2:
		scribble_words(h);
		break;
	case 3:
		join(h, c);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		hostile_deep(h, c, byte(h));
		break;
	case 8:
		for (uint32_t i = byte(h) % 16; i > 0; i--)
			hostile_draw(h, c);
		break;
	case 9:
		bent_call(h, c);
		break;
	case 10:
		lying_request(h, c);
		break;
	case 11:
		raw_packet(h, c);
		break;
	case 12:
		close_something(h, c);
		break;
	case 13:
		tell(h, c, VMM_MESSAGE_DISCONNECT + byte(h) % 4);
		break;
	case 14:
		scribble(h);
		break;
	case 16:
		what = byte(h);
		hostile_adopt(h, c, what, byte(h));
		break;
	case 17:
		hostile_virtual(h, c, byte(h));
		break;
	case 18:
		hostile_adapter(h, c, byte(h));
		break;
	default:
		hostile_drain(h, c);
		break;
	}
}

/* Unless the script sets a seed, the same step always draws the same numbers. */
static void begin_step(struct hostile *h)
{
	uint64_t seed = h->script[HOSTILE_STEP_BYTES - 2] |
			(uint64_t)h->script[HOSTILE_STEP_BYTES - 1] << 8;

	h->argument = 0;
	h->draw.pool_count = h->pool_count;
	h->draw.seed = (seed + 1) * 0x9E3779B97F4A7C15u;
}

static void close_all(struct hostile *h)
{
	hostile_words_forget(h);
	for (uint32_t i = 0; i < HOSTILE_CONNECTIONS; i++) {
		hostile_drain(h, &h->connections[i]);
		drop(&h->connections[i]);
	}
	for (uint32_t i = 0; i < h->view_count; i++)
		munmap(h->views[i].memory, h->views[i].bytes);
	for (uint32_t i = 0; i < h->descriptor_count; i++)
		close(h->descriptors[i]);
	draw_forget(&h->draw);
}

void hostile_run(struct hostile *h, struct vidmm_server *server, const uint8_t *script,
		 size_t bytes)
{
	*h = (struct hostile){.server = server};
	h->draw.pool = h->pool;
	for (uint32_t i = 0; i < HOSTILE_CONNECTIONS; i++)
		h->connections[i].fd = h->connections[i].view = -1;
	for (; bytes >= HOSTILE_STEP_BYTES && !h->wrong; bytes -= HOSTILE_STEP_BYTES) {
		h->script = script;
		begin_step(h);
		step(h);
		script += HOSTILE_STEP_BYTES;
	}
	close_all(h);
}
