/* SPDX-License-Identifier: MIT */
/*
 * packet: messages of wire/protocol.h over a SOCK_SEQPACKET socket, with their descriptors. Both sides use it: nothing that came is
 * believed before it was checked. A packet is used by one thread at a time.
 */
#ifndef VMM_PACKET_PACKET_H
#define VMM_PACKET_PACKET_H

#include "wire/protocol.h"
#include "wire/wire.h"

enum vmm_received {
	VMM_RECEIVED,
	VMM_RECEIVED_NOTHING,  /* it would block */
	VMM_RECEIVED_END,      /* the other side has closed */
	VMM_RECEIVED_MALFORMED /* and it says why; its descriptors are the caller's to close */
};
/* One that came. The body is behind a head of 32 bytes, as requests have it; what other messages have beyond that is in it. */
struct vmm_packet {
	union {
		struct vmm_message_head head;
		struct vmm_message_request request;
		struct vmm_message_join join;
		uint64_t words[4];
	} u;
	struct vmm_wire_bytes body; /* room for VMM_PACKET_ROOM */
	uint32_t bytes;             /* of the packet, head and all */
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t fd_count; /* whoever takes one puts -1 in its place */
	const char *why;
};
#define VMM_PACKET_HEAD 32u
#define VMM_PACKET_ROOM (VMM_PROTOCOL_INLINE_MAX + 64u) /* the longest head is that much longer */

bool vmm_packet_room(struct vmm_packet *packet); /* false: no memory */
enum vmm_received vmm_packet_receive(int fd, struct vmm_packet *packet);
/* The same, but waits for one. */
enum vmm_received vmm_packet_await(int fd, struct vmm_packet *packet);
void vmm_packet_close_fds(struct vmm_packet *packet);
void vmm_packet_finish(struct vmm_packet *packet);
/* Never blocks. 0, or an errno. */
int vmm_message_send(int fd, const void *head, size_t head_bytes, const struct vmm_wire_bytes *body,
		     const int *fds, uint32_t fd_count);
/* A descriptor of a sealed memfd with these bytes; -1: no memory, or no descriptors. */
int vmm_message_memfd(const struct vmm_wire_bytes *bytes);
/* The bytes of a memfd of the other side's. */
vmm_status vmm_message_from_memfd(int fd, uint32_t length,
				  struct vmm_wire_bytes *bytes) VMM_MUST_CHECK;

#endif
