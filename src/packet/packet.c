/* SPDX-License-Identifier: MIT */
/*
 * Packets of a SOCK_SEQPACKET socket, with descriptors (SCM_RIGHTS), and memfds for long messages.
 */
#include "packet/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* How often a send is tried while the kernel has no memory for the packet. */
enum { SEND_TRIES = 8 };
enum { FIRST_DESCRIPTOR = 3 }; /* programs take 0 as no handle (SHR-35, SYN-09a) */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(VMM_PROTOCOL_DESCRIPTORS_MAX * sizeof(int))];
};

bool vmm_packet_is_socket(int fd)
{
	int domain = 0, type = 0;
	socklen_t length = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_SEQPACKET;
}

bool vmm_packet_is_connected(int fd)
{
	struct sockaddr_un peer;
	socklen_t length = sizeof(peer);

	return vmm_packet_is_socket(fd) && !getpeername(fd, (struct sockaddr *)&peer, &length);
}

bool vmm_packet_reserve(struct vmm_packet *packet)
{
	if (packet->body.capacity >= VMM_PACKET_CAPACITY)
		return true;
	vmm_free(packet->body.data);
	packet->body = (struct vmm_wire_bytes){.data = vmm_calloc(1, VMM_PACKET_CAPACITY)};
	if (packet->body.data)
		packet->body.capacity = VMM_PACKET_CAPACITY;
	return packet->body.data;
}

/*
 * Takes over the descriptors. Returns false if some were lost, or one could not get a number that
 * is a valid handle. (SHR-35, SYN-09a)
 */
static bool take_descriptors(struct msghdr *message, struct vmm_packet *packet)
{
	bool all = !(message->msg_flags & MSG_CTRUNC);

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		uint32_t count = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		vmm_assert(packet->fd_count + count <= VMM_PROTOCOL_DESCRIPTORS_MAX);
		memcpy(&packet->fds[packet->fd_count], CMSG_DATA(c), count * sizeof(int));
		packet->fd_count += count;
	}
	for (uint32_t i = 0; i < packet->fd_count; i++) {
		int fd = packet->fds[i];

		if (fd >= FIRST_DESCRIPTOR)
			continue;
		packet->fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
		close(fd);
		all &= packet->fds[i] >= 0;
	}
	return all;
}

/*
 * Returns whether descriptors are missing because this process could not take them. A sender that
 * attached more than the packet takes has filled it.
 */
static bool is_incomplete(const struct msghdr *message, const struct vmm_packet *packet,
			  uint32_t most)
{
	return (message->msg_flags & MSG_CTRUNC) && packet->fd_count < most &&
	       packet->u.head.descriptors <= most;
}

/*
 * Returns whether the message has more descriptors than the caller wants, although not more than a
 * message may have.
 */
static bool has_surplus(const struct msghdr *message, const struct vmm_packet *packet)
{
	return (message->msg_flags & MSG_CTRUNC) && packet->fd_max &&
	       packet->fd_count == packet->fd_max && packet->u.head.descriptors > packet->fd_max &&
	       packet->u.head.descriptors <= VMM_PROTOCOL_DESCRIPTORS_MAX;
}

static enum vmm_received malformed(struct vmm_packet *packet, const char *why)
{
	packet->why = why;
	return VMM_RECEIVED_MALFORMED;
}

static enum vmm_received receive(int fd, struct vmm_packet *packet, int flags)
{
	const uint32_t most = packet->fd_max ? packet->fd_max : VMM_PROTOCOL_DESCRIPTORS_MAX;
	union control control;
	struct iovec parts[2] = {{&packet->u, VMM_PACKET_HEAD},
				 {packet->body.data, packet->body.capacity}};
	struct msghdr message = {.msg_iov = parts,
				 .msg_iovlen = 2,
				 .msg_control = &control,
				 /*
				  * The length excludes the padding, into which one more descriptor
				  * would fit.
				  */
				 .msg_controllen = CMSG_LEN(most * sizeof(int))};
	ssize_t length;

	packet->fd_count = 0;
	do
		length = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	/* Without memory in the kernel the packet stays in the socket. */
	if (length < 0)
		return errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS ? VMM_RECEIVED_NOTHING
									      : VMM_RECEIVED_END;
	bool all = take_descriptors(&message, packet);
	if (length == 0 && !packet->fd_count)
		return VMM_RECEIVED_END;
	packet->bytes = (uint32_t)length;
	packet->body.length = packet->bytes > VMM_PACKET_HEAD ? packet->bytes - VMM_PACKET_HEAD : 0;
	if (message.msg_flags & MSG_TRUNC)
		return malformed(packet, "a packet longer than any message");
	if (packet->bytes < sizeof(packet->u.head))
		return malformed(packet, "a packet shorter than the head of a message");
	if (packet->u.head.magic != VMM_PROTOCOL_MAGIC)
		return malformed(packet, "a packet that is no message of this protocol");
	if (is_incomplete(&message, packet, most))
		return VMM_RECEIVED_INCOMPLETE;
	if (has_surplus(&message, packet))
		return VMM_RECEIVED;
	if (!all || packet->u.head.descriptors != packet->fd_count)
		return malformed(packet, "not as many descriptors as the message says");
	return VMM_RECEIVED;
}

enum vmm_received vmm_packet_receive(int fd, struct vmm_packet *packet)
{
	return receive(fd, packet, MSG_DONTWAIT);
}

enum vmm_received vmm_packet_await(int fd, struct vmm_packet *packet)
{
	return receive(fd, packet, 0);
}

void vmm_packet_close_fds(struct vmm_packet *packet)
{
	for (uint32_t i = 0; i < packet->fd_count; i++)
		if (packet->fds[i] >= 0)
			close(packet->fds[i]);
	packet->fd_count = 0;
}

void vmm_packet_finish(struct vmm_packet *packet)
{
	vmm_packet_close_fds(packet);
	vmm_free(packet->body.data);
	packet->body = (struct vmm_wire_bytes){0};
}

int vmm_message_send(int fd, const void *head, size_t head_bytes, const struct vmm_wire_bytes *body,
		     const int *fds, uint32_t fd_count)
{
	union control control;
	struct iovec parts[2] = {{(void *)(uintptr_t)head, head_bytes}, {NULL, 0}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1};
	ssize_t sent;

	if (body && body->length) {
		parts[1] = (struct iovec){body->data, body->length};
		message.msg_iovlen = 2;
	}
	if (fd_count) {
		vmm_assert(fd_count <= VMM_PROTOCOL_DESCRIPTORS_MAX);
		memset(&control, 0, sizeof(control));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
				      .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	for (uint32_t tries = 1;; tries++) {
		sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent >= 0)
			return 0;
		if (errno == ENOBUFS || errno == ENOMEM) {
			if (tries >= SEND_TRIES)
				return errno;
			(void)sched_yield();
		} else if (errno != EINTR) {
			return errno;
		}
	}
}

int vmm_message_memfd_open(void)
{
	return memfd_create("vidmm-message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool vmm_message_memfd_write(int fd, const struct vmm_wire_bytes *bytes)
{
	uint32_t done = 0;

	while (done < bytes->length) {
		ssize_t written = pwrite(fd, bytes->data + done, bytes->length - done, done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		done += (uint32_t)written;
	}
	return !fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL);
}

int vmm_message_memfd(const struct vmm_wire_bytes *bytes)
{
	int fd = vmm_message_memfd_open();

	if (fd < 0 || vmm_message_memfd_write(fd, bytes))
		return fd;
	close(fd);
	return -1;
}

/*
 * Only a memfd is read: a read of another file might block. If the peer can still write to the
 * memfd, the copy has some version of the bytes.
 */
vmm_status vmm_message_from_memfd(int fd, uint32_t length, struct vmm_wire_bytes *bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	uint32_t done = 0;

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || length > VMM_WIRE_BYTES_MAX)
		return VMM_INVALID_PARAMETER;
	uint8_t *data = vmm_calloc(1, length);
	if (!data)
		return VMM_NO_MEMORY;
	while (done < length) {
		ssize_t got = pread(fd, data + done, length - done, done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			vmm_free(data);
			return VMM_INVALID_PARAMETER;
		}
		done += (uint32_t)got;
	}
	*bytes = (struct vmm_wire_bytes){.data = data, .length = length, .capacity = length};
	return VMM_OK;
}
