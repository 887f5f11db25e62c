/* SPDX-License-Identifier: MIT */
/*
 * Findings and reasons for clients that ask for them (VIDMM_DEBUG in the client's environment): as
 * lines in a buffer of the session, which the client takes after a call. A client gets the events
 * of its process, and those without a process that its calls cause; none of other clients.
 */
#include "serve/serve_private.h"

#include <string.h>

#define LINE_BYTES 1024u

/* The class of vidmm_server.texts_lock. */
VMM_STATIC_LOCK_CLASS(texts_class);

/* The session for which this thread executes a request. */
static _Thread_local const struct vmm_session *executing;

/* clang does not analyze the bodies: a lock class has no state, the mutex has. */
static void lock(struct vidmm_server *server)
	VMM_ACQUIRES(texts_class) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	pthread_mutex_lock(&server->texts_lock);
}

static void unlock(struct vidmm_server *server)
	VMM_RELEASES(texts_class) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	pthread_mutex_unlock(&server->texts_lock);
}

static bool concerns(const struct vmm_session *session, const struct vidmm_event *event)
{
	return event->process ? event->process == session->process_id : session == executing;
}

static void append(struct vmm_texts *texts, const char *line, uint32_t bytes)
{
	if (texts->bytes + bytes + 1 > VMM_WIRE_TEXTS_BYTES) {
		texts->lost++;
		return;
	}
	memcpy(texts->lines + texts->bytes, line, bytes);
	texts->bytes += bytes + 1;
	texts->lines[texts->bytes - 1] = '\n';
	atomic_store(&texts->some, true);
}

/* An event function: any lock of the core may be held. */
static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct vidmm_server *server = context;
	char line[LINE_BYTES];
	struct vmm_list *pos;
	int length = vidmm_event_format(event, text, line, sizeof(line));
	uint32_t bytes = length < 0 ? 0 : vmm_min_u32((uint32_t)length, sizeof(line) - 1);

	lock(server);
	vmm_list_for_each (pos, &server->texts) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, texts.link);

		if (concerns(session, event))
			append(&session->texts, line, bytes);
	}
	unlock(server);
}

bool vmm_texts_begin(struct vmm_session *session)
{
	const uint64_t types = (uint64_t)1 << VIDMM_EVENT_FINDING |
			       (uint64_t)1 << VIDMM_EVENT_REASON | (uint64_t)1 << VIDMM_EVENT_FATAL;
	struct vidmm_server *server = session->server;

	session->texts.lines = vmm_calloc(1, VMM_WIRE_TEXTS_BYTES);
	if (!session->texts.lines)
		return false;
	lock(server);
	vmm_list_push_back(&server->texts, &session->texts.link);
	unlock(server);
	if (!atomic_exchange(&server->texts_wanted, true))
		atomic_store(&server->texts_subscription,
			     vidmm_subscribe(server->host, types, on_event, server));
	return true;
}

void vmm_texts_end(struct vmm_session *session)
{
	if (!session->texts.lines)
		return;
	lock(session->server);
	vmm_list_remove(&session->texts.link);
	unlock(session->server);
	vmm_free(session->texts.lines);
	session->texts.lines = NULL;
}

void vmm_texts_execute(const struct vmm_session *session)
{
	executing = session;
}

void vmm_texts_finish(struct vidmm_server *server)
{
	if (atomic_load(&server->texts_subscription))
		vidmm_unsubscribe(server->host, atomic_load(&server->texts_subscription));
	pthread_mutex_destroy(&server->texts_lock);
}

int32_t vmm_serve_texts(struct vmm_session *session, struct vmm_wire_texts *args)
{
	struct vmm_texts *texts = &session->texts;

	if (!texts->lines)
		return VMM_NOT_SUPPORTED;
	if (!args->lines || args->bytes < VMM_WIRE_TEXTS_BYTES)
		return VMM_BUFFER_TOO_SMALL;
	lock(session->server);
	memcpy(args->lines, texts->lines, texts->bytes);
	args->bytes = texts->bytes;
	args->lost = texts->lost;
	texts->bytes = texts->lost = 0;
	atomic_store(&texts->some, false);
	unlock(session->server);
	return VMM_OK;
}
