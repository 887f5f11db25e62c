/* SPDX-License-Identifier: MIT */
/*
 * Monitored fences in several processes: NT handles, names, rights of each opening, and lifetime
 * (SHR, SFL).
 */
#include "sync_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <support/named.h>

#define SHARED 3u /* Shared and NtSecuritySharing */

static NTSTATUS share_as(D3DKMT_HANDLE object, const char *name, int *nt)
{
	HANDLE handle = (HANDLE)(uintptr_t)0xdead;
	struct named n;
	NTSTATUS status =
		D3DKMTShareObjects(1, &object, name ? name_it(&n, name) : NULL, 0x20000, &handle);

	/* SHR-37 */
	if (status)
		assert_true(handle == (HANDLE)(uintptr_t)0xdead);
	*nt = status ? -1 : (int)(uintptr_t)handle;
	return status;
}

static int share(D3DKMT_HANDLE object)
{
	int nt;

	assert_int_equal(share_as(object, NULL, &nt), STATUS_SUCCESS);
	return nt;
}

static NTSTATUS by_name(const char *name, uint32_t access, int *nt)
{
	struct named n;
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME args = {.dwDesiredAccess = access,
						      .pObjAttrib = name_it(&n, name)};
	NTSTATUS status = D3DKMTOpenSyncObjectNtHandleFromName(&args);

	*nt = status ? -1 : (int)(uintptr_t)args.hNtHandle;
	return status;
}

static NTSTATUS try_open(D3DKMT_HANDLE device, int nt, uint32_t flags, struct sync_fence *f)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = {
		.hNtHandle = (HANDLE)(intptr_t)nt, .hDevice = device, .Flags.Value = flags};
	NTSTATUS status = D3DKMTOpenSyncObjectFromNtHandle2(&args);

	f->handle = args.hSyncObject;
	f->value = args.MonitoredFence.FenceValueCPUVirtualAddress;
	if (status) {
		assert_int_equal(args.hSyncObject, 0);
		assert_null(args.MonitoredFence.FenceValueCPUVirtualAddress);
	}
	return status;
}

static struct sync_fence open_in(D3DKMT_HANDLE device, int nt, uint32_t flags)
{
	struct sync_fence f;

	assert_int_equal(try_open(device, nt, flags, &f), STATUS_SUCCESS);
	assert_non_null(f.value);
	return f;
}

static NTSTATUS open_plain(int nt, D3DKMT_HANDLE *handle)
{
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE args = {.hNtHandle = (HANDLE)(intptr_t)nt};
	NTSTATUS status = D3DKMTOpenSyncObjectFromNtHandle(&args);

	*handle = args.hSyncObject;
	return status;
}

static void hnd_06_shr_08_shr_09_shr_11_shr_35_syn_09a_an_nt_handle_is_a_descriptor(void **state)
{
	static const uint32_t accesses[] = {0, 1, 0x20000, D3DDDI_SYNC_OBJECT_ALL_ACCESS};
	char path[32], name[64];
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 1);
	for (uint32_t i = 0; i < 4; i++) {
		OBJECT_ATTRIBUTES unnamed = {.Length = sizeof(unnamed)}; /* SHR-11 */
		HANDLE handle = NULL;

		assert_int_equal(D3DKMTShareObjects(1, &f.handle, i % 2 ? &unnamed : NULL,
						    accesses[i], &handle),
				 STATUS_SUCCESS);
		int nt = (int)(uintptr_t)handle;
		assert_true(nt >= 3 && nt < 0x40000000); /* SYN-09a */
		assert_int_equal(fcntl(nt, F_GETFD), FD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", nt);
		ssize_t length = readlink(path, name, sizeof(name) - 1);
		assert_true(length > 0);
		name[length] = 0;
		assert_non_null(strstr(name, "DxgkSharedSyncObject"));
		close(nt);
	}
	int zero = dup(0);
	close(0); /* descriptor 0 is free, but not returned */
	int nt = share(f.handle);
	assert_true(nt >= 3);
	close(nt);
	if (zero >= 0)
		assert_int_equal(dup2(zero, 0), 0);
	close(zero);
	sync_stop(&s);
}

static void shr_06_shr_07_shr_37_invalid_sharing_is_refused(void **state)
{
	struct sync_world s;
	HANDLE handle;
	int nt;

	sync_start(&s, state, sync_3_0);
	struct sync_fence secret = sync_fence(&s, 0, 0), f = sync_fence(&s, SHARED, 0);
	const D3DKMT_HANDLE bad[] = {0, secret.handle, s.device, s.adapter, f.handle + 0x400},
			    two[] = {f.handle, f.handle, f.handle, f.handle};
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(share_as(bad[i], NULL, &nt), STATUS_INVALID_PARAMETER);
		sync_found(&s, "SHR-06");
	}
	for (uint32_t count = 0; count <= 4; count++) {
		if (count == 1)
			continue;
		assert_int_equal(D3DKMTShareObjects(count, two, NULL, 0, &handle),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "SHR-07");
	}
	assert_int_equal(D3DKMTShareObjects(1, NULL, NULL, 0, &handle), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SHR-07");
	assert_int_equal(D3DKMTShareObjects(1, two, NULL, 0, NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	assert_int_equal(share_as(f.handle, NULL, &nt), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SHR-06");
	sync_stop(&s);
}

static void shr_16_shr_18_shr_32_openings_share_one_value(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 7);
	int nt = share(f.handle);
	vidmm_d3dkmt_enter(s.other);
	struct sync_fence g = open_in(s.other_device, nt, 0), h = open_in(s.other_device, nt, 0);
	assert_true(g.value != f.value && g.value != h.value && g.handle != h.handle);
	assert_int_equal(*g.value, 7);
	assert_int_equal(sync_signal(s.other_device, g.handle, 9), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(*f.value, 9);
	assert_int_equal(*h.value, 9);
	assert_int_equal(sync_signal(s.device, f.handle, 10), STATUS_SUCCESS);
	assert_int_equal(*g.value, 10);
	close(nt);
	/* SHR-04: the creator's handle is destroyed, the others remain. */
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(s.other);
	assert_int_equal(sync_signal(s.other_device, h.handle, 11), STATUS_SUCCESS);
	assert_int_equal(*g.value, 11);
	vidmm_d3dkmt_enter(NULL);
	sync_stop(&s);
}

/* A wait in one process, the signal in another. */
static void shr_18_mfn_16_a_signal_ends_a_wait_of_another_process(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 0);
	int nt = share(f.handle);
	vidmm_d3dkmt_enter(s.other);
	v.process = s.other;
	v.device = s.other_device;
	sync_waiter_start(&s, &v, open_in(s.other_device, nt, 0).handle, 3);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(sync_signal(s.device, f.handle, 2), STATUS_SUCCESS);
	vidmm_settle(s.w.client.host);
	assert_int_equal(v.done, 0);
	assert_int_equal(sync_signal(s.device, f.handle, 3), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	close(nt);
	sync_stop(&s);
}

static void shr_12_shr_13_shr_14_shr_15_shr_17_each_open_call_checks_the_nt_handle(void **state)
{
	struct sync_world s;
	struct sync_fence g;
	D3DKMT_HANDLE plain;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 4);
	int nt = share(f.handle), event = sync_event();
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS); /* SHR-12 */
	g = open_in(s.device, nt, 0);
	assert_int_equal(*g.value, 4);
	assert_int_equal(open_plain(nt, &plain), STATUS_SUCCESS); /* SHR-17 */
	assert_int_equal(sync_signal(s.device, g.handle, 6), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.device, plain, 6), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(plain), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(g.handle), STATUS_SUCCESS);
	const int bad[] = {0, -1, 9999, event};
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(open_plain(bad[i], &plain), STATUS_INVALID_HANDLE);
		sync_found(&s, "SHR-13");
		assert_int_equal(try_open(s.device, bad[i], 0, &g), STATUS_INVALID_HANDLE);
		sync_found(&s, "SHR-13");
	}
	assert_int_equal(try_open(0, nt, 0, &g), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-07");
	close(nt);
	assert_int_equal(try_open(s.device, nt, 0, &g), STATUS_INVALID_HANDLE);
	sync_found(&s, "SHR-13");
	close(event);
	sync_stop(&s);
}

/* SHR-20: a descriptor sent through a socket. The object is the same, the number may differ. */
static void shr_20_an_nt_handle_can_be_sent_to_another_process(void **state)
{
	struct sync_world s;
	char byte = 1, room[CMSG_SPACE(sizeof(int))];
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = sizeof(room)};
	int sockets[2], got;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 8);
	int nt = share(f.handle);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets), 0);
	memset(room, 0, sizeof(room));
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &nt, sizeof(nt));
	assert_int_equal(sendmsg(sockets[0], &message, 0), 1);
	close(nt);
	assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS); /* the message keeps it */
	assert_int_equal(recvmsg(sockets[1], &message, 0), 1);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
	assert_int_equal(*open_in(s.device, got, 0).value, 8);
	close(got);
	close(sockets[0]);
	close(sockets[1]);
	sync_stop(&s);
}

static void shr_17a_shr_19_shr_21_shr_22_shr_23_shr_24_objects_are_opened_by_name(void **state)
{
	struct sync_world s;
	int one, two, again, bad;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 1), g = sync_fence(&s, SHARED, 2);
	assert_int_equal(share_as(f.handle, "\\Fences\\A", &one), STATUS_SUCCESS);
	assert_int_equal(share_as(g.handle, "\\fences\\a", &bad), STATUS_OBJECT_NAME_COLLISION);
	sync_found(&s, "SHR-24");
	assert_int_equal(share_as(0, "\\Fences\\A", &bad), STATUS_INVALID_PARAMETER); /* SHR-37 */
	sync_found(&s, "SHR-06");
	assert_int_equal(share_as(f.handle, "\\Fences\\B", &two), STATUS_SUCCESS);  /* SHR-17a */
	assert_int_equal(by_name("\\FENCES\\a", 0x1F0003, &again), STATUS_SUCCESS); /* SHR-22 */
	assert_int_equal(*open_in(s.device, again, 0).value, 1);
	assert_int_equal(by_name("\\Fences\\A", 0, &bad), STATUS_ACCESS_DENIED);
	sync_found(&s, "SHR-21");
	for (uint32_t access = 0; access < 2; access++) {
		assert_int_equal(by_name("\\Fences\\C", access, &bad),
				 STATUS_OBJECT_NAME_NOT_FOUND);
		sync_found(&s, "SHR-21");
	}
	/*
	 * SHR-23: closing the last NT handle with a name ends the name, whatever local handles
	 * exist.
	 */
	close(one);
	int more;
	assert_int_equal(by_name("\\Fences\\A", 1, &more), STATUS_SUCCESS);
	close(more);
	close(again);
	assert_int_equal(by_name("\\Fences\\A", 1, &bad), STATUS_OBJECT_NAME_NOT_FOUND);
	sync_found(&s, "SHR-21");
	/* SHR-19: an opened handle can be shared again, also one that was opened with flags 0. */
	struct sync_fence h = open_in(s.device, two, 0);
	assert_int_equal(share_as(h.handle, "\\Fences\\A", &one), STATUS_SUCCESS);
	assert_int_equal(by_name("\\Fences\\B", 1, &again), STATUS_SUCCESS);
	close(one);
	close(two);
	close(again);
	sync_stop(&s);
}

static void shr_21_shr_26_invalid_names_are_refused(void **state)
{
	uint16_t text[2] = {'x', 'y'};
	UNICODE_STRING string = {.Buffer = (PWSTR)(void *)text};
	OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes), .ObjectName = &string};
	D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME none = {.dwDesiredAccess = 1};
	struct sync_world s;
	HANDLE handle;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 1);
	for (USHORT length = 0; length < 4; length++) {
		string.Length = length;
		if (length == 2)
			continue;
		assert_int_equal(D3DKMTShareObjects(1, &f.handle, &attributes, 1, &handle),
				 STATUS_OBJECT_NAME_INVALID);
		sync_found(&s, "SHR-26");
	}
	string.Length = 4;
	attributes.Length = 8;
	assert_int_equal(D3DKMTShareObjects(1, &f.handle, &attributes, 1, &handle),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SHR-26");
	attributes = (OBJECT_ATTRIBUTES){.Length = sizeof(attributes),
					 .RootDirectory = (HANDLE)(uintptr_t)4,
					 .ObjectName = &string};
	assert_int_equal(D3DKMTShareObjects(1, &f.handle, &attributes, 1, &handle),
			 STATUS_NOT_SUPPORTED);
	assert_int_equal(D3DKMTOpenSyncObjectNtHandleFromName(&none), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	sync_stop(&s);
}

/* SFL-34: only the flags that concern an opening count. */
static void sfl_17a_sfl_22_sfl_34_flags_apply_to_each_opening(void **state)
{
	struct sync_world s;
	struct sync_fence g;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED | 0x10, 1); /* the creator cannot signal */
	int nt = share(f.handle);
	assert_int_equal(sync_signal(s.device, f.handle, 2), STATUS_ACCESS_DENIED);
	sync_found(&s, "SFL-15");
	for (uint32_t bit = 0; bit < 32; bit++) {
		bool counts = bit < 8;

		assert_int_equal(try_open(s.device, nt, 1u << bit, &g),
				 counts ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
		if (!counts)
			sync_found(&s, bit == 8 ? "SFL-34" : bit < 11 ? "SFL-32" : "SFL-31");
	}
	assert_int_equal(try_open(s.device, nt, 0x30, &g), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SFL-17");
	vidmm_d3dkmt_enter(s.other);
	g = open_in(s.other_device, nt, 0x20); /* it signals and cannot wait */
	assert_int_equal(sync_signal(s.other_device, g.handle, 2), STATUS_SUCCESS);
	assert_int_equal(sync_wait(s.other_device, g.handle, 2), STATUS_ACCESS_DENIED);
	sync_found(&s, "SFL-16");
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(*f.value, 2);
	close(nt);
	sync_stop(&s);
}

/*
 * SFL-08: an object created private stays private; SFL-09: an opening with flags 0 can be shared
 * again, and 0 stays 0.
 */
static void sfl_08_sfl_09_sharing_is_fixed_at_creation(void **state)
{
	struct sync_world s;
	int nt, again;

	sync_start(&s, state, sync_3_0);
	struct sync_fence secret = sync_fence(&s, 0, 1), f = sync_fence(&s, SHARED, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(share_as(secret.handle, i ? "\\secret" : NULL, &nt),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "SHR-06");
		assert_int_equal(by_name("\\secret", 1, &again), STATUS_OBJECT_NAME_NOT_FOUND);
		sync_found(&s, "SHR-21");
	}
	nt = share(f.handle);
	D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 args = {.hNtHandle = (HANDLE)(intptr_t)nt,
						   .hDevice = s.device};
	assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle2(&args), STATUS_SUCCESS);
	assert_int_equal(args.Flags.Value, 0);
	again = share(args.hSyncObject);
	assert_int_equal(*open_in(s.device, again, 3).value, 2); /* SFL-34: a flag of the object */
	close(nt);
	close(again);
	sync_stop(&s);
}

/*
 * SFL-06, SFL-07: no global handle is returned; SFL-27: destroying any handle frees the waiters of
 * all.
 */
static void sfl_06_sfl_27_destroying_one_handle_frees_all_waiters(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {0};
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	args.Info.SharedHandle = 0xdead;
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, SHARED, &args), 0);
	assert_int_equal(args.Info.SharedHandle, 0);
	int nt = share(args.hSyncObject);
	vidmm_d3dkmt_enter(s.other);
	D3DKMT_HANDLE theirs = open_in(s.other_device, nt, 0).handle;
	vidmm_d3dkmt_enter(NULL);
	v.process = s.other;
	v.device = s.other_device;
	sync_waiter_start(&s, &v, theirs, 1);
	assert_int_equal(v.done, 0);
	assert_int_equal(sync_destroy(args.hSyncObject), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_CANCELLED);
	close(nt);
	sync_stop(&s);
}

/* SYN-15, SHR-33: a process ends with open handles; the other one continues. */
static void syn_15_shr_33_process_end_leaves_other_openings_intact(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 1);
	int nt = share(f.handle);
	D3DKMT_HANDLE plain;
	assert_int_equal(open_plain(nt, &plain), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(s.other);
	struct sync_fence g = open_in(s.other_device, nt, 0);
	vidmm_process_close(s.process);
	assert_int_equal(vidmm_process_open(s.w.client.host, "three", &s.process), 0);
	vidmm_d3dkmt_attach(s.process);
	assert_int_equal(sync_signal(s.other_device, g.handle, 5), STATUS_SUCCESS);
	assert_int_equal(*g.value, 5);
	vidmm_d3dkmt_enter(NULL);
	sync_stop(&s);
	close(nt); /* the descriptor outlives its host */
}

/* The line of /proc about the mapping that contains an address; "": there is none. */
static void mapping_of(const void *address, char rights[8])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long from, to, at = (uintptr_t)address;
	char line[512];

	rights[0] = 0;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		char found[8];

		if (sscanf(line, "%llx-%llx %7s", &from, &to, found) == 3 && at >= from && at < to)
			memcpy(rights, found, sizeof(found));
	}
	fclose(maps);
}

/*
 * An address is readable as long as its handle exists; later the mapping is removed or is another
 * one.
 */
static void shr_32_an_address_ends_with_its_handle(void **state)
{
	char rights[8];
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 7);
	int nt = share(f.handle);
	vidmm_d3dkmt_enter(s.other);
	struct sync_fence g = open_in(s.other_device, nt, 0);
	mapping_of((const void *)g.value, rights);
	assert_string_equal(rights, "r--s"); /* MFN-03 */
	assert_int_equal(sync_destroy(g.handle), STATUS_SUCCESS);
	mapping_of((const void *)g.value, rights);
	/* An allocator may have mapped its memory ("rw-p") there meanwhile. */
	assert_string_not_equal(rights, "r--s");
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(*f.value, 7);
	close(nt);
	sync_stop(&s);
}

static void at_3_2(struct scripted_miniport *m)
{
	sync_3_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_2);
}

/*
 * SFL-28: with UnwaitCpuWaitersOnlyOnDestroy waiters keep waiting; without it they would be freed
 * (SFL-27, SYN-15).
 */
static void shr_33_sfl_28_waiters_stay_when_the_creator_ends(void **state)
{
	struct sync_waiter v = {0};
	struct sync_world s;

	sync_start(&s, state, at_3_2);
	struct sync_fence f = sync_fence(&s, SHARED | 0x400, 1);
	int nt = share(f.handle);
	vidmm_d3dkmt_enter(s.other);
	struct sync_fence g = open_in(s.other_device, nt, 0);
	v.process = s.other;
	v.device = s.other_device;
	sync_waiter_start(&s, &v, g.handle, 2);
	close(nt);
	vidmm_process_close(s.process);
	assert_int_equal(vidmm_process_open(s.w.client.host, "three", &s.process), 0);
	vidmm_d3dkmt_attach(s.process);
	vidmm_settle(s.w.client.host);
	assert_int_equal(v.done, 0);
	assert_int_equal(*g.value, 1);
	assert_int_equal(sync_signal(s.other_device, g.handle, 2), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	sync_stop(&s);
}

/* A second adapter of the same host, with a device of the second process. */
struct second {
	struct scripted_miniport *m;
	struct vidmm_adapter *adapter;
	D3DKMT_HANDLE device;
};

static void start_second(struct sync_world *s, struct second *second)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	D3DKMT_ADAPTERINFO info[2];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};

	second->m = scripted_create();
	sync_3_0(second->m);
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .initialization_data =
							      scripted_table(second->m),
						      .bar_sizes = bars,
						      .bar_count = 1,
						      .tdr = &client_no_tdr};
	assert_int_equal(vidmm_adapter_start(s->w.client.host, &options, &second->adapter), 0);
	vidmm_d3dkmt_enter(s->other);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 2);
	D3DKMT_CREATEDEVICE device = {.hAdapter = info[1].hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	second->device = device.hDevice;
	vidmm_d3dkmt_enter(NULL);
}

static void sfl_10_sfl_11_sfl_12_a_cross_adapter_fence_works_on_two_adapters(void **state)
{
	struct sync_waiter v = {0};
	struct second second;
	struct sync_world s;
	struct sync_fence g;

	sync_start(&s, state, sync_3_0);
	start_second(&s, &second);
	struct sync_fence one = sync_fence(&s, SHARED, 1), both = sync_fence(&s, SHARED | 4, 2);
	int nt_one = share(one.handle), nt_both = share(both.handle);
	vidmm_d3dkmt_enter(s.other);
	assert_int_equal(try_open(second.device, nt_one, 0, &g), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SFL-12");
	g = open_in(s.other_device, nt_one, 0); /* the other process, the same adapter */
	g = open_in(second.device, nt_both, 0);
	assert_int_equal(*g.value, 2);
	v.process = s.other;
	v.device = second.device;
	sync_waiter_start(&s, &v, g.handle, 3);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(sync_signal(s.device, both.handle, 3), STATUS_SUCCESS);
	assert_int_equal(sync_waiter_join(&v), STATUS_SUCCESS);
	/*
	 * The second adapter is removed while the first has the fence; a wait through a device of
	 * the second returns.
	 */
	sync_waiter_start(&s, &v, g.handle, 10);
	assert_int_equal(v.done, 0);
	vidmm_adapter_stop(second.adapter);
	assert_int_equal(sync_waiter_join(&v), STATUS_DEVICE_REMOVED);
	assert_int_equal(sync_signal(s.device, both.handle, 10), STATUS_SUCCESS);
	assert_int_equal(*both.value, 10);
	close(nt_one);
	close(nt_both);
	sync_stop(&s);
	scripted_destroy(second.m); /* the adapter created last gets both unload calls */
}

static void APIENTRY never_called(D3DKMT_TRIMNOTIFICATION *args)
{
	(void)args;
	fail_msg("a trim notification without a budget");
}

/* Calls that name only an object of the device. They fail again once the device is destroyed. */
static void pnp_03_objects_of_a_stopped_device_answer_that_it_was_removed(void **state)
{
	struct sync_world s;
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 of_process = {.Info.Semaphore.MaxCount = 1};
	int nt;

	sync_start(&s, state, sync_3_0);
	struct sync_fence f = sync_fence(&s, SHARED, 7), own = sync_fence(&s, 0, 0);
	assert_int_equal(sync_try_create(&s, D3DDDI_SEMAPHORE, 0, &of_process), STATUS_SUCCESS);
	assert_int_equal(D3DKMTEnumAdapters2(&all), STATUS_SUCCESS);
	D3DKMT_REGISTERTRIMNOTIFICATION trim = {
		.AdapterLuid = info.AdapterLuid, .hDevice = s.device, .Callback = never_called};
	assert_int_equal(D3DKMTRegisterTrimNotification(&trim), STATUS_SUCCESS);
	D3DKMT_UNREGISTERTRIMNOTIFICATION end_trim = {.Handle = trim.Handle};
	const D3DKMT_DESTROYDEVICE end = {.hDevice = s.device};
	vidmm_adapter_stop(s.w.client.adapter);
	s.w.client.adapter = NULL;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(share_as(f.handle, NULL, &nt), STATUS_DEVICE_REMOVED);
		assert_int_equal(sync_destroy(f.handle), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(own.handle), STATUS_SUCCESS);
		assert_int_equal(D3DKMTUnregisterTrimNotification(&end_trim), STATUS_SUCCESS);
	}
	assert_int_equal(s.w.client.findings, 0);
	/* An object of no device outlives the adapter. */
	assert_int_equal(sync_destroy(of_process.hSyncObject), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(of_process.hSyncObject), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-12");
	assert_int_equal(D3DKMTDestroyDevice(&end), STATUS_SUCCESS);
	assert_int_equal(share_as(f.handle, NULL, &nt), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SHR-06");
	assert_int_equal(sync_destroy(f.handle), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-12");
	assert_int_equal(D3DKMTUnregisterTrimNotification(&end_trim), STATUS_INVALID_PARAMETER);
	sync_found(&s, "RES-09");
	vidmm_process_close(s.process);
	vidmm_process_close(s.other);
	vidmm_process_close(s.w.device.process);
	client_stop(&s.w.client);
	scripted_destroy(s.w.m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(hnd_06_shr_08_shr_09_shr_11_shr_35_syn_09a_an_nt_handle_is_a_descriptor),
		ON_BOTH(shr_06_shr_07_shr_37_invalid_sharing_is_refused),
		ON_BOTH(shr_16_shr_18_shr_32_openings_share_one_value),
		ON_BOTH(shr_18_mfn_16_a_signal_ends_a_wait_of_another_process),
		ON_BOTH(shr_12_shr_13_shr_14_shr_15_shr_17_each_open_call_checks_the_nt_handle),
		ON_BOTH(shr_20_an_nt_handle_can_be_sent_to_another_process),
		ON_BOTH(shr_17a_shr_19_shr_21_shr_22_shr_23_shr_24_objects_are_opened_by_name),
		ON_BOTH(shr_21_shr_26_invalid_names_are_refused),
		ON_BOTH(sfl_17a_sfl_22_sfl_34_flags_apply_to_each_opening),
		ON_BOTH(sfl_10_sfl_11_sfl_12_a_cross_adapter_fence_works_on_two_adapters),
		ON_BOTH(sfl_08_sfl_09_sharing_is_fixed_at_creation),
		ON_BOTH(sfl_06_sfl_27_destroying_one_handle_frees_all_waiters),
		ON_BOTH(shr_32_an_address_ends_with_its_handle),
		ON_BOTH(shr_33_sfl_28_waiters_stay_when_the_creator_ends),
		ON_BOTH(syn_15_shr_33_process_end_leaves_other_openings_intact),
		ON_BOTH(pnp_03_objects_of_a_stopped_device_answer_that_it_was_removed),
	};

	return cmocka_run_group_tests_name("sync share", tests, NULL, NULL);
}
