/* SPDX-License-Identifier: MIT */
/*
 * A client without the client library: it sends valid and invalid messages of protocol.h from
 * threads of the test. Also the host that it talks to: softgpu and a server, with the log and the
 * findings.
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
	char line[SERVED_LINES][256]; /* the last lines that the server has logged */
};

void served_start(struct served *served, const struct vidmm_client_limits *limits,
		  uint32_t clients_max);
/* adopt_ms: how long the host waits for an answer about client memory; 0: a minute. */
void served_start_with(struct served *served, const struct vidmm_client_limits *limits,
		       uint32_t clients_max, int adopt_ms);
/*
 * Checks that no client is connected, and that the only findings are those that the test has
 * cleared.
 */
void served_stop(struct served *served);
/* Waits until a line that contains the text has been logged. */
void served_await(struct served *served, const char *text);
/* Waits until that many lines have been logged. */
void served_await_lines(struct served *served, uint32_t count);
/* Waits until exactly that many clients are connected. */
void served_await_clients(struct served *served, uint32_t count);

struct raw {
	struct served *served;
	int channel, view; /* -1: closed */
	int userfault;     /* -1: none */
	uint32_t flags;    /* of the hello */
	struct vmm_message_welcome welcome;
	struct vmm_message_answer answer; /* the last answer */
	char *window;
	uint64_t window_bytes;
	uint64_t views; /* number of the last executed view instruction */
	uint32_t maps;  /* executed instructions that map memory */
	uint64_t tag;
};

/* One end of a socketpair; the other is the server's. */
int raw_socket(struct served *served);
void raw_open(struct raw *raw, struct served *served, const char *name);
/* Returns false if the server refused the client. */
bool raw_try_open(struct raw *raw, struct served *served, const char *name);
void raw_open_with(struct raw *raw, struct served *served, const char *name, uint64_t window_bytes);
/* Asks for findings and reasons (VMM_HELLO_TEXTS). */
void raw_open_asking(struct raw *raw, struct served *served, const char *name);
/*
 * With a userfaultfd, so that the host can write-protect mapped memory. Returns false, with nothing
 * open, if the kernel allows none.
 */
bool raw_open_freezable(struct raw *raw, struct served *served, const char *name);
/* Sends a hello and closes the socket before the host reads it. */
void raw_open_briefly(struct served *served, const char *name);
void raw_close(struct raw *raw); /* without a clean disconnect, as a program that was killed */
void raw_disconnect(struct raw *raw);
/*
 * Start a host with one client or two, which the test drives. served_part disconnects the remaining
 * ones.
 */
void served_meet(struct served *served, struct raw *one, const char *name, struct raw *two,
		 const char *name_of_two);
void served_part(struct served *served, struct raw *one, struct raw *two);
/*
 * Opens a further channel. Returns the socket, or -1 if the server refused it, with its answer in
 * *status.
 */
int raw_join(struct raw *raw, int32_t *status);

/* Sends the bytes and descriptors. Returns false if the peer has closed the connection. */
bool raw_send(int fd, const void *head, size_t head_bytes, const void *body, size_t body_bytes,
	      const int *fds, uint32_t count);
/*
 * Receives one packet, with descriptors into fds (9). Returns its length; 0: the connection was
 * closed.
 */
size_t raw_receive(int fd, void *packet, size_t room, int *fds, uint32_t *count);
/* Waits until the server closes the connection, whatever it sends before. */
void raw_expect_end(int fd);

/* Makes a call on a channel, and executes the view instructions that the answer names. */
NTSTATUS raw_call_on(struct raw *raw, int channel, const char *operation, void *argument);
#define raw_call(raw, operation, argument) raw_call_on(raw, (raw)->channel, operation, argument)
/* The two halves of a call: sends the request; waits for the answer. */
void raw_ask(struct raw *raw, int channel, const char *operation, const void *argument);
NTSTATUS raw_await(int channel);

/* Executes the instructions on the view socket up to that number. */
void raw_catch_up(struct raw *raw, uint64_t number);

/* Open the first adapter, create a device, allocate memory of softgpu. */
D3DKMT_HANDLE raw_adapter(struct raw *raw);
D3DKMT_HANDLE raw_device(struct raw *raw);
NTSTATUS raw_try_allocate(struct raw *raw, D3DKMT_HANDLE device, uint64_t bytes,
			  D3DKMT_HANDLE *allocation);
D3DKMT_HANDLE raw_allocate(struct raw *raw, D3DKMT_HANDLE device, uint64_t bytes);
NTSTATUS raw_lock(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation, void **data);
NTSTATUS raw_unlock(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation);

/* Creates a context with its buffers in the window; client_fill and the like write into them. */
void raw_context(struct raw *raw, D3DKMT_HANDLE device, struct client_context *c);
void raw_render(struct raw *raw, struct client_context *c);

/* Creates a keyed mutex with key 0: acquiring it with another key waits forever. */
D3DKMT_HANDLE raw_mutex(struct raw *raw, D3DKMT_HANDLE *global);
void raw_ask_acquire(struct raw *raw, int channel, D3DKMT_HANDLE mutex, uint64_t key);
NTSTATUS raw_release(struct raw *raw, D3DKMT_HANDLE mutex, uint64_t key);
/* Waits until that many calls of all clients together are being executed. */
void served_await_inside(struct served *served, uint32_t calls);

#endif
