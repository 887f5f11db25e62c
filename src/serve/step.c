/* SPDX-License-Identifier: MIT */
/* A server without threads, for worlds with one thread: its clients call it step by step. */
#include "serve/serve_private.h"

static struct vmm_worker *take(struct vidmm_server *server)
{
	struct vmm_worker *worker = NULL;

	vmm_server_lock(server);
	if (!vmm_list_empty(&server->spare_steps)) {
		worker = vmm_container_of(server->spare_steps.next, struct vmm_worker, link);
		vmm_list_remove(&worker->link);
	}
	vmm_server_unlock(server);
	if (worker)
		return worker;
	worker = vmm_calloc(1, sizeof(*worker));
	if (!worker)
		return NULL;
	worker->server = server;
	if (vmm_packet_reserve(&worker->packet))
		return worker;
	vmm_worker_destroy(worker);
	return NULL;
}

static void put(struct vidmm_server *server, struct vmm_worker *worker)
{
	vmm_server_lock(server);
	vmm_list_push_back(&server->spare_steps, &worker->link);
	vmm_server_unlock(server);
}

static struct vmm_channel *by_fd(struct vmm_list *channels, int fd)
{
	struct vmm_list *pos;

	vmm_list_for_each (pos, channels) {
		struct vmm_channel *channel = vmm_container_of(pos, struct vmm_channel, link);

		if (channel->fd == fd)
			return channel;
	}
	return NULL;
}

static struct vmm_channel *find(struct vidmm_server *server, int fd)
{
	struct vmm_list *pos;

	vmm_server_lock(server);
	struct vmm_channel *channel = by_fd(&server->pending, fd);
	vmm_list_for_each (pos, &server->sessions)
		if (!channel)
			channel = by_fd(&vmm_container_of(pos, struct vmm_session, link)->channels,
					fd);
	vmm_server_unlock(server);
	return channel;
}

/* A request may block while others are stepped, so each step has its own worker structure. */
void vmm_server_step(struct vidmm_server *server, int fd)
{
	struct vmm_worker *worker = take(server);
	struct vmm_channel *channel = find(server, fd);

	if (worker && channel)
		vmm_worker_serve(worker, channel);
	if (worker)
		put(server, worker);
}

void vmm_server_step_end(struct vidmm_server *server, uint32_t process_id)
{
	for (;;) {
		struct vmm_list *pos;
		int fd = -1;

		vmm_server_lock(server);
		vmm_list_for_each (pos, &server->sessions) {
			struct vmm_session *session =
				vmm_container_of(pos, struct vmm_session, link);

			if (session->process_id == process_id &&
			    !vmm_list_empty(&session->channels))
				fd = vmm_container_of(session->channels.next, struct vmm_channel,
						      link)
					     ->fd;
		}
		vmm_server_unlock(server);
		if (fd < 0)
			return;
		vmm_server_step(server, fd);
	}
}

void vmm_server_steps_finish(struct vidmm_server *server)
{
	while (!vmm_list_empty(&server->spare_steps)) {
		struct vmm_worker *worker =
			vmm_container_of(server->spare_steps.next, struct vmm_worker, link);

		vmm_list_remove(&worker->link);
		vmm_worker_destroy(worker);
	}
}
