/* SPDX-License-Identifier: MIT */
/*
 * `vidmm serve`: a host with its adapters for programs of their own, until it is told to end (SIGTERM, SIGINT); `vidmm clients`: who
 * is connected to one.
 */
#ifndef VIDMM_TOOLS_SERVE_H
#define VIDMM_TOOLS_SERVE_H

#include <stdbool.h>
#include <stdio.h>
#include <vidmm/serve.h>

#include "replay.h"

#define SERVE_ADAPTERS_MAX 16u
#define SERVE_BARS_MAX     6u
#define SERVE_SETTINGS_MAX 64u

struct serve_adapter {
	char *driver; /* path of a shared object; NULL: softgpu */
	uint64_t bars[SERVE_BARS_MAX];
	unsigned bar_count; /* 0: one of 256 MiB */
	struct vidmm_registry_value settings[SERVE_SETTINGS_MAX];
	unsigned setting_count;
	char *description, *driver_store; /* NULL: the library's own */
	uint64_t system_memory_bytes;
	uint32_t physical_adapters;
};

struct serve_options {
	struct serve_adapter adapters[SERVE_ADAPTERS_MAX];
	unsigned adapter_count;
	struct vidmm_client_limits limits;
	uint32_t clients_max;
	bool other_users;   /* programs of other users may come */
	char *socket, *log; /* NULL: the default, standard error */
	bool quiet;
};

/* As options_parse, for argv[1..] of `vidmm serve`. */
bool serve_options_parse(int argc, const char **argv, struct serve_options *options,
			 int *exit_code);
void serve_options_finish(struct serve_options *options);
/* What a file of JSON says (docs/serve.md), into options. False: what is wrong with it has been said. */
bool serve_config_read(const char *path, struct serve_options *options);

/* ---- serve_socket.c ---- */
struct serve_socket {
	int fd, lock; /* lock: -1 where the socket is not ours */
	char *path;   /* to be removed at the end; NULL: not ours */
};
/* Where it is when nobody says: NULL and a message, if nothing tells. */
char *serve_default_path(void);
/*
 * Listens at that path (NULL: the default, whose folder is made, for the user alone), or on what systemd hands over. REPLAY_ENVIRONMENT:
 * somebody serves there already, or it cannot be; that has been said.
 */
enum replay_status serve_socket_open(const char *path, struct serve_socket *socket);
void serve_socket_close(struct serve_socket *socket);

/* ---- serve_log.c ---- */
void serve_log_write(FILE *log, const char *text);
/* Of that client (0: of none): unless there were too many of it. */
void serve_log_of(FILE *log, uint32_t client, const char *text);

int serve_main(int argc, const char **argv);
int clients_main(int argc, const char **argv);

#endif
