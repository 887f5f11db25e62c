/* SPDX-License-Identifier: MIT */
/* A server without threads, for worlds with one thread: its clients step it. */
#include "serve/serve_private.h"

static struct vmm_worker *take(struct vidmm_server *server)
{
	struct vmm_worker *worker = NULL;

	vmm_os_mutex_lock(&server->lock);
	if (!vmm_list_empty(&server->spare_steps)) {
		worker = vmm_container_of(server->spare_steps.next, struct vmm_worker, link);
		vmm_list_remove(&worker->link);
	}
	vmm_os_mutex_unlock(&server->lock);
	if (worker)
		return worker;
	worker = vmm_calloc(1, sizeof(*worker));
	if (!worker)
		return NULL;
	worker->server = server;
	if (vmm_packet_room(&worker->packet))
		return worker;
	vmm_worker_destroy(worker);
	return NULL;
}

/* A request may block, and others step meanwhile: each with a worker of his own. */
void vmm_server_step(struct vidmm_server *server)
{
	struct vmm_worker *worker = take(server);
	struct epoll_event event;

	while (worker && epoll_wait(server->epoll, &event, 1, 0) > 0)
		vmm_worker_handle(worker, event.data.u64);
	if (!worker)
		return;
	vmm_os_mutex_lock(&server->lock);
	vmm_list_push_back(&server->spare_steps, &worker->link);
	vmm_os_mutex_unlock(&server->lock);
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
