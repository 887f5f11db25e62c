/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of the host. At its creation a server plans with those that the process may
 * still open: a part is kept back for connections that are not clients yet and for what calls have
 * open for a moment; the rest is the budget from which each client gets its share (os_share.h). So
 * no client finds the table of descriptors full because of another one.
 */
#include "serve/serve_private.h"

#include <string.h>

/* The least share: sockets, memory of some adapters, and some fences, events and channels. */
enum { SHARE_MIN = 16, SHARE_MAX = 256 };
/* A channel that is no client's yet has its socket and what a HELLO brings. */
enum { PENDING_DESCRIPTORS = 1 + VMM_SERVE_HELLO_DESCRIPTORS };
/* What threads have open for a moment: descriptors of a packet before they are charged, answers. */
enum { MOMENTARY = 32 };

static uint32_t part_of(uint32_t all, uint32_t parts, uint32_t min, uint32_t max)
{
	return vmm_min_u32((uint32_t)vmm_max_u64(all / parts, min), max);
}

bool vmm_shares_begin(struct vidmm_server *server)
{
	struct vidmm_client_limits *limits = &server->options.limits;
	uint32_t left = vmm_os_free_descriptors();

	server->pending_most = part_of(left, 64, 4, 64);
	server->pending_max = part_of(left, 32, 8, 320);
	server->closing_max = part_of(left, 32, 8, 256);
	uint32_t kept_back =
		server->pending_max * PENDING_DESCRIPTORS + server->closing_max + MOMENTARY;
	uint32_t budget = left > kept_back ? left - kept_back : 0;
	if (!limits->descriptors)
		limits->descriptors =
			part_of(budget, 2 * server->options.clients_max, SHARE_MIN, SHARE_MAX);
	server->descriptors_limit = budget / 4;
	if (server->hooks.stepped)
		return true;
	server->budget = vmm_os_budget_create(budget);
	return server->budget;
}

void vmm_shares_end(struct vidmm_server *server)
{
	vmm_os_budget_end(server->budget);
}

void vmm_shares_name_largest(struct vidmm_server *server)
{
	uint32_t most = 0, id = 0, pid = 0;
	struct vmm_list *pos;
	char name[64] = "";

	vmm_server_lock(server);
	vmm_list_for_each (pos, &server->sessions) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, link);
		uint32_t used = session->share ? vmm_os_share_used(session->share) : 0;

		if (used <= most)
			continue;
		most = used;
		id = session->process_id;
		pid = session->pid;
		memcpy(name, session->name, sizeof(name));
	}
	vmm_server_unlock(server);
	if (most)
		vmm_serve_log(server,
			      "client %u has most descriptors of all clients, %u: %s (pid %u)", id,
			      most, name, pid);
}

vmm_status vmm_share_begin(struct vmm_session *session, uint32_t sockets)
{
	struct vidmm_server *server = session->server;

	if (!server->budget)
		return VMM_OK;
	vmm_status status = vmm_os_share_create(server->budget, server->options.limits.descriptors,
						server->descriptors_limit, &session->share);
	if (status == VMM_INSUFFICIENT_RESOURCES) {
		vmm_serve_log(server,
			      "refused: %s (pid %u): the host has no %u descriptors left to set "
			      "aside for it (Q-486)",
			      session->name, session->pid, server->options.limits.descriptors);
		vmm_shares_name_largest(server);
	}
	if (!vmm_ok(status))
		return status;
	session->sockets = sockets;
	if (vmm_os_share_take(session->share, sockets))
		return VMM_OK;
	vmm_os_share_end(session->share);
	session->share = NULL;
	return VMM_INSUFFICIENT_RESOURCES;
}

void vmm_share_end(struct vmm_session *session)
{
	if (!session->share)
		return;
	vmm_os_share_give(session->share, session->sockets);
	vmm_os_share_end(session->share);
	session->share = NULL;
}

bool vmm_share_take(struct vmm_session *session, uint32_t count, const char *what)
{
	if (!session->share || vmm_os_share_take(session->share, count))
		return true;
	vmm_serve_log(session->server,
		      "client %u is refused %s: it has all descriptors that it may have, %u "
		      "(Q-486)",
		      session->process_id, what, vmm_os_share_used(session->share));
	return false;
}

void vmm_share_give(struct vmm_session *session, uint32_t count)
{
	if (session->share)
		vmm_os_share_give(session->share, count);
}
