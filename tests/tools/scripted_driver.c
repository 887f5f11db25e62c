/* SPDX-License-Identifier: MIT */
/*
 * The scripted miniport as a driver file, with the fault that the registry value Break selects. It
 * uses what any miniport may use: the published headers and the kernel services of its loader.
 *
 * The values StickAt (enum vidmm_ddi, or 128 for DriverEntry), StickType (one type of
 * DxgkDdiQueryAdapterInfo; 0: each) and StickHow have it loop, wait or crash in one routine.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scripted_miniport.h"

DRIVER_INITIALIZE DriverEntry __attribute__((visibility("default")));

enum {
	NOTHING,
	SEGMENTS,      /* every fault of segments in one answer */
	TABLE,         /* entries are missing */
	START_DEVICE,  /* fails */
	NO_INITIALIZE, /* DriverEntry forgets DxgkInitialize */
	BANKS,         /* correct, with flags that are ignored */
	WAITS,         /* StartDevice waits for an event that is never set */
	CAPS,          /* capabilities that contradict each other or the table */
	LEVEL,         /* starts, but AddDevice returns at another IRQL */
	OLD,           /* 1.0, one node */
	COUNT,         /* the two passes report different counts */
	DISPLAY,       /* sources and children: reported, not refused */
	CRASH,         /* StartDevice writes to an unmapped address */
	NEW            /* correct: 3.0, with all kinds of synchronization objects, and budgets */
};

static PDXGKDDI_ADD_DEVICE add_device;
static PDXGKDDI_START_DEVICE start_device;

struct number_value {
	ULONG title_index, type, length;
	UCHAR data[8];
};

static ULONG read_number(PUNICODE_STRING path, PCWSTR of)
{
	OBJECT_ATTRIBUTES attributes;
	struct number_value value = {0};
	UNICODE_STRING name;
	HANDLE key;
	ULONG length, number = NOTHING;

	RtlInitUnicodeString(&name, of);
	InitializeObjectAttributes(&attributes, path, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
				   NULL, NULL);
	if (!NT_SUCCESS(ZwOpenKey(&key, KEY_READ, &attributes)))
		return NOTHING;
	if (NT_SUCCESS(ZwQueryValueKey(key, &name, KeyValuePartialInformation, &value,
				       sizeof(value), &length)))
		memcpy(&number, value.data, sizeof(number));
	ZwClose(key);
	return number;
}

/* ---- a routine that does not return ---- */

enum { LOOP = 1, WAIT, POLL, FAULT, DESCEND, SPOIL };
#define IN_DRIVER_ENTRY 128u

static struct {
	ULONG at, type, how;
} stick;

static void loop_for_ever(void)
{
	static volatile int going = 1; /* volatile: the compiler must not know the value */

	while (going)
		;
}

static void wait_for_ever(void)
{
	KEVENT never;

	KeInitializeEvent(&never, NotificationEvent, FALSE);
	(void)!KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
}

static void poll_for_ever(void)
{
	static volatile int going = 1;
	LARGE_INTEGER pause = {.QuadPart = -10000000}; /* 1 s */

	while (going)
		KeDelayExecutionThread(KernelMode, FALSE, &pause);
}

static void write_nowhere(void)
{
	static int *volatile nowhere;

	*nowhere = 1;
}

/* Uses up the stack, in steps that are shorter than the guard page behind it. */
static int descend(int level)
{
	volatile char block[256];

	block[0] = (char)level;
	return level < 0 ? 0 : descend(level + 1) + block[0];
}

/* What a wrong write could do to the outcome that the process of `vidmm conform` reports. */
static void write_to_pipes(void)
{
	static char bytes[4096];
	struct stat file;

	memset(bytes, 0xFF, sizeof(bytes));
	for (int fd = 3; fd < 64; fd++)
		if (fstat(fd, &file) == 0 && S_ISFIFO(file.st_mode))
			(void)!write(fd, bytes, sizeof(bytes));
}

static void get_stuck(void)
{
	switch (stick.how) {
	case LOOP:
		loop_for_ever();
		break;
	case WAIT:
		wait_for_ever();
		break;
	case POLL:
		poll_for_ever();
		break;
	case FAULT:
		write_nowhere();
		break;
	case DESCEND:
		(void)descend(0);
		break;
	case SPOIL:
		write_to_pipes();
		break;
	default:
		break;
	}
}

static void on_call(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context, (void)m;
	if (call->ddi == stick.at && (!stick.type || (ULONG)call->in.query.Type == stick.type))
		get_stuck();
}

static void break_segments(struct scripted_settings *s)
{
	s->segment_count = 4;
	s->segment[0].bar_offset = 512;                                     /* SEG-08 */
	s->segment[1].size_bytes = s->segment[1].commit_limit_bytes = 4097; /* SEG-03 */
	s->segment[2] = s->segment[1];
	s->segment[2].base = (uint64_t)2 << 30;
	s->segment[2].size_bytes = 1 << 20;
	s->segment[2].commit_limit_bytes = 2 << 20; /* SEG-04 */
	s->segment[3] = s->segment[2];
	s->segment[3].flags = 0x2; /* SEG-06 */
	s->paging_segment = 1;     /* SEG-21 */
	s->paging_bytes = 0;       /* SEG-21 */
}

static void use_banks(struct scripted_settings *s)
{
	static SIZE_T ends[] = {4 << 20, 6 << 20};

	s->segment[0].flags |= 0x8 | 0x10; /* CacheCoherent means nothing on memory */
	s->segment[0].bank_count = 3;
	s->segment[0].bank_table = ends;
	s->segment[1].flags |= 0x4; /* CpuVisible means nothing on an aperture */
}

static NTSTATUS APIENTRY waiting_start(IN_CONST_PVOID context, PDXGK_START_INFO info,
				       PDXGKRNL_INTERFACE services, PULONG sources, PULONG children)
{
	KEVENT never;

	KeInitializeEvent(&never, NotificationEvent, FALSE);
	if (KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL) != STATUS_SUCCESS)
		return STATUS_UNSUCCESSFUL;
	return start_device(context, info, services, sources, children);
}

static NTSTATUS APIENTRY crashing_start(IN_CONST_PVOID context, PDXGK_START_INFO info,
					PDXGKRNL_INTERFACE services, PULONG sources,
					PULONG children)
{
	static int *volatile nowhere; /* volatile: the compiler must not know the value */

	*nowhere = 1;
	return start_device(context, info, services, sources, children);
}

static NTSTATUS APIENTRY raising_add_device(const PDEVICE_OBJECT device, PVOID *context)
{
	KfRaiseIrql(APC_LEVEL);
	return add_device(device, context);
}

static void break_it(struct scripted_miniport *m, ULONG how)
{
	struct scripted_settings *s = &m->settings;

	add_device = s->table.DxgkDdiAddDevice;
	start_device = s->table.DxgkDdiStartDevice;
	switch (how) {
	case SEGMENTS:
		break_segments(s);
		break;
	case TABLE:
		s->table.DxgkDdiPreemptCommand = NULL;
		s->table.DxgkDdiBuildPagingBuffer = NULL;
		break;
	case START_DEVICE:
		scripted_fail(m, VIDMM_DDI_START_DEVICE, STATUS_DEVICE_CONFIGURATION_ERROR, 1);
		break;
	case BANKS:
		use_banks(s);
		break;
	case WAITS:
		s->table.DxgkDdiStartDevice = waiting_start;
		break;
	case CAPS:
		s->caps.SchedulingCaps.Value = 0x4 | 0x8;
		s->caps.NumberOfSwizzlingRanges = 1;
		s->table.DxgkDdiReleaseSwizzlingRange = NULL;
		break;
	case LEVEL:
		s->table.DxgkDdiAddDevice = raising_add_device;
		break;
	case OLD:
		s->caps.SchedulingCaps.Value = 0;
		scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_VISTA);
		break;
	case COUNT:
		s->second_segment_count = 1;
		break;
	case CRASH:
		s->table.DxgkDdiStartDevice = crashing_start;
		break;
	case NEW:
		scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
		s->caps.WDDMVersion = DXGKDDI_WDDMv2;
		s->segment[0].flags |= (DXGK_SEGMENTFLAGS){.LocalBudgetGroup = 1}.Value;
		break;
	case DISPLAY:
		s->source_count = s->child_count = 1;
		break;
	default:
		break;
	}
}

/* One adapter for the life of the program; its memory is freed with the program. */
NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
	static struct scripted_miniport *m;
	ULONG how = read_number(RegistryPath, L"Break");

	stick.at = read_number(RegistryPath, L"StickAt");
	stick.type = read_number(RegistryPath, L"StickType");
	stick.how = read_number(RegistryPath, L"StickHow");
	if (stick.at == IN_DRIVER_ENTRY)
		get_stuck();
	if (how == NO_INITIALIZE)
		return STATUS_SUCCESS;
	m = scripted_create();
	break_it(m, how);
	m->hook = on_call;
	scripted_arm(m);
	return scripted_driver_entry(DriverObject, RegistryPath);
}
