/* SPDX-License-Identifier: MIT */
/*
 * Shared by the modes of out_of_process_client: a connection with a device, and the helpers of
 * support/client.h on it.
 */
#ifndef VMM_TESTS_REMOTE_CLIENT_H
#define VMM_TESTS_REMOTE_CLIENT_H

#include <d3dkmthk.h>
#include <support/client.h>
#include <vidmm/client.h>

#include "remote.h"

struct remote_device {
	struct client_device device; /* for the helpers; process and device are NULL */
	struct client client;        /* the client that `device` points to */
	struct vidmm_connection *connection;
	struct vidmm_remote_device *remote;
};

/* Connects. Ends the program with REMOTE_REMOVED if there is no host. */
enum { REMOTE_SOFTGPU, REMOTE_SCRIPTED };
void remote_open(struct remote_device *d, const char *socket, const char *name, uint32_t adapter);
void remote_close(struct remote_device *d);
/* Reports progress to the test. */
void remote_say(void);
/* Returns whether the standard input has been closed. */
bool remote_told_to_end(void);
/* Waits until the standard input is closed. */
void remote_wait_for_end(void);
/*
 * Ends the program: with REMOTE_REMOVED for a status that means that the host has gone, else with a
 * message and 1.
 */
void remote_failed(const char *what, HRESULT status) __attribute__((noreturn));

/* Ends the program at once, whatever threads it has. */
void remote_end(int code) __attribute__((noreturn));

/* look.c: the upper half of every second word identifies the program that wrote the next one. */
#define REMOTE_MAGIC 0xC5A9u
/* Returns the program that wrote words found in memory mapped into this one; 0: only its own. */
uint32_t remote_look_around(void);
/* Ends the program if the search does not find a planted word. */
void remote_look_at_something(void);
/*
 * From now on all bytes and descriptors that the host sends are searched. The last descriptors are
 * retained and mapped whole.
 */
void remote_keep_all(void);

/* modes.c: a fence of a device on REMOTE_SCRIPTED, and its value where it is mapped */
D3DKMT_HANDLE remote_make_fence(struct remote_device *d, const volatile uint64_t **value);
HRESULT remote_signal(struct remote_device *d, D3DKMT_HANDLE fence, UINT64 value);

/* kmt.c: a fence of a D3DKMT device's, shared by NT handles, and by a name if there is one */
#define REMOTE_SHARED_BY_NT 0x3u /* Shared, NtSecuritySharing */
struct remote_fence {
	D3DKMT_HANDLE handle;
	const volatile uint64_t *value;
};
struct remote_fence remote_kmt_fence(D3DKMT_HANDLE device, uint32_t flags);
NTSTATUS remote_kmt_signal(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, UINT64 value);
NTSTATUS remote_kmt_wait(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, UINT64 value);
NTSTATUS remote_kmt_open(D3DKMT_HANDLE device, int nt, struct remote_fence *fence);
NTSTATUS remote_kmt_share(D3DKMT_HANDLE object, const char *name, int *nt);
NTSTATUS remote_kmt_open_name(const char *name, int *nt);
/* Returns whether that thread of this program is asleep. */
bool remote_sleeps(pid_t task);

/* The modes; each returns the exit code. */
int remote_load(const char *socket, const char *seed);
int remote_hoard(const char *socket, const char *seed);
int remote_hold(const char *socket, const char *argument);
int remote_protected(const char *socket, const char *argument);
int remote_fences(const char *socket, const char *argument);
int remote_wait_fence(const char *socket, const char *argument);
int remote_cycle(const char *socket, const char *count);
int remote_relatives(const char *socket, const char *what);
int remote_inherit(const char *socket, const char *number);
int remote_heir(const char *socket, const char *handles);
int remote_asleep(const char *socket, const char *argument);
int remote_exhaust(const char *socket, const char *count);
int remote_grab_shared(const char *socket, const char *argument);
int remote_grab_existing(const char *socket, const char *argument);
int remote_grab_sockets(const char *socket, const char *count);
int remote_grab_threads(const char *socket, const char *argument);

#endif
