/* SPDX-License-Identifier: MIT */
/*
 * Messages on the sockets between an out-of-process client and its host
 * (docs/adr/0001-real-processes.md). Each message is one packet of a SOCK_SEQPACKET socket: a
 * header of this file, then its payload. Integers are in the byte order of the machine, which both
 * sides share.
 *
 * Neither side trusts a number. The receiver checks the length of a message first, then each
 * member. A malformed message ends the connection.
 */
#ifndef VMM_WIRE_PROTOCOL_H
#define VMM_WIRE_PROTOCOL_H

#include "base/base.h"

#define VMM_PROTOCOL_MAGIC   0x6d6d6476u /* "vdmm" */
#define VMM_PROTOCOL_VERSION 2u

/*
 * The largest payload in a packet, in bytes. A longer one is in a memfd, the first of the message's
 * descriptors, and is read with pread.
 */
#define VMM_PROTOCOL_INLINE_MAX      65536u
/* Descriptors of one message: those of the call, and that of the payload. */
#define VMM_PROTOCOL_DESCRIPTORS_MAX 9u

enum vmm_message_kind {
	/* ---- client to host ---- */
	/*
	 * First message on the first channel. Descriptors: view socket, then the userfaultfd if
	 * there is one.
	 */
	VMM_MESSAGE_HELLO = 1,
	VMM_MESSAGE_JOIN, /* first message on every further channel */
	VMM_MESSAGE_REQUEST,
	VMM_MESSAGE_DISCONNECT, /* on the first channel: the client disconnects cleanly */
	VMM_MESSAGE_ADOPTED,    /* answers ADOPT, on the view socket */
	/*
	 * First and only message of a connection: lists the clients (vidmm clients). Only the
	 * host's own user and root may send it.
	 */
	VMM_MESSAGE_CLIENTS,
	/*
	 * On the first channel: the program exits without a DISCONNECT. The session goes on until
	 * its sockets are closed, because functions that run at exit may still call. No answer.
	 */
	VMM_MESSAGE_EXITS,
	/* ---- host to client ---- */
	VMM_MESSAGE_WELCOME = 64, /* answers HELLO and JOIN */
	/*
	 * answers HELLO, JOIN and CLIENTS: `status` and `why`; the host then closes the connection
	 */
	VMM_MESSAGE_REFUSED,
	VMM_MESSAGE_ANSWER,
	VMM_MESSAGE_LIST, /* answers CLIENTS: an array of struct vmm_message_client */
	/* ---- host to client, on the view socket ---- */
	VMM_MESSAGE_VIEW = 128,
	/*
	 * callback notification: a function of the client is to be called (pfnTrimResidencySet and
	 * others)
	 */
	VMM_MESSAGE_NOTIFICATION,
	/*
	 * existing memory of the client is to become a memory object that the host can map (ALF-13)
	 */
	VMM_MESSAGE_ADOPT,
	VMM_MESSAGE_WORDS /* memory to lock by without a message */
};

/* Flags of HELLO. */
#define VMM_HELLO_WORDS 1u /* the client accepts WORDS */
#define VMM_HELLO_TEXTS 2u /* the client wants the findings and reasons that concern it */

struct vmm_message_head {
	uint32_t magic, kind; /* enum vmm_message_kind */
	uint32_t bytes;       /* bytes of the payload, in the packet or in a memfd */
	uint32_t descriptors; /* number of descriptors in the message */
};

struct vmm_message_hello {
	struct vmm_message_head head;
	uint32_t version, flags;
	/* The address range reserved for CPU mappings; page-aligned. */
	uint64_t window_address, window_bytes;
	char name[64]; /* name of the program, for lists and events; ends with 0 */
};

struct vmm_message_join {
	struct vmm_message_head head;
	uint64_t session[2]; /* token of WELCOME; cannot be guessed */
};

struct vmm_message_welcome {
	struct vmm_message_head head;
	uint32_t version, process_id; /* process_id is the number in events */
	uint64_t session[2];
	uint32_t channels_max; /* how many channels this client may have */
	uint32_t reserved;
};

struct vmm_message_refused {
	struct vmm_message_head head;
	int32_t status;
	char why[116]; /* a reason for people; ends with 0 */
};

/* Payload: the bytes of vmm_wire_make_request; none for a call with a NULL argument. */
struct vmm_message_request {
	struct vmm_message_head head;
	uint32_t operation; /* number in operations.tsv */
	uint32_t device;    /* of a device callback: the device of device_create; otherwise 0 */
	uint64_t tag;       /* returned in the answer */
};

#define VMM_ANSWER_MADE  1u /* the call was made */
#define VMM_ANSWER_TEXTS 2u /* the runtime call `texts` would return some (VMM_HELLO_TEXTS) */
/* Payload: the bytes of vmm_wire_make_answer, if the call was made. */
struct vmm_message_answer {
	struct vmm_message_head head;
	int32_t status; /* NTSTATUS or HRESULT of the call */
	/*
	 * Without VMM_ANSWER_MADE the host refused the request and made no call; `status`, an
	 * NTSTATUS, says why. A payload that vmm_wire_read_request refuses does not end the
	 * connection: client and host may not have agreed on what a union contained (sync_values).
	 */
	uint32_t answered;
	uint64_t tag;
	/* the client executes all view instructions up to this number before the call returns */
	uint64_t views;
};

enum vmm_view_what { VMM_VIEW_MAP = 1, VMM_VIEW_UNMAP, VMM_VIEW_RELEASE };

/* Every message on the view socket has a number: 1, 2, 3, ... in the order of sending. */
struct vmm_message_view {
	struct vmm_message_head head; /* MAP: with one descriptor */
	uint64_t number;
	uint32_t what, writable; /* enum vmm_view_what */
	/* MAP: [offset, offset + length) of the descriptor's object */
	uint64_t address, length, offset;
};

/*
 * Requests memory that a call of the client named. The range stays mapped at its address and keeps
 * its content. The host waits for ADOPTED.
 */
struct vmm_message_adopt {
	struct vmm_message_head head;
	uint64_t number, address, length;
};
/*
 * If status is a success: one descriptor, of a memfd sealed against shrinking, in which the range
 * begins at `offset`.
 */
struct vmm_message_adopted {
	struct vmm_message_head head;
	uint64_t number; /* number of the ADOPT that this answers */
	int32_t status;
	uint32_t reserved;
	uint64_t offset;
};

enum vmm_words_what {
	VMM_WORDS_EPOCH = 1, /* a read-only page: the host's epoch (base/lock_word.h) */
	VMM_WORDS_TABLE      /* the struct vmm_lock_words of this client; sent after the epoch */
};

/* With one descriptor. Each kind is sent at most once. */
struct vmm_message_words {
	struct vmm_message_head head;
	uint64_t number;
	uint32_t what, length; /* enum vmm_words_what; size of the memory in bytes */
};

enum vmm_notification_what {
	VMM_NOTIFICATION_TRIM_DEVICE =
		1, /* calls the vidmm_trim_residency_set_fn of device_set_trim */
	/* calls the PFND3DKMT_TRIMNOTIFICATIONCALLBACK of D3DKMTRegisterTrimNotification */
	VMM_NOTIFICATION_TRIM
};

/*
 * Callback notification. The client's library calls the function on its own thread; the host does
 * not wait for it. After the answer to the end of a registration no notification of it is sent. The
 * client waits for a call under way.
 */
struct vmm_message_notification {
	struct vmm_message_head head;
	uint64_t number;
	uint32_t what, flags;       /* enum vmm_notification_what; D3DDDI_TRIMRESIDENCYSET_FLAGS */
	uint64_t function, context; /* as the client registered them; only numbers to the host */
	uint64_t bytes;             /* NumBytesToTrim */
};

struct vmm_message_client {
	uint32_t process_id, pid;
	uint32_t uid, channels, requests_in_flight, devices;
	uint64_t memory_bytes, handles, requests; /* current values; requests: total */
	char name[64];
};

#endif
