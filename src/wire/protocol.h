/* SPDX-License-Identifier: MIT */
/*
 * What goes over the sockets between a client and a host (docs/adr/0001-real-processes.md). Each message is one packet of a
 * SOCK_SEQPACKET socket: a header of this page, then its payload. Integers are the machine's own: both are on it.
 *
 * Neither side believes a number: whoever receives a message checks its length first, then each member. One that is malformed ends
 * the connection.
 */
#ifndef VMM_WIRE_PROTOCOL_H
#define VMM_WIRE_PROTOCOL_H

#include "base/base.h"

#define VMM_PROTOCOL_MAGIC   0x6d6d6476u /* "vdmm" */
#define VMM_PROTOCOL_VERSION 2u

/* A payload longer than this is not in the packet: it is a memfd, the first of the message's descriptors, read with pread. */
#define VMM_PROTOCOL_INLINE_MAX      65536u
/* Of one message: those of the wire call, and the payload's. */
#define VMM_PROTOCOL_DESCRIPTORS_MAX 9u

enum vmm_message_kind {
	/* client to host */
	VMM_MESSAGE_HELLO =
		1, /* first on the first channel; descriptors: view socket, then, if it has one, userfaultfd */
	VMM_MESSAGE_JOIN, /* first on every further channel */
	VMM_MESSAGE_REQUEST,
	VMM_MESSAGE_FAREWELL, /* on the first channel: the client ends in an orderly way */
	VMM_MESSAGE_ADOPTED,  /* answers ADOPT, on the view socket */
	VMM_MESSAGE_CLIENTS, /* first and only one of a connection: who is connected (vidmm clients); the host's own user alone */
	/* host to client */
	VMM_MESSAGE_WELCOME = 64, /* answers HELLO, JOIN */
	VMM_MESSAGE_REFUSED,      /* answers any of them: status says why; the host closes then */
	VMM_MESSAGE_ANSWER,
	VMM_MESSAGE_LIST, /* answers CLIENTS: records of struct vmm_message_client */
	/* host to client, on the view socket */
	VMM_MESSAGE_VIEW = 128,
	VMM_MESSAGE_NOTICE, /* a function of the client's is to be called: pfnTrimResidencySet and the like */
	VMM_MESSAGE_ADOPT, /* memory of the client's is to become an object that both sides have (ALF-13) */
	VMM_MESSAGE_WORDS /* memory to lock by without a message */
};

/* Of hello. */
#define VMM_HELLO_WORDS 1u /* it knows WORDS */

struct vmm_message_head {
	uint32_t magic, kind; /* enum vmm_message_kind */
	uint32_t bytes;       /* of the payload, in the packet or in a memfd */
	uint32_t descriptors; /* that come with it */
};

struct vmm_message_hello {
	struct vmm_message_head head;
	uint32_t version, flags;
	/* The range that is reserved for views: page-aligned. */
	uint64_t window_address, window_bytes;
	char name[64]; /* of the program, for lists and events; ends with 0 */
};

struct vmm_message_join {
	struct vmm_message_head head;
	uint64_t session[2]; /* as WELCOME gave it; not to be guessed */
};

struct vmm_message_welcome {
	struct vmm_message_head head;
	uint32_t version, process_id; /* as in events */
	uint64_t session[2];
	uint32_t channels_max; /* how many this client may have */
	uint32_t reserved;
};

struct vmm_message_refused {
	struct vmm_message_head head;
	int32_t status;
	char why[116]; /* for people; ends with 0 */
};

/* Payload: what vmm_wire_ask made; none for a call with NULL for its argument. */
struct vmm_message_request {
	struct vmm_message_head head;
	uint32_t operation; /* operations.tsv */
	uint32_t device;    /* of a device callback: what device_create gave; else 0 */
	uint64_t tag;       /* comes back with the answer */
};

/* Payload: what vmm_wire_answer made, unless `answered` is 0. */
struct vmm_message_answer {
	struct vmm_message_head head;
	int32_t status; /* NTSTATUS or HRESULT, of the call itself */
	/*
	 * 0: the host refused the request before it came to a call; status, an NTSTATUS, says why. A payload that vmm_wire_receive refuses
	 * is refused so, and does not end the connection: client and host may not have agreed what a union held (sync_values).
	 */
	uint32_t answered;
	uint64_t tag;
	uint64_t
		views; /* the client has executed all instructions up to this number before the call returns */
};

enum vmm_view_what { VMM_VIEW_MAP = 1, VMM_VIEW_UNMAP, VMM_VIEW_RELEASE };

/* What comes on the view socket has numbers in the order of sending, notices too: 1, 2, 3 ... */
struct vmm_message_view {
	struct vmm_message_head head; /* MAP: one descriptor */
	uint64_t number;
	uint32_t what, writable;          /* enum vmm_view_what */
	uint64_t address, length, offset; /* MAP: [offset, +length) of the descriptor's object */
};

/* The range, which a call of the client's named, stays where it is and keeps its content; the host waits for ADOPTED. */
struct vmm_message_adopt {
	struct vmm_message_head head;
	uint64_t number, address, length;
};
/* Good status: one descriptor, of a memfd that is sealed against shrinking, in which the range begins at the offset. */
struct vmm_message_adopted {
	struct vmm_message_head head;
	uint64_t number; /* of the message that it answers */
	int32_t status;
	uint32_t reserved;
	uint64_t offset;
};

enum vmm_words_what {
	VMM_WORDS_EPOCH = 1, /* a page, to be read alone: the host's epoch (base/lock_word.h) */
	VMM_WORDS_TABLE      /* a struct vmm_lock_words of this client; comes behind the epoch */
};

/* One descriptor; both at most once. */
struct vmm_message_words {
	struct vmm_message_head head;
	uint64_t number;
	uint32_t what, length; /* enum vmm_words_what; of the memory, in bytes */
};

enum vmm_notice_what {
	VMM_NOTICE_TRIM_DEVICE = 1, /* a vidmm_trim_residency_set_fn: device_set_trim */
	VMM_NOTICE_TRIM /* a PFND3DKMT_TRIMNOTIFICATIONCALLBACK: D3DKMTRegisterTrimNotification */
};

/*
 * The client's library calls the function, on a thread of its own; the host does not wait for that. After the answer to the end of a
 * registration no notice of it is sent; the client waits for one under way.
 */
struct vmm_message_notice {
	struct vmm_message_head head;
	uint64_t number;
	uint32_t what, flags;       /* enum vmm_notice_what; D3DDDI_TRIMRESIDENCYSET_FLAGS */
	uint64_t function, context; /* as the client gave them; numbers to the host */
	uint64_t bytes;             /* NumBytesToTrim */
};

struct vmm_message_client {
	uint32_t process_id, pid;
	uint32_t uid, channels, requests_in_flight, devices;
	uint64_t memory_bytes, handles, requests; /* now; in all */
	char name[64];
};

#endif
