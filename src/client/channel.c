/* SPDX-License-Identifier: MIT */
/*
 * Channels: a pool of sockets to the host. Each thread inside a call uses one; another is made when
 * all are in use.
 */
#include "client/client_private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static int wait_writable(int fd)
{
	struct pollfd writable = {.fd = fd, .events = POLLOUT};

	while (poll(&writable, 1, -1) < 0 && errno == EINTR)
		;
	return writable.revents & POLLOUT ? 0 : EPIPE;
}

vmm_status vmm_client_send(struct vidmm_connection *connection, int fd, const void *head,
			   size_t head_bytes, const struct vmm_wire_bytes *body, const int *fds,
			   uint32_t fd_count)
{
	int error = vmm_message_send(fd, head, head_bytes, body, fds, fd_count);

	while (error == EAGAIN) {
		error = wait_writable(fd);
		if (!error)
			error = vmm_message_send(fd, head, head_bytes, body, fds, fd_count);
	}
	if (error == EBADF && fd_count)
		return VMM_INVALID_HANDLE; /* one of the caller's descriptors is not open */
	if (error == ENOMEM || error == ENOBUFS || error == ETOOMANYREFS)
		return VMM_NO_MEMORY;
	if (error) {
		vmm_client_lose(connection);
		return VMM_DEVICE_REMOVED;
	}
	if (connection->options.sent)
		connection->options.sent(connection->options.sent_context, fd);
	return VMM_OK;
}

vmm_status vmm_client_receive(struct vidmm_connection *connection,
			      struct vmm_channel_to_host *channel)
{
	if (vmm_packet_await(channel->fd, &channel->packet) == VMM_RECEIVED)
		return VMM_OK;
	vmm_client_lose(connection);
	return VMM_DEVICE_REMOVED;
}

struct vmm_channel_to_host *vmm_client_channel_create(int fd)
{
	struct vmm_channel_to_host *channel = vmm_calloc(1, sizeof(*channel));

	if (channel && vmm_packet_reserve(&channel->packet)) {
		channel->fd = fd;
		return channel;
	}
	vmm_free(channel);
	close(fd);
	return NULL;
}

void vmm_client_channel_destroy(struct vmm_channel_to_host *channel)
{
	if (!channel)
		return;
	if (channel->fd >= 0)
		close(channel->fd);
	vmm_packet_finish(&channel->packet);
	vmm_wire_finish(&channel->call);
	vmm_free(channel);
}

vmm_status vmm_client_await_welcome(struct vidmm_connection *connection,
				    struct vmm_channel_to_host *channel,
				    struct vmm_message_welcome *welcome)
{
	const struct vmm_packet *packet = &channel->packet;
	struct vmm_message_refused refused;
	vmm_status status = vmm_client_receive(connection, channel);

	if (!vmm_ok(status))
		return status;
	vmm_packet_close_fds(&channel->packet);
	if (packet->u.head.kind == VMM_MESSAGE_WELCOME && packet->bytes == sizeof(*welcome)) {
		memcpy(welcome, &packet->u, VMM_PACKET_HEAD);
		memcpy((char *)welcome + VMM_PACKET_HEAD, packet->body.data,
		       sizeof(*welcome) - VMM_PACKET_HEAD);
		return welcome->version == VMM_PROTOCOL_VERSION ? VMM_OK : VMM_NOT_SUPPORTED;
	}
	if (packet->u.head.kind != VMM_MESSAGE_REFUSED || packet->bytes != sizeof(refused))
		return VMM_NOT_SUPPORTED;
	memcpy(&refused, &packet->u, VMM_PACKET_HEAD);
	/* The host answers so to a message that its version of the protocol does not have. */
	if (refused.status == VMM_INVALID_PARAMETER)
		return VMM_NOT_SUPPORTED;
	return vmm_ok(refused.status) ? VMM_UNSUCCESSFUL : refused.status;
}

/* Connects one more channel. Caller has already counted it in channel_count. */
static vmm_status join(struct vidmm_connection *connection, struct vmm_channel_to_host **result)
{
	struct vmm_message_join message = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_JOIN},
		.session = {connection->session[0], connection->session[1]},
	};
	struct vmm_message_welcome welcome;
	int fd = connection->options.more
			 ? connection->options.more(connection->options.more_context)
			 : -1;

	if (fd < 0)
		return VMM_INSUFFICIENT_RESOURCES;
	struct vmm_channel_to_host *channel = vmm_client_channel_create(fd);
	if (!channel)
		return VMM_NO_MEMORY;
	vmm_status status =
		vmm_client_send(connection, channel->fd, &message, sizeof(message), NULL, NULL, 0);
	if (vmm_ok(status))
		status = vmm_client_await_welcome(connection, channel, &welcome);
	if (vmm_ok(status)) {
		*result = channel;
		return status;
	}
	vmm_client_channel_destroy(channel);
	/* the session has ended at the host; this side has not seen it yet */
	if (status == VMM_ACCESS_DENIED)
		vmm_client_lose(connection);
	return status;
}

vmm_status vmm_client_take_channel(struct vidmm_connection *connection,
				   struct vmm_channel_to_host **result)
{
	if (vmm_client_lost(connection))
		return VMM_DEVICE_REMOVED;
	vmm_client_pool_lock(connection);
	struct vmm_channel_to_host *channel = connection->idle;
	bool more = !channel && connection->channel_count < connection->channels_max;

	if (channel)
		connection->idle = channel->next;
	connection->channel_count += more;
	vmm_client_pool_unlock(connection);
	*result = channel;
	if (channel)
		return VMM_OK;
	vmm_status status = more ? join(connection, result) : VMM_INSUFFICIENT_RESOURCES;
	if (more && !vmm_ok(status)) {
		vmm_client_pool_lock(connection);
		connection->channel_count--;
		vmm_client_pool_unlock(connection);
	}
	/* Joining failed because the host has ended, not because a resource is missing. */
	if (!vmm_ok(status) && vmm_client_host_is_gone(connection))
		vmm_client_lose(connection);
	return vmm_client_lost(connection) ? VMM_DEVICE_REMOVED : status;
}

void vmm_client_put_channel(struct vidmm_connection *connection,
			    struct vmm_channel_to_host *channel)
{
	vmm_client_pool_lock(connection);
	channel->next = connection->idle;
	connection->idle = channel;
	vmm_client_pool_unlock(connection);
}
