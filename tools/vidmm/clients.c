/* SPDX-License-Identifier: MIT */
/* `vidmm clients`: asks a server for the list of its clients. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "options.h"
#include "output.h"
#include "packet/packet.h"
#include "serve.h"
#include "units.h"

#define SCHEMA_VERSION 1

static enum replay_status failed(const char *path, const char *why)
{
	fprintf(stderr, "vidmm: %s: %s\n", path, why);
	return REPLAY_ENVIRONMENT;
}

static enum replay_status connect_to(const char *path, int *result)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return failed(path, "the path is too long for a socket");
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		*result = fd;
		return REPLAY_CLEAN;
	}
	const char *why = errno == ENOENT || errno == ECONNREFUSED ? "no server listens there"
								   : strerror(errno);
	if (fd >= 0)
		close(fd);
	return failed(path, why);
}

/* Asks for the list and stores its records in *BYTES, which the caller frees. */
static enum replay_status ask(int fd, const char *path, struct vmm_packet *packet,
			      struct vmm_wire_bytes *bytes)
{
	const struct vmm_message_head question = {.magic = VMM_PROTOCOL_MAGIC,
						  .kind = VMM_MESSAGE_CLIENTS};
	const uint32_t head = sizeof(struct vmm_message_head);

	if (!vmm_packet_reserve(packet) ||
	    vmm_message_send(fd, &question, sizeof(question), NULL, NULL, 0) ||
	    vmm_packet_await(fd, packet) != VMM_RECEIVED)
		return failed(path, "the server does not answer");
	if (packet->u.head.kind == VMM_MESSAGE_REFUSED)
		return failed(path,
			      "the server refuses the list: only its own user may ask for it");
	uint32_t length = packet->u.head.bytes;
	if (packet->u.head.kind != VMM_MESSAGE_LIST || length % sizeof(struct vmm_message_client))
		return failed(path, "the answer is not that of a server of this version");
	if (length > VMM_PROTOCOL_INLINE_MAX)
		return packet->fd_count &&
				       vmm_message_from_memfd(packet->fds[0], length, bytes) >= 0
			       ? REPLAY_CLEAN
			       : failed(path, "the memory object of the answer cannot be read");
	if (packet->bytes != head + length)
		return failed(path, "the answer is shorter or longer than its head says");
	bytes->data = calloc(1, length + 1);
	if (!bytes->data)
		return failed(path, "out of memory");
	bytes->length = length;
	/*
	 * The head of a packet is longer than the head of this message, so the first records were
	 * received into it.
	 */
	uint32_t early = VMM_PACKET_HEAD - head < length ? VMM_PACKET_HEAD - head : length;
	memcpy(bytes->data, (const char *)&packet->u + head, early);
	memcpy(bytes->data + early, packet->body.data, length - early);
	return REPLAY_CLEAN;
}

static void show(const struct vmm_message_client *clients, size_t count)
{
	char memory[32], handles[32], requests[32];

	if (!count)
		printf("no client is connected\n");
	else
		printf("%7s  %7s  %-24s %8s %7s %7s %10s %10s %14s\n", "process", "pid", "name",
		       "channels", "inside", "devices", "memory", "handles", "requests");
	for (size_t i = 0; i < count; i++)
		printf("%7" PRIu32 "  %7" PRIu32 "  %-24.64s %8" PRIu32 " %7" PRIu32 " %7" PRIu32
		       " %10s %10s %14s\n",
		       clients[i].process_id, clients[i].pid, clients[i].name, clients[i].channels,
		       clients[i].requests_in_flight, clients[i].devices,
		       units_bytes(clients[i].memory_bytes, memory, sizeof(memory)),
		       units_count(clients[i].handles, handles, sizeof(handles)),
		       units_count(clients[i].requests, requests, sizeof(requests)));
}

static bool show_json(const struct vmm_message_client *clients, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct vmm_message_client *c = &clients[i];

		(void)json_array_append_new(
			list,
			json_pack("{s:I,s:I,s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "process",
				  (json_int_t)c->process_id, "pid", (json_int_t)c->pid, "uid",
				  (json_int_t)c->uid, "name", c->name, "channels",
				  (json_int_t)c->channels, "requests_in_flight",
				  (json_int_t)c->requests_in_flight, "devices",
				  (json_int_t)c->devices, "memory_bytes",
				  (json_int_t)c->memory_bytes, "handles", (json_int_t)c->handles,
				  "requests", (json_int_t)c->requests));
	}
	json_t *root = json_pack("{s:i,s:o}", "schema_version", SCHEMA_VERSION, "clients", list);
	bool good = root && json_array_size(list) == count &&
		    json_dumpf(root, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;
	json_decref(root);
	return good;
}

static enum replay_status list(const char *path, bool json)
{
	struct vmm_packet packet = {0};
	struct vmm_wire_bytes bytes = {0};
	int fd = -1;
	enum replay_status status = connect_to(path, &fd);

	if (status != REPLAY_CLEAN)
		return status;
	status = ask(fd, path, &packet, &bytes);
	if (status == REPLAY_CLEAN) {
		struct vmm_message_client *clients = (struct vmm_message_client *)bytes.data;
		size_t count = bytes.length / sizeof(*clients);
		bool good = true;

		for (size_t i = 0; i < count; i++)
			clients[i].name[sizeof(clients[i].name) - 1] = '\0';
		if (json)
			good = show_json(clients, count);
		else
			show(clients, count);
		status = output_status(good, status);
	}
	free(bytes.data);
	vmm_packet_finish(&packet);
	close(fd);
	return status;
}

/* The path without --socket: as for programs that are clients. The caller frees it. */
static char *default_path(void)
{
	const char *named = secure_getenv("VIDMM_SOCKET");

	return named && *named ? strdup(named) : serve_default_path();
}

int clients_main(int argc, const char **argv)
{
	char *path = NULL;
	int help = 0, json = 0, exit_code = REPLAY_USAGE;
	struct poptOption table[] = {
		{"socket", 0, POPT_ARG_STRING, &path, 0,
		 "socket of the server (default: $VIDMM_SOCKET, else "
		 "$XDG_RUNTIME_DIR/vidmm/socket)",
		 "PATH"},
		{"json", 0, POPT_ARG_NONE, &json, 0, "JSON output (docs/serve.md)", NULL},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	bool proceed;

	argv[0] = "vidmm clients"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	proceed = options_read(context, "clients", &help, &exit_code);
	if (proceed && poptPeekArg(context)) {
		fprintf(stderr,
			"vidmm clients: unexpected argument \"%s\"\ntry: vidmm clients --help\n",
			poptPeekArg(context));
	} else if (proceed) {
		if (!path)
			path = default_path();
		exit_code = path ? (int)list(path, json) : REPLAY_ENVIRONMENT;
	}
	free(path);
	poptFreeContext(context);
	return exit_code;
}
