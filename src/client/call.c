/* SPDX-License-Identifier: MIT */
/* A call: its argument as a request, the answer back into it. */
#include "client/client_private.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Buffers that grew beyond this for one call are not kept. */
#define KEEP_BYTES (1u << 20)

/* ---- the request ---- */

/* What is open by no number goes as none; one of nothing keeps its place. */
static uint32_t name_descriptors(const struct vidmm_connection *connection,
				 struct vmm_wire_call *call, int *fds, bool check)
{
	for (uint32_t i = 0; i < call->descriptor_count; i++) {
		fds[i] = (int)call->descriptors[i];
		if (!check || fcntl(fds[i], F_GETFD) >= 0)
			continue;
		vmm_wire_disown(call, i);
		fds[i] = connection->nothing;
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

/* The host speaks another language. */
static vmm_status give_up(struct vidmm_connection *connection, struct vmm_packet *packet)
{
	vmm_packet_close_fds(packet);
	vmm_client_lose(connection);
	return VMM_DEVICE_REMOVED;
}

/* Those that the answer names are the program's from here on. */
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
	struct vmm_wire_bytes apart = {0};
	const uint8_t *data = packet->body.data + skipped;
	uint32_t first = 0;

	if (length > VMM_PROTOCOL_INLINE_MAX) {
		vmm_status status = packet->fd_count
					    ? vmm_message_from_memfd(packet->fds[0], length, &apart)
					    : VMM_INVALID_PARAMETER;

		if (status == VMM_NO_MEMORY) {
			vmm_packet_close_fds(packet);
			return status;
		}
		if (!vmm_ok(status))
			return give_up(connection, packet);
		data = apart.data;
		first = 1;
	} else if (packet->body.length - skipped != length) {
		return give_up(connection, packet);
	}
	if (packet->fd_count - first > VMM_WIRE_DESCRIPTORS_MAX)
		return give_up(connection, packet);
	take_descriptors(call, packet, first);
	vmm_status status = vmm_wire_accept(call, data, length, argument);
	vmm_free(apart.data);
	if (!vmm_ok(status))
		return give_up(connection, packet);
	if (first)
		close(packet->fds[0]);
	packet->fd_count = 0;
	return VMM_OK;
}

/* VMM_OK: the call was made, and gave *result. */
static vmm_status take_answer(struct vidmm_connection *connection,
			      struct vmm_channel_to_host *channel, struct vmm_wire_call *call,
			      void *argument, uint64_t tag, int32_t *result)
{
	struct vmm_packet *packet = &channel->packet;
	struct vmm_message_answer answer;

	if (packet->u.head.kind != VMM_MESSAGE_ANSWER || packet->bytes < sizeof(answer))
		return give_up(connection, packet);
	memcpy(&answer, &packet->u, VMM_PACKET_HEAD);
	memcpy((char *)&answer + VMM_PACKET_HEAD, packet->body.data,
	       sizeof(answer) - VMM_PACKET_HEAD);
	if (answer.tag != tag)
		return give_up(connection, packet);
	vmm_status status = vmm_client_catch_up(connection, answer.views);
	if (!vmm_ok(status)) {
		vmm_packet_close_fds(packet);
		return status;
	}
	if (!answer.answered) {
		vmm_packet_close_fds(packet);
		return vmm_ok(answer.status) ? VMM_UNSUCCESSFUL : answer.status;
	}
	*result = answer.status;
	return accept_answer(connection, packet, call, argument, answer.head.bytes);
}

/* What is asked is in `call`. */
static vmm_status exchange(struct vidmm_connection *connection, struct vmm_channel_to_host *channel,
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

/* ---- what an object takes ---- */

struct asking {
	struct vidmm_connection *connection;
	struct vmm_channel_to_host *channel;
};

/* Between a handle's end and its next use its type may change: the host then refuses a request, and it is asked again. */
static enum vmm_wire_values values_of(void *context, uint32_t handle)
{
	const struct asking *asking = context;
	_Atomic uint64_t *known =
		&asking->connection->values[(handle >> 6 ^ handle) % VMM_CLIENT_VALUES];
	uint64_t value = atomic_load_explicit(known, memory_order_relaxed);
	struct vmm_wire_sync_values args = {.handle = handle};
	struct vmm_wire_call call = {0};
	int32_t result;

	asking->channel->looked = true;
	if (value >> 32 == handle && value)
		return (enum vmm_wire_values)((uint32_t)value - 1);
	if (vmm_ok(vmm_wire_ask(&call, vmm_wire_operation(VMM_WIRE_sync_values), &args)) &&
	    vmm_ok(exchange(asking->connection, asking->channel, &call, 0, &args, &result)) &&
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
	channel->looked = false;
	vmm_status status = vmm_wire_ask(call, vmm_wire_operation(number), argument);
	if (vmm_ok(status))
		status = exchange(connection, channel, call, device, argument, result);
	call->context = NULL;
	return status;
}

static void keep_buffers(struct vmm_channel_to_host *channel)
{
	if (channel->call.request.capacity > KEEP_BYTES)
		vmm_wire_finish(&channel->call);
}

/* Of a program that is disconnecting the host is not gone; its handles are dead, as those of a process that is closed. */
static vmm_status unless_ending(const struct vidmm_connection *connection, vmm_status status)
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
		return unless_ending(connection, status);
	/* A thread that ended inside would take the channel with it. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	status = attempt(connection, channel, operation, device, argument, result);
	if (status == VMM_INVALID_PARAMETER && channel->looked) {
		forget_values(connection);
		status = attempt(connection, channel, operation, device, argument, result);
	}
	vmm_client_forget_ended(connection, operation, argument);
	keep_buffers(channel);
	vmm_client_put_channel(connection, channel);
	pthread_setcancelstate(cancel, &cancel);
	return unless_ending(connection, status);
}
