/* SPDX-License-Identifier: MIT */
/*
 * A program on the other side of a socket, as bare as it can be: it sends messages of protocol.h,
 * good ones and bad ones, from threads of the test. And the host that it talks to: softgpu, a
 * server, what was logged and found.
 */
#ifndef VMM_TESTS_RAW_CLIENT_H
#define VMM_TESTS_RAW_CLIENT_H

#include <support/client.h>

#include <d3dkmthk.h>
#include <vidmm/serve.h>
#include "wire/protocol.h"
#include "wire/wire.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

#define SERVED_LINES 64u
struct served {
	struct client client;
	struct vidmm_server *server;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t lines;
	char line[SERVED_LINES][256]; /* what the server has logged, the last ones */
};

void served_start(struct served *served, const struct vidmm_client_limits *limits,
		  uint32_t clients_max);
/* With another limit than a minute for what a client says of its own memory; 0: that. */
void served_start_with(struct served *served, const struct vidmm_client_limits *limits,
		       uint32_t clients_max, int adopt_ms);
/*
 * Checks that no client is connected, and that there are no findings but those the test has
 * cleared.
 */
void served_stop(struct served *served);
/* Waits until a line with this in it has been logged. */
void served_await(struct served *served, const char *text);
/* Waits until that many lines have been logged. */
void served_await_lines(struct served *served, uint32_t count);
/* Waits until that many clients are there. */
void served_await_clients(struct served *served, uint32_t count);

struct raw {
	struct served *served;
	int channel, view; /* -1: closed */
	int userfault;     /* -1: none */
	struct vmm_message_welcome welcome;
	struct vmm_message_answer answer; /* the last one */
	char *window;
	uint64_t window_bytes;
	uint64_t views; /* executed */
	uint32_t maps;  /* of those, that map something */
	uint64_t tag;
};

/* One end of a socketpair; the other is the server's. */
int raw_socket(struct served *served);
void raw_open(struct raw *raw, struct served *served, const char *name);
/* False: the host turned it away. */
bool raw_try_open(struct raw *raw, struct served *served, const char *name);
void raw_open_with(struct raw *raw, struct served *served, const char *name, uint64_t window_bytes);
/*
 * With a userfaultfd, so that the host can freeze what it shows; false: the kernel has none for us,
 * and nothing is open.
 */
bool raw_open_freezable(struct raw *raw, struct served *served, const char *name);
/* Says hello, and is gone before the host hears it. */
void raw_open_briefly(struct served *served, const char *name);
void raw_close(struct raw *raw); /* as a program that was killed */
void raw_disconnect(struct raw *raw);
/*
 * A host with one client or two, which the test drives; at the end the remaining ones disconnect.
 */
void served_meet(struct served *served, struct raw *one, const char *name, struct raw *two,
		 const char *name_of_two);
void served_part(struct served *served, struct raw *one, struct raw *two);
/* A further channel; what the server answered. -1: it refused, with *status. */
int raw_join(struct raw *raw, int32_t *status);

/* Sends what is given; false: the other side is gone. */
bool raw_send(int fd, const void *head, size_t head_bytes, const void *body, size_t body_bytes,
	      const int *fds, uint32_t count);
/* One packet; its length, 0 for the end. Descriptors into fds (9). */
size_t raw_receive(int fd, void *packet, size_t room, int *fds, uint32_t *count);
/* The server closes that connection, whatever it still sends. */
void raw_expect_end(int fd);

/* A call on a channel, there and back; also executes the views that the answer names. */
NTSTATUS raw_call_on(struct raw *raw, int channel, const char *operation, void *argument);
#define raw_call(raw, operation, argument) raw_call_on(raw, (raw)->channel, operation, argument)
/* Only sends it, and only waits for what comes. */
void raw_ask(struct raw *raw, int channel, const char *operation, const void *argument);
NTSTATUS raw_await(int channel);

/* Executes the instructions on the view socket up to that number. */
void raw_catch_up(struct raw *raw, uint64_t number);

/* The first adapter, a device, an allocation of softgpu's. */
D3DKMT_HANDLE raw_adapter(struct raw *raw);
D3DKMT_HANDLE raw_device(struct raw *raw);
NTSTATUS raw_try_allocate(struct raw *raw, D3DKMT_HANDLE device, uint64_t bytes,
			  D3DKMT_HANDLE *allocation);
D3DKMT_HANDLE raw_allocate(struct raw *raw, D3DKMT_HANDLE device, uint64_t bytes);
NTSTATUS raw_lock(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation, void **data);
NTSTATUS raw_unlock(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation);

/* Its buffers are in the window; client_fill and the like write into them. */
void raw_context(struct raw *raw, D3DKMT_HANDLE device, struct client_context *c);
void raw_render(struct raw *raw, struct client_context *c);

/* A keyed mutex whose key is 0: acquiring it by another one waits forever. */
D3DKMT_HANDLE raw_mutex(struct raw *raw, D3DKMT_HANDLE *global);
void raw_ask_acquire(struct raw *raw, int channel, D3DKMT_HANDLE mutex, uint64_t key);
NTSTATUS raw_release(struct raw *raw, D3DKMT_HANDLE mutex, uint64_t key);
/* Waits until so many calls of all clients together are being executed. */
void served_await_inside(struct served *served, uint32_t calls);

#endif
