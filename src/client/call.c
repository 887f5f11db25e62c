/* SPDX-License-Identifier: MIT */
/*
 * One call: serializes its argument into a request, sends it, and stores the answer in the
 * argument.
 */
#include "client/client_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Request buffers that grew beyond this for one call are freed after it. */
#define RETAIN_BYTES (1u << 20)

/* ---- the request ---- */

/*
 * Fills fds[] with the descriptors of the call. With `check`, a descriptor that is not open is sent
 * as absent, with `null_fd` as a placeholder so that the order is kept.
 */
static uint32_t name_descriptors(const struct vidmm_connection *connection,
				 struct vmm_wire_call *call, int *fds, bool check)
{
	for (uint32_t i = 0; i < call->descriptor_count; i++) {
		fds[i] = (int)call->descriptors[i];
		if (!check || fcntl(fds[i], F_GETFD) >= 0)
			continue;
		vmm_wire_mark_closed(call, i);
		fds[i] = connection->null_fd;
	}
	return call->descriptor_count;
}

static vmm_status send_request(struct vidmm_connection *connection,
			       const struct vmm_channel_to_host *channel,
			       struct vmm_wire_call *call, uint32_t device, uint64_t tag)
{
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX], memfd = -1;
	const struct vmm_wire_bytes *body = &call->request;
	struct vmm_message_request request = {
		.head = {.magic = VMM_PROTOCOL_MAGIC,
			 .kind = VMM_MESSAGE_REQUEST,
			 .bytes = body->length},
		.operation = call->operation->number,
		.device = device,
		.tag = tag,
	};
	vmm_status status = VMM_INVALID_HANDLE;

	if (body->length > VMM_PROTOCOL_INLINE_MAX) {
		memfd = vmm_message_memfd(body);
		if (memfd < 0)
			return VMM_NO_MEMORY;
		fds[0] = memfd;
		body = NULL;
	}
	for (int check = 0; check < 2 && status == VMM_INVALID_HANDLE; check++) {
		uint32_t count = memfd >= 0;

		count += name_descriptors(connection, call, fds + count, check);
		request.head.descriptors = count;
		status = vmm_client_send(connection, channel->fd, &request, sizeof(request), body,
					 fds, count);
	}
	if (memfd >= 0)
		close(memfd);
	return status;
}

/* ---- the answer ---- */

/* Ends the connection because the host broke the protocol. */
static vmm_status break_connection(struct vidmm_connection *connection, struct vmm_packet *packet)
{
	vmm_packet_close_fds(packet);
	vmm_client_lose(connection);
	return VMM_DEVICE_REMOVED;
}

/* Takes over the descriptors that the answer names; they belong to the program from here on. */
static void take_descriptors(struct vmm_wire_call *call, struct vmm_packet *packet, uint32_t from)
{
	call->descriptor_count = 0;
	for (uint32_t i = from; i < packet->fd_count; i++)
		call->descriptors[call->descriptor_count++] = packet->fds[i];
}

static vmm_status accept_answer(struct vidmm_connection *connection, struct vmm_packet *packet,
				struct vmm_wire_call *call, void *argument, uint32_t length)
{
	const uint32_t skipped = sizeof(struct vmm_message_answer) - VMM_PACKET_HEAD;
	struct vmm_wire_bytes from_memfd = {0};
	const uint8_t *data = packet->body.data + skipped;
	uint32_t first = 0;

	if (length > VMM_PROTOCOL_INLINE_MAX) {
		vmm_status status = packet->fd_count ? vmm_message_from_memfd(packet->fds[0],
									      length, &from_memfd)
						     : VMM_INVALID_PARAMETER;

		if (status == VMM_NO_MEMORY) {
			vmm_packet_close_fds(packet);
			return status;
		}
		if (!vmm_ok(status))
			return break_connection(connection, packet);
		data = from_memfd.data;
		first = 1;
	} else if (packet->body.length - skipped != length) {
		return break_connection(connection, packet);
	}
	if (packet->fd_count - first > VMM_WIRE_DESCRIPTORS_MAX)
		return break_connection(connection, packet);
	take_descriptors(call, packet, first);
	vmm_status status = vmm_wire_read_answer(call, data, length, argument);
	vmm_free(from_memfd.data);
	if (!vmm_ok(status))
		return break_connection(connection, packet);
	if (first)
		close(packet->fds[0]);
	packet->fd_count = 0;
	return VMM_OK;
}

/* Returns VMM_OK if the call was made; *result is then what it returned. */
static vmm_status take_answer(struct vidmm_connection *connection,
			      struct vmm_channel_to_host *channel, struct vmm_wire_call *call,
			      void *argument, uint64_t tag, int32_t *result)
{
	struct vmm_packet *packet = &channel->packet;
	struct vmm_message_answer answer;

	if (packet->u.head.kind != VMM_MESSAGE_ANSWER || packet->bytes < sizeof(answer))
		return break_connection(connection, packet);
	memcpy(&answer, &packet->u, VMM_PACKET_HEAD);
	memcpy((char *)&answer + VMM_PACKET_HEAD, packet->body.data,
	       sizeof(answer) - VMM_PACKET_HEAD);
	if (answer.tag != tag)
		return break_connection(connection, packet);
	vmm_status status = vmm_client_catch_up(connection, answer.views);
	if (!vmm_ok(status)) {
		vmm_packet_close_fds(packet);
		return status;
	}
	channel->texts |= (answer.answered & VMM_ANSWER_TEXTS) != 0;
	if (!(answer.answered & VMM_ANSWER_MADE)) {
		vmm_packet_close_fds(packet);
		return vmm_ok(answer.status) ? VMM_UNSUCCESSFUL : answer.status;
	}
	*result = answer.status;
	return accept_answer(connection, packet, call, argument, answer.head.bytes);
}

/* Sends the request in `call` and waits for its answer. */
static vmm_status transact(struct vidmm_connection *connection, struct vmm_channel_to_host *channel,
			   struct vmm_wire_call *call, uint32_t device, void *argument,
			   int32_t *result)
{
	uint64_t tag = (uint64_t)(uintptr_t)argument ^ call->operation->number;
	vmm_status status = send_request(connection, channel, call, device, tag);

	if (vmm_ok(status))
		status = vmm_client_receive(connection, channel);
	if (vmm_ok(status))
		status = take_answer(connection, channel, call, argument, tag, result);
	return status;
}

/* ---- findings and reasons ---- */

/* Each line is one call of stdio, because lines come from several threads. */
static void print_lines(char *lines, const struct vmm_wire_texts *texts)
{
	char *rest = lines, *line;

	lines[texts->bytes] = 0;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line)
			fprintf(stderr, "vidmm: %s\n", line);
	if (texts->lost)
		fprintf(stderr, "vidmm: %u more findings and reasons were dropped\n", texts->lost);
}

/* VIDMM_DEBUG=1: prints what the host has for this client since the last call. */
VMM_COLD static void print_texts(struct vidmm_connection *connection,
				 struct vmm_channel_to_host *channel)
{
	char *lines = vmm_calloc(1, VMM_WIRE_TEXTS_BYTES + 1);
	struct vmm_wire_texts args = {.lines = (uint8_t *)lines, .bytes = VMM_WIRE_TEXTS_BYTES};
	struct vmm_wire_call call = {0};
	int32_t result;

	channel->texts = false;
	if (lines &&
	    vmm_ok(vmm_wire_make_request(&call, vmm_wire_operation(VMM_WIRE_texts), &args)) &&
	    vmm_ok(transact(connection, channel, &call, 0, &args, &result)) && vmm_ok(result) &&
	    args.bytes <= VMM_WIRE_TEXTS_BYTES)
		print_lines(lines, &args);
	vmm_wire_finish(&call);
	vmm_free(lines);
}

/* ---- value type of a synchronization object ---- */

struct asking {
	struct vidmm_connection *connection;
	struct vmm_channel_to_host *channel;
};

/*
 * Returns which values the object takes; asks the host the first time. Once the handle is
 * destroyed, its next use may have another type. The host then refuses the request, and
 * vmm_client_call asks again.
 */
static enum vmm_wire_values values_of(void *context, uint32_t handle)
{
	const struct asking *asking = context;
	_Atomic uint64_t *known =
		&asking->connection->values[(handle >> 6 ^ handle) % VMM_CLIENT_VALUES];
	uint64_t value = atomic_load_explicit(known, memory_order_relaxed);
	struct vmm_wire_sync_values args = {.handle = handle};
	struct vmm_wire_call call = {0};
	int32_t result;

	asking->channel->used_values = true;
	if (value >> 32 == handle && value)
		return (enum vmm_wire_values)((uint32_t)value - 1);
	if (vmm_ok(vmm_wire_make_request(&call, vmm_wire_operation(VMM_WIRE_sync_values), &args)) &&
	    vmm_ok(transact(asking->connection, asking->channel, &call, 0, &args, &result)) &&
	    args.values)
		atomic_store_explicit(known, (uint64_t)handle << 32 | (args.values + 1),
				      memory_order_relaxed);
	vmm_wire_finish(&call);
	return (enum vmm_wire_values)args.values;
}

static void forget_values(struct vidmm_connection *connection)
{
	for (uint32_t i = 0; i < VMM_CLIENT_VALUES; i++)
		atomic_store_explicit(&connection->values[i], 0, memory_order_relaxed);
}

/* ---- calls ---- */

static vmm_status attempt(struct vidmm_connection *connection, struct vmm_channel_to_host *channel,
			  uint32_t number, uint32_t device, void *argument, int32_t *result)
{
	struct asking asking = {connection, channel};
	struct vmm_wire_call *call = &channel->call;

	call->values = values_of;
	call->context = &asking;
	channel->used_values = false;
	vmm_status status = vmm_wire_make_request(call, vmm_wire_operation(number), argument);
	if (vmm_ok(status))
		status = transact(connection, channel, call, device, argument, result);
	call->context = NULL;
	return status;
}

static void trim_buffers(struct vmm_channel_to_host *channel)
{
	if (channel->call.request.capacity > RETAIN_BYTES)
		vmm_wire_finish(&channel->call);
}

/*
 * While the program disconnects, VMM_DEVICE_REMOVED becomes VMM_INVALID_PARAMETER: the host is not
 * gone, but the handles are dead like those of a closed process.
 */
static vmm_status status_if_ending(const struct vidmm_connection *connection, vmm_status status)
{
	return status == VMM_DEVICE_REMOVED && atomic_load(&connection->ending)
		       ? VMM_INVALID_PARAMETER
		       : status;
}

vmm_status vmm_client_call(struct vidmm_connection *connection, uint32_t operation, uint32_t device,
			   void *argument, int32_t *result)
{
	struct vmm_channel_to_host *channel;
	int cancel;
	vmm_status status = vmm_client_take_channel(connection, &channel);

	if (!vmm_ok(status))
		return status_if_ending(connection, status);
	/* A thread that was canceled inside the call would never put the channel back. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	status = attempt(connection, channel, operation, device, argument, result);
	if (status == VMM_INVALID_PARAMETER && channel->used_values) {
		forget_values(connection);
		status = attempt(connection, channel, operation, device, argument, result);
	}
	if (vmm_unlikely(channel->texts))
		print_texts(connection, channel);
	vmm_client_forget_ended(connection, operation, argument);
	trim_buffers(channel);
	vmm_client_put_channel(connection, channel);
	pthread_setcancelstate(cancel, &cancel);
	return status_if_ending(connection, status);
}
