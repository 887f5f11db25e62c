/* SPDX-License-Identifier: MIT */
/* A request of a client: reads it, executes it for the client's process, sends the answer. */
#include "serve/serve_private.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Buffers that grew beyond this for one call are freed after it. */
#define RETAIN_BYTES (1u << 20)

/*
 * Returns which values the object takes. Looked up once for each request, so that the argument, the
 * call and the answer agree whatever other channels of the client do meanwhile.
 */
static enum vmm_wire_values values_of(void *context, uint32_t handle)
{
	struct vmm_serve_union *union_values = context;

	if (!union_values->asked)
		union_values->values = vmm_sync_values_of(union_values->process, handle);
	union_values->asked = true;
	return (enum vmm_wire_values)union_values->values;
}

static void cut_off(struct vmm_channel *channel, const char *why)
{
	vmm_session_end(channel->session, why);
}

/* Stores the payload of the request in *bytes. Returns false if the client was cut off. */
static bool take_payload(struct vmm_channel *channel, struct vmm_packet *packet,
			 struct vmm_wire_bytes *bytes, vmm_status *status)
{
	uint32_t length = packet->u.head.bytes;

	*status = VMM_OK;
	if (length <= VMM_PROTOCOL_INLINE_MAX) {
		if (packet->bytes < VMM_PACKET_HEAD || packet->body.length != length) {
			cut_off(channel,
				"is cut off: the length of its request differs from its header");
			return false;
		}
		*bytes = packet->body;
		packet->body = (struct vmm_wire_bytes){0};
		return true;
	}
	if (packet->bytes != VMM_PACKET_HEAD || !packet->fd_count) {
		cut_off(channel, "is cut off: its request has no memfd with its payload");
		return false;
	}
	*status = vmm_message_from_memfd(packet->fds[0], length, bytes);
	if (*status == VMM_INVALID_PARAMETER) {
		cut_off(channel, "is cut off: its payload is not in a sealed memfd of that length");
		return false;
	}
	close(packet->fds[0]);
	packet->fds[0] = -1;
	return true;
}

/*
 * Stores the descriptors of the call in `call`; that of the payload is closed already. The packet
 * still owns them and closes them after the call.
 */
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
 * Returns whether the client has read its last answer, if that had descriptors; else cuts it off.
 * Descriptors in flight count against the host's user; beyond a limit, no client could be sent any.
 */
static bool has_read_answer(struct vmm_channel *channel)
{
	int unread = 0;

	if (vmm_likely(!channel->descriptors_out))
		return true;
	if (ioctl(channel->fd, SIOCOUTQ, &unread) || unread) {
		cut_off(channel,
			"is cut off: it sent a request before it had read the last answer");
		return false;
	}
	channel->descriptors_out = false;
	return true;
}

static bool send_answer(struct vmm_channel *channel, struct vmm_message_answer *answer,
			const struct vmm_wire_bytes *bytes, int *fds, uint32_t fd_count)
{
	bool in_memfd = bytes && bytes->length > VMM_PROTOCOL_INLINE_MAX;
	int error;

	answer->head = (struct vmm_message_head){
		.magic = VMM_PROTOCOL_MAGIC,
		.kind = VMM_MESSAGE_ANSWER,
		.bytes = bytes ? bytes->length : 0,
		.descriptors = fd_count,
	};
	error = vmm_message_send(channel->fd, answer, sizeof(*answer), in_memfd ? NULL : bytes, fds,
				 fd_count);
	if (error == EAGAIN)
		cut_off(channel, "is cut off: it does not read its answers");
	channel->descriptors_out = fd_count != 0;
	return !error;
}

/* Tells a client that asked for texts that there are some. */
static uint32_t texts_flag(const struct vmm_channel *channel)
{
	return atomic_load_explicit(&channel->session->texts.some, memory_order_relaxed)
		       ? VMM_ANSWER_TEXTS
		       : 0;
}

static bool send_refusal(struct vmm_channel *channel, const struct vmm_message_request *request,
			 vmm_status status)
{
	struct vmm_message_answer answer = {
		.status = status, .answered = texts_flag(channel), .tag = request->tag};

	return send_answer(channel, &answer, NULL, NULL, 0);
}

static void drop_answer_file(struct vmm_worker *worker)
{
	if (worker->answer_file >= 0)
		vmm_os_close_charged(worker->answer_file);
	worker->answer_file = -1;
}

/*
 * Sends the answer and closes its descriptors. fds[0] is that of the payload if it is in a memfd.
 */
static bool send_call_answer(struct vmm_worker *worker, struct vmm_channel *channel,
			     struct vmm_message_answer *answer)
{
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	const struct vmm_wire_call *call = &worker->call;
	uint32_t count = 0;
	bool sent = true;

	if (worker->answer.length > VMM_PROTOCOL_INLINE_MAX) {
		fds[count++] = worker->answer_file;
		sent = vmm_message_memfd_write(worker->answer_file, &worker->answer);
		worker->answer_file = -1;
	}
	drop_answer_file(worker); /* it has become short */
	for (uint32_t i = 0; i < call->descriptor_count; i++)
		fds[count++] = (int)call->descriptors[i];
	if (sent)
		sent = send_answer(channel, answer, &worker->answer, fds, count);
	else
		cut_off(channel, "is cut off: the host has no memory for its answer");
	for (uint32_t i = 0; i < count; i++)
		vmm_os_close_charged(fds[i]);
	return sent;
}

/* ---- the call ---- */

/* State of a request between its bytes and its call. */
struct request {
	struct vmm_message_request head;
	const struct vmm_wire_operation *operation;
	vmm_serve_fn *function;
	vmm_status status; /* not VMM_OK: the request is refused with it */
};

/* How many times a limit has refused the client something. */
static uint32_t refusals(const struct vmm_session *session)
{
	struct vmm_process *process = vidmm_core_process(session->process);

	return atomic_load(&process->handles.refused) + atomic_load(&process->account->refused) +
	       (session->share ? vmm_os_share_refused(session->share) : 0);
}

/*
 * Reports a call that failed because of a limit. To the call itself a limit is lack of memory, so
 * STATUS_NO_MEMORY becomes STATUS_INSUFFICIENT_RESOURCES.
 */
VMM_COLD static int32_t explain_limit(struct vmm_session *session, const struct request *request,
				      int32_t status)
{
	if (status >= 0)
		return status;
	const struct vidmm_client_limits *limits = &session->server->options.limits;
	uint32_t descriptors = session->share ? vmm_os_share_used(session->share) : 0;

	vmm_reason(session->server->host->world.observe, VMM_INSUFFICIENT_RESOURCES,
		   session->process_id, 0,
		   "%s: the client has reached its limit (%u handles, %llu bytes, %u "
		   "descriptors set aside for it and %u in use)",
		   request->operation->name, limits->handles,
		   (unsigned long long)limits->memory_bytes, limits->descriptors, descriptors);
	vmm_serve_log(session->server,
		      "client %u is refused %s: it has reached its limit (it has %u descriptors "
		      "of the host)",
		      session->process_id, request->operation->name, descriptors);
	return status == VMM_NO_MEMORY ? VMM_INSUFFICIENT_RESOURCES : status;
}

static int32_t execute(struct vmm_session *session, const struct vmm_worker *worker,
		       const struct request *request)
{
	struct vmm_process *process = vidmm_core_process(session->process);
	struct vmm_os *os = vmm_serve_os(session->server);
	/*
	 * A stepping thread belongs to the world and may be a coroutine, so the process that it
	 * works for is stored in a word of that coroutine.
	 */
	bool stepped = session->server->hooks.stepped;
	struct vmm_process *before = stepped ? vmm_kmt_step(os, process) : vmm_kmt_serve(process);
	void *device = vmm_serve_device(session, request->head.device);
	uint32_t refused = refusals(session);

	vmm_sync_set_union_values(os, worker->union_values.values);
	vmm_texts_execute(stepped ? NULL : session);
	int32_t status = request->function(session, device, vmm_wire_argument(&worker->call));

	(void)(stepped ? vmm_kmt_step(os, before) : vmm_kmt_serve(before));
	if (vmm_unlikely(refusals(session) != refused))
		status = explain_limit(session, request, status);
	vmm_texts_execute(NULL);
	return status;
}

/* Returns whether a call may begin: not once the session has ended. */
static bool may_begin(const struct vmm_channel *channel)
{
	return !atomic_load(&channel->session->ended) &&
	       !(channel->first && atomic_load(&channel->session->hung_up));
}

/*
 * Makes the call while another worker waits for events. Returns why the call could not begin, or
 * VMM_OK.
 */
static vmm_status call(struct vmm_worker *worker, struct vmm_channel *channel,
		       const struct request *request, int32_t *result)
{
	bool was_blocking = worker->blocking;

	if (!may_begin(channel))
		return VMM_DEVICE_REMOVED;
	if (!was_blocking && !vmm_worker_begin_blocking(worker)) {
		vmm_serve_log(channel->server,
			      "client %u is refused a call: the host cannot start a thread (Q-488)",
			      channel->session->process_id);
		return VMM_INSUFFICIENT_RESOURCES;
	}
	*result = execute(channel->session, worker, request);
	if (!was_blocking)
		vmm_worker_end_blocking(worker);
	return VMM_OK;
}

/*
 * Takes what the answer needs before the call, so that a refusal costs the call only, and not the
 * client.
 */
static bool reserve_answer(struct vmm_worker *worker)
{
	uint64_t bytes;

	worker->answer_file = -1;
	if (!vmm_ok(vmm_wire_reserve_answer(&worker->call, &worker->answer, &bytes)))
		return false;
	if (bytes > VMM_PROTOCOL_INLINE_MAX)
		worker->answer_file = vmm_os_charged(vmm_message_memfd_open());
	return bytes <= VMM_PROTOCOL_INLINE_MAX || worker->answer_file >= 0;
}

static bool call_and_answer(struct vmm_worker *worker, struct vmm_channel *channel,
			    const struct request *request)
{
	struct vmm_session *session = channel->session;
	struct vmm_message_answer answer = {.answered = VMM_ANSWER_MADE, .tag = request->head.tag};
	vmm_status status;

	if (!reserve_answer(worker))
		return send_refusal(channel, &request->head, VMM_NO_MEMORY);
	atomic_store(&channel->inside, 1);
	status = call(worker, channel, request, &answer.status);
	atomic_store(&channel->inside, 0);
	if (!vmm_ok(status)) {
		drop_answer_file(worker);
		return send_refusal(channel, &request->head, status);
	}
	status = vmm_wire_make_answer(&worker->call, &worker->answer);
	if (!vmm_ok(status)) {
		drop_answer_file(worker);
		for (uint32_t i = 0; i < worker->call.descriptor_count; i++)
			close((int)worker->call.descriptors[i]);
		cut_off(channel, "is cut off: the host has no memory for its answer");
		return false;
	}
	answer.answered |= texts_flag(channel);
	answer.views = channel->views = vmm_views_number(&session->views);
	return send_call_answer(worker, channel, &answer);
}

/* Returns the buffers to the worker for the next request. */
static void recycle_buffers(struct vmm_worker *worker)
{
	struct vmm_wire_bytes *request = &worker->call.request;

	if (!worker->packet.body.data && request->capacity == VMM_PACKET_CAPACITY) {
		worker->packet.body = *request;
		*request = (struct vmm_wire_bytes){0};
	}
	if (request->capacity > VMM_PACKET_CAPACITY) {
		vmm_free(request->data);
		*request = (struct vmm_wire_bytes){0};
	}
	if (worker->answer.capacity > RETAIN_BYTES) {
		vmm_free(worker->answer.data);
		worker->answer = (struct vmm_wire_bytes){0};
	}
	worker->call.context = NULL;
}

static void find_function(struct request *request, bool *foreign)
{
	request->operation = vmm_wire_operation(request->head.operation);
	request->function =
		request->operation ? vmm_serve_function(request->operation, foreign) : NULL;
	if (!request->function)
		request->status = VMM_NOT_SUPPORTED;
}

/* Refuses an operation that would use an address of the client or call a function there. */
static void refuse_foreign(const struct vmm_session *session, struct request *request)
{
	request->status = VMM_NOT_SUPPORTED;
	vmm_reason(session->server->host->world.observe, VMM_NOT_SUPPORTED, session->process_id, 0,
		   "%s: an address of an out-of-process client cannot be used here",
		   request->operation->name);
}

static void count_request(struct vmm_channel *channel)
{
	uint64_t before = atomic_load_explicit(&channel->requests, memory_order_relaxed);

	atomic_store_explicit(&channel->requests, before + 1, memory_order_relaxed);
	/* a client that sends a request has executed what its last answer named */
	vmm_views_executed(&channel->session->views, channel->views);
}

bool vmm_serve_refuse_request(struct vmm_channel *channel, const struct vmm_packet *packet)
{
	vmm_serve_log(channel->server,
		      "client %u is refused a call: the host has no descriptors left (Q-487)",
		      channel->session->process_id);
	vmm_shares_name_largest(channel->server);
	count_request(channel);
	return has_read_answer(channel) &&
	       send_refusal(channel, &packet->u.request, VMM_INSUFFICIENT_RESOURCES);
}

/*
 * Charges the descriptors that came with a request, until they are closed. The client pays for all
 * that is opened while its request is served.
 */
static vmm_status charge(struct vmm_worker *worker, const struct vmm_channel *channel)
{
	uint32_t count = worker->packet.fd_count;

	if (vmm_likely(!count))
		return VMM_OK;
	if (!vmm_share_take(channel->session, count, "a call with descriptors"))
		return VMM_INSUFFICIENT_RESOURCES;
	worker->charged = count;
	return VMM_OK;
}

bool vmm_serve_request(struct vmm_worker *worker, struct vmm_channel *channel)
{
	struct vmm_packet *packet = &worker->packet;
	struct vmm_wire_call *call = &worker->call;
	struct request request = {.head = packet->u.request};
	struct vmm_wire_bytes bytes = {0};
	bool foreign = false;

	count_request(channel);
	if (!has_read_answer(channel))
		return false;
	vmm_status charged = charge(worker, channel);
	if (!take_payload(channel, packet, &bytes, &request.status))
		return false;
	if (!vmm_ok(charged))
		request.status = charged;
	if (vmm_ok(request.status))
		find_function(&request, &foreign);
	call->values = values_of;
	worker->union_values =
		(struct vmm_serve_union){.process = vidmm_core_process(channel->session->process)};
	call->context = &worker->union_values;
	if (vmm_ok(request.status) && !name_descriptors(call, packet))
		request.status = VMM_INVALID_PARAMETER;
	if (vmm_ok(request.status))
		request.status = vmm_wire_read_request(call, request.operation, &bytes);
	else
		call->request = bytes;
	if (vmm_ok(request.status) && call->foreign && !foreign)
		refuse_foreign(channel->session, &request);
	struct vmm_os_share *before = vmm_os_share_pay(channel->session->share);
	bool open = vmm_ok(request.status) ? call_and_answer(worker, channel, &request)
					   : send_refusal(channel, &request.head, request.status);
	(void)vmm_os_share_pay(before);
	recycle_buffers(worker);
	return open;
}
