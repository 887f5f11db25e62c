/* SPDX-License-Identifier: MIT */
/* A request of a client: taken in, executed for its process, answered. */
#include "serve/serve_private.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A buffer that grew beyond this for one call is not kept. */
#define KEEP_BYTES (1u << 20)

/* Asked once: the argument, the call and the answer go by the same, whatever the client's other channels do meanwhile. */
static enum vmm_wire_values values_of(void *context, uint32_t handle)
{
	struct vmm_serve_union *taken = context;

	if (!taken->asked)
		taken->values = vmm_sync_values_of(taken->process, handle);
	taken->asked = true;
	return (enum vmm_wire_values)taken->values;
}

static void cut_off(struct vmm_channel *channel, const char *why)
{
	vmm_session_end(channel->session, why);
}

/* What the bytes of the request are; false: the client is cut off. */
static bool take_payload(struct vmm_channel *channel, struct vmm_packet *packet,
			 struct vmm_wire_bytes *bytes, vmm_status *status)
{
	uint32_t length = packet->u.head.bytes;

	*status = VMM_OK;
	if (length <= VMM_PROTOCOL_INLINE_MAX) {
		if (packet->bytes < VMM_PACKET_HEAD || packet->body.length != length) {
			cut_off(channel, "is cut off: its request is not as long as it says");
			return false;
		}
		*bytes = packet->body;
		packet->body = (struct vmm_wire_bytes){0};
		return true;
	}
	if (packet->bytes != VMM_PACKET_HEAD || !packet->fd_count) {
		cut_off(channel, "is cut off: its request comes without its bytes");
		return false;
	}
	*status = vmm_message_from_memfd(packet->fds[0], length, bytes);
	if (*status == VMM_INVALID_PARAMETER) {
		cut_off(channel, "is cut off: its request's bytes are in no sealed memfd");
		return false;
	}
	close(packet->fds[0]);
	packet->fds[0] = -1;
	return true;
}

/* Those of the call: the payload's has gone. They stay the packet's, which closes them after the call. */
static bool name_descriptors(struct vmm_wire_call *call, const struct vmm_packet *packet)
{
	call->descriptor_count = 0;
	for (uint32_t i = 0; i < packet->fd_count; i++) {
		if (packet->fds[i] < 0)
			continue;
		if (call->descriptor_count == VMM_WIRE_DESCRIPTORS_MAX)
			return false;
		call->descriptors[call->descriptor_count++] = packet->fds[i];
	}
	return true;
}

/* ---- the answer ---- */

/*
 * Descriptors on their way count against the host's user, and when they are too many nobody is sent any. An answer that has some is read
 * before the next request is answered.
 */
static bool has_read(struct vmm_channel *channel)
{
	int unread = 0;

	if (vmm_likely(!channel->descriptors_out))
		return true;
	if (ioctl(channel->fd, SIOCOUTQ, &unread) || unread) {
		cut_off(channel, "is cut off: it asks again before it has read its answer");
		return false;
	}
	channel->descriptors_out = false;
	return true;
}

static bool send_answer(struct vmm_channel *channel, struct vmm_message_answer *answer,
			const struct vmm_wire_bytes *bytes, int *fds, uint32_t fd_count)
{
	bool apart = bytes && bytes->length > VMM_PROTOCOL_INLINE_MAX;
	int error;

	answer->head = (struct vmm_message_head){
		.magic = VMM_PROTOCOL_MAGIC,
		.kind = VMM_MESSAGE_ANSWER,
		.bytes = bytes ? bytes->length : 0,
		.descriptors = fd_count,
	};
	error = vmm_message_send(channel->fd, answer, sizeof(*answer), apart ? NULL : bytes, fds,
				 fd_count);
	if (error == EAGAIN)
		cut_off(channel, "is cut off: it does not read its answers");
	channel->descriptors_out = fd_count != 0;
	return !error;
}

static bool refuse(struct vmm_channel *channel, const struct vmm_message_request *request,
		   vmm_status status)
{
	struct vmm_message_answer answer = {.status = status, .tag = request->tag};

	return send_answer(channel, &answer, NULL, NULL, 0);
}

/* The host's descriptors of an answer: [0] may be that of its bytes. */
static bool answer_with(struct vmm_worker *worker, struct vmm_channel *channel,
			struct vmm_message_answer *answer)
{
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	const struct vmm_wire_call *call = &worker->call;
	uint32_t count = 0;
	bool sent = true;

	if (worker->answer.length > VMM_PROTOCOL_INLINE_MAX) {
		fds[count] = vmm_message_memfd(&worker->answer);
		if (fds[count++] < 0) {
			count = 0;
			sent = false;
		}
	}
	for (uint32_t i = 0; i < call->descriptor_count; i++)
		fds[count++] = (int)call->descriptors[i];
	if (sent)
		sent = send_answer(channel, answer, &worker->answer, fds, count);
	else
		cut_off(channel, "is cut off: there is no memory for its answer");
	for (uint32_t i = 0; i < count; i++)
		close(fds[i]);
	return sent;
}

/* ---- the call ---- */

/* What a request has come to, on its way from bytes to a call. */
struct request {
	struct vmm_message_request head;
	const struct vmm_wire_operation *operation;
	vmm_serve_fn *function;
	vmm_status status; /* a refusal */
};

/* How often something was refused because of a limit of the client's. */
static uint32_t refusals(struct vmm_process *process)
{
	return atomic_load(&process->handles.refused) + atomic_load(&process->account->refused);
}

/* To the call a limit is memory that there is none of. */
VMM_COLD static int32_t explain_limit(struct vmm_session *session, const struct request *request,
				      int32_t status)
{
	if (status >= 0)
		return status;
	vmm_reason(session->server->host->world.observe, VMM_INSUFFICIENT_RESOURCES,
		   session->process_id, 0,
		   "%s: the client has as much as it may (limits: %u "
		   "handles, %llu bytes)",
		   request->operation->name, session->server->options.limits.handles,
		   (unsigned long long)session->server->options.limits.memory_bytes);
	vmm_serve_log(session->server, "client %u is refused %s: it has as much as it may",
		      session->process_id, request->operation->name);
	return status == VMM_NO_MEMORY ? VMM_INSUFFICIENT_RESOURCES : status;
}

static int32_t execute(struct vmm_session *session, const struct vmm_worker *worker,
		       const struct request *request)
{
	struct vmm_process *process = vidmm_core_process(session->process);
	struct vmm_os *os = vmm_serve_os(session->server);
	/* Who steps is a thread of the world, maybe a coroutine: its own word says for whom it works. */
	bool stepped = session->server->hooks.stepped;
	struct vmm_process *before = stepped ? vmm_kmt_step(os, process) : vmm_kmt_serve(process);
	void *device = vmm_serve_device(session, request->head.device);
	uint32_t refused = refusals(process);

	vmm_sync_union_taken(os, worker->taken.values);
	int32_t status = request->function(session, device, vmm_wire_argument(&worker->call));

	(void)(stepped ? vmm_kmt_step(os, before) : vmm_kmt_serve(before));
	if (vmm_unlikely(refusals(process) != refused))
		status = explain_limit(session, request, status);
	return status;
}

/* May it begin? Nothing that has ended begins anything. */
static bool may_begin(const struct vmm_channel *channel)
{
	return !atomic_load(&channel->session->ended) &&
	       !(channel->first && atomic_load(&channel->session->hung_up));
}

/* Does the call, with the channel inside, and another worker waiting. */
static vmm_status call(struct vmm_worker *worker, struct vmm_channel *channel,
		       const struct request *request, int32_t *result)
{
	bool left_before = worker->left;

	if (!may_begin(channel))
		return VMM_DEVICE_REMOVED;
	if (!left_before && !vmm_worker_leave(worker)) {
		vmm_serve_log(channel->server, "client %u is refused a call: no thread can be made",
			      channel->session->process_id);
		return VMM_INSUFFICIENT_RESOURCES;
	}
	*result = execute(channel->session, worker, request);
	if (!left_before)
		vmm_worker_return(worker);
	return VMM_OK;
}

static bool call_and_answer(struct vmm_worker *worker, struct vmm_channel *channel,
			    const struct request *request)
{
	struct vmm_session *session = channel->session;
	struct vmm_message_answer answer = {.answered = 1, .tag = request->head.tag};
	vmm_status status;

	atomic_store(&channel->inside, 1);
	status = call(worker, channel, request, &answer.status);
	atomic_store(&channel->inside, 0);
	if (!vmm_ok(status))
		return refuse(channel, &request->head, status);
	status = vmm_wire_answer(&worker->call, &worker->answer);
	if (!vmm_ok(status)) {
		for (uint32_t i = 0; i < worker->call.descriptor_count; i++)
			close((int)worker->call.descriptors[i]);
		cut_off(channel, "is cut off: there is no memory for its answer");
		return false;
	}
	answer.views = channel->views = vmm_views_number(&session->views);
	return answer_with(worker, channel, &answer);
}

/* The buffers are the next request's. */
static void keep_buffers(struct vmm_worker *worker)
{
	struct vmm_wire_bytes *request = &worker->call.request;

	if (!worker->packet.body.data && request->capacity == VMM_PACKET_ROOM) {
		worker->packet.body = *request;
		*request = (struct vmm_wire_bytes){0};
	}
	if (request->capacity > VMM_PACKET_ROOM) {
		vmm_free(request->data);
		*request = (struct vmm_wire_bytes){0};
	}
	if (worker->answer.capacity > KEEP_BYTES) {
		vmm_free(worker->answer.data);
		worker->answer = (struct vmm_wire_bytes){0};
	}
	worker->call.context = NULL;
}

static void take_operation(struct request *request, bool *foreign)
{
	request->operation = vmm_wire_operation(request->head.operation);
	request->function =
		request->operation ? vmm_serve_function(request->operation, foreign) : NULL;
	if (!request->function)
		request->status = VMM_NOT_SUPPORTED;
}

/* Nobody here can use an address of the client's, or call a function there. */
static void refuse_foreign(const struct vmm_session *session, struct request *request)
{
	request->status = VMM_NOT_SUPPORTED;
	vmm_reason(session->server->host->world.observe, VMM_NOT_SUPPORTED, session->process_id, 0,
		   "%s: memory of a client in another process cannot be used by its address",
		   request->operation->name);
}

static void count(struct vmm_channel *channel)
{
	uint64_t before = atomic_load_explicit(&channel->requests, memory_order_relaxed);

	atomic_store_explicit(&channel->requests, before + 1, memory_order_relaxed);
	/* Who asks again has executed what its last answer named. */
	vmm_views_executed(&channel->session->views, channel->views);
}

bool vmm_serve_request(struct vmm_worker *worker, struct vmm_channel *channel)
{
	struct vmm_packet *packet = &worker->packet;
	struct vmm_wire_call *call = &worker->call;
	struct request request = {.head = packet->u.request};
	struct vmm_wire_bytes bytes = {0};
	bool foreign = false;

	count(channel);
	if (!has_read(channel) || !take_payload(channel, packet, &bytes, &request.status))
		return false;
	if (vmm_ok(request.status))
		take_operation(&request, &foreign);
	call->values = values_of;
	worker->taken =
		(struct vmm_serve_union){.process = vidmm_core_process(channel->session->process)};
	call->context = &worker->taken;
	if (vmm_ok(request.status) && !name_descriptors(call, packet))
		request.status = VMM_INVALID_PARAMETER;
	if (vmm_ok(request.status))
		request.status = vmm_wire_receive(call, request.operation, &bytes);
	else
		call->request = bytes;
	if (vmm_ok(request.status) && call->foreign && !foreign)
		refuse_foreign(channel->session, &request);
	bool open = vmm_ok(request.status) ? call_and_answer(worker, channel, &request)
					   : refuse(channel, &request.head, request.status);
	keep_buffers(worker);
	return open;
}
