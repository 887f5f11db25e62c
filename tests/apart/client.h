/* SPDX-License-Identifier: MIT */
/*
 * What the modes of apart_client share: a connection with a device, and the helpers of
 * support/client.h on it.
 */
#ifndef VMM_TESTS_APART_CLIENT_H
#define VMM_TESTS_APART_CLIENT_H

#include <d3dkmthk.h>
#include <support/client.h>
#include <vidmm/client.h>

#include "apart.h"

struct apart_device {
	struct client_device device; /* for the helpers; process and device are NULL */
	struct client client;        /* that it points to */
	struct vidmm_connection *connection;
	struct vidmm_remote_device *remote;
};

/* Ends the program with APART_REMOVED where there is no host. */
enum { APART_SOFTGPU, APART_SCRIPTED };
void apart_open(struct apart_device *d, const char *socket, const char *name, uint32_t adapter);
void apart_close(struct apart_device *d);
/* So far it has come. */
void apart_say(void);
/* Has the standard input been closed? */
bool apart_told_to_end(void);
/* Until then. */
void apart_wait_for_end(void);
/*
 * Ends the program: APART_REMOVED for what a call answers without a host, else with a message and
 * 1.
 */
void apart_failed(const char *what, HRESULT status) __attribute__((noreturn));

/* Ends the program in the middle of things, with whatever threads there are. */
void apart_end(int code) __attribute__((noreturn));

/* look.c: of every second word the upper half, where the next names the program that wrote it. */
#define APART_MAGIC 0xC5A9u
/* Returns the program that wrote words found in memory mapped into this one; 0: only its own. */
uint32_t apart_look_around(void);
/* Ends the program where it would not find any. */
void apart_look_at_something(void);
/*
 * From now on every descriptor and every byte that the host sends is looked at, and the last
 * descriptors are kept, and mapped whole.
 */
void apart_keep_all(void);

/* modes.c: a fence of a device on APART_SCRIPTED, and its value where it is mapped */
D3DKMT_HANDLE apart_make_fence(struct apart_device *d, const volatile uint64_t **value);
HRESULT apart_signal(struct apart_device *d, D3DKMT_HANDLE fence, UINT64 value);

/* kmt.c: a fence of a D3DKMT device's, shared by NT handles, and by a name if there is one */
#define APART_SHARED_BY_NT 0x3u /* Shared, NtSecuritySharing */
struct apart_fence {
	D3DKMT_HANDLE handle;
	const volatile uint64_t *value;
};
struct apart_fence apart_kmt_fence(D3DKMT_HANDLE device, uint32_t flags);
NTSTATUS apart_kmt_signal(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, UINT64 value);
NTSTATUS apart_kmt_wait(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, UINT64 value);
NTSTATUS apart_kmt_open(D3DKMT_HANDLE device, int nt, struct apart_fence *fence);
NTSTATUS apart_kmt_share(D3DKMT_HANDLE object, const char *name, int *nt);
NTSTATUS apart_kmt_open_name(const char *name, int *nt);
/* Is that thread of this program asleep? */
bool apart_sleeps(pid_t task);

/* The modes; each returns the exit code. */
int apart_load(const char *socket, const char *seed);
int apart_hoard(const char *socket, const char *seed);
int apart_hold(const char *socket, const char *argument);
int apart_protected(const char *socket, const char *argument);
int apart_fences(const char *socket, const char *argument);
int apart_wait_fence(const char *socket, const char *argument);
int apart_cycle(const char *socket, const char *count);
int apart_relatives(const char *socket, const char *what);
int apart_inherit(const char *socket, const char *number);
int apart_asleep(const char *socket, const char *argument);

#endif
