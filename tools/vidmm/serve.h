/* SPDX-License-Identifier: MIT */
/*
 * `vidmm serve`: a host with adapters for out-of-process clients, until SIGTERM or SIGINT. `vidmm
 * clients`: lists the clients of a host.
 */
#ifndef VIDMM_TOOLS_SERVE_H
#define VIDMM_TOOLS_SERVE_H

#include <stdbool.h>
#include <stdio.h>
#include <vidmm/serve.h>

#include "fault.h"
#include "replay.h"

#define SERVE_ADAPTERS_MAX 16u
#define SERVE_BARS_MAX     6u
#define SERVE_SETTINGS_MAX 64u

struct serve_adapter {
	char *driver; /* path of a shared object; NULL: softgpu */
	char *device; /* path of a device model; NULL: memory BARs */
	uint64_t bars[SERVE_BARS_MAX];
	unsigned bar_count; /* 0: the device has one BAR of 256 MiB */
	struct vidmm_registry_value settings[SERVE_SETTINGS_MAX + 1]; /* and the chosen model */
	unsigned setting_count;
	const struct vidmm_policy *policy; /* from a file (policy.h); NULL: none */
	char *description, *driver_store;  /* NULL: the library's defaults */
	uint64_t system_memory_bytes;
	uint32_t physical_adapters;
};

struct serve_options {
	struct serve_adapter adapters[SERVE_ADAPTERS_MAX];
	unsigned adapter_count;
	struct vidmm_client_limits limits;
	uint32_t clients_max;
	bool other_users;   /* programs of other users may connect */
	char *socket, *log; /* NULL: the default path; the standard error stream */
	char *record;       /* file for a recording of all events; NULL: none */
	bool quiet;
	struct fault fault; /* from the first client on */
};

/* Parses argv[1..] of `vidmm serve`; returns as options_parse does (options.h). */
bool serve_options_parse(int argc, const char **argv, struct serve_options *options,
			 int *exit_code);
void serve_options_finish(struct serve_options *options);
/*
 * Reads a JSON configuration (docs/serve.md) into OPTIONS. Returns false on an error, which has
 * been printed.
 */
bool serve_config_read(const char *path, struct serve_options *options);

/* ---- serve_socket.c ---- */
struct serve_socket {
	int fd, lock; /* lock: file descriptor of the lock file, -1 for a socket of systemd */
	char *path;   /* unlinked on close; NULL: a socket of systemd */
};
/*
 * Returns the default path of the socket, to be freed. Returns NULL after a message if
 * XDG_RUNTIME_DIR is not set, or NULL when out of memory.
 */
char *serve_default_path(void);
/*
 * Listens at PATH, or on the socket that systemd passed. NULL is the default path; its directory is
 * created with mode 0700. Returns REPLAY_ENVIRONMENT after a message if another server listens
 * there or the socket cannot be made.
 */
enum replay_status serve_socket_open(const char *path, struct serve_socket *socket);
void serve_socket_close(struct serve_socket *socket);

/* ---- serve_log.c ---- */
void serve_log_write(FILE *log, const char *text);
/* Writes a line about CLIENT (0: about none), within the rate limit of that client. */
void serve_log_limited(FILE *log, uint32_t client, const char *text);

/* What the caller of serve_run learns. The functions must not call vidmm, except `stopping`. */
struct serve_hooks {
	void (*ready)(void *context); /* clients can connect */
	uint64_t events;              /* bit n: enum vidmm_event_type n */
	vidmm_event_fn *event;
	/* no client is connected any more; the adapters are still running */
	void (*stopping)(void *context, struct vidmm_adapter *const *adapters, unsigned count);
	void *context;
};
/* Serves until SIGTERM or SIGINT. */
enum replay_status serve_run(const struct serve_options *options, FILE *log,
			     const struct serve_hooks *hooks);

int serve_main(int argc, const char **argv);
int clients_main(int argc, const char **argv);

#endif
