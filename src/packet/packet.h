/* SPDX-License-Identifier: MIT */
/*
 * packet: messages of wire/protocol.h over a SOCK_SEQPACKET socket, with their descriptors. Host
 * and client use it. Received data is untrusted until it has been checked. A packet is used by one
 * thread at a time.
 */
#ifndef VMM_PACKET_PACKET_H
#define VMM_PACKET_PACKET_H

#include "wire/protocol.h"
#include "wire/wire.h"

enum vmm_received {
	VMM_RECEIVED,
	VMM_RECEIVED_NOTHING,   /* no packet is waiting */
	VMM_RECEIVED_END,       /* the peer has closed the socket */
	VMM_RECEIVED_MALFORMED, /* `why` says why; the caller closes the descriptors */
	/*
	 * A message that is well-formed, but this process could not get all its descriptors: it has
	 * as many as it may have. The caller closes those that came.
	 */
	VMM_RECEIVED_INCOMPLETE
};
/*
 * A received packet. `u` has the first 32 bytes, the head of a request. A longer head of another
 * message continues in `body`.
 */
struct vmm_packet {
	union {
		struct vmm_message_head head;
		struct vmm_message_request request;
		struct vmm_message_join join;
		uint64_t words[4];
	} u;
	struct vmm_wire_bytes body; /* capacity: VMM_PACKET_CAPACITY */
	uint32_t bytes;             /* length of the packet, including the head */
	int fds[VMM_PROTOCOL_DESCRIPTORS_MAX];
	uint32_t fd_count; /* a reader that takes a descriptor stores -1 instead */
	/*
	 * How many descriptors are received at most; 0: VMM_PROTOCOL_DESCRIPTORS_MAX. The head of a
	 * packet that has more says so.
	 */
	uint32_t fd_max;
	const char *why;
};
#define VMM_PACKET_HEAD     32u
/* The longest head exceeds VMM_PACKET_HEAD by 64 bytes. */
#define VMM_PACKET_CAPACITY (VMM_PROTOCOL_INLINE_MAX + 64u)

/* Returns true if fd is a SOCK_SEQPACKET socket of the domain AF_UNIX. */
bool vmm_packet_is_socket(int fd);
/* Returns true if fd is such a socket and is connected, even if its peer is closed by now. */
bool vmm_packet_is_connected(int fd);

/* Allocates the body, if that is too small. false: no memory. */
bool vmm_packet_reserve(struct vmm_packet *packet);
enum vmm_received vmm_packet_receive(int fd, struct vmm_packet *packet);
/* Waits for a packet and receives it. */
enum vmm_received vmm_packet_await(int fd, struct vmm_packet *packet);
void vmm_packet_close_fds(struct vmm_packet *packet);
void vmm_packet_finish(struct vmm_packet *packet);
/* Sends a message without blocking. Returns 0 or an errno. */
int vmm_message_send(int fd, const void *head, size_t head_bytes, const struct vmm_wire_bytes *body,
		     const int *fds, uint32_t fd_count);
/*
 * Returns a descriptor of a sealed memfd with these bytes. -1: no memory, or no descriptors left.
 */
int vmm_message_memfd(const struct vmm_wire_bytes *bytes);
/*
 * The two halves of it: an empty memfd, or -1; the bytes, and the seals. Returns false without
 * memory; the caller closes the descriptor in any case.
 */
int vmm_message_memfd_open(void);
bool vmm_message_memfd_write(int fd, const struct vmm_wire_bytes *bytes);
/* Reads the bytes of a memfd from the peer into new memory. */
vmm_status vmm_message_from_memfd(int fd, uint32_t length,
				  struct vmm_wire_bytes *bytes) VMM_MUST_CHECK;

#endif
