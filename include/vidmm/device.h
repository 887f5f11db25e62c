/* SPDX-License-Identifier: MIT */
/*
 * A device model: the hardware that a miniport drives, as functions of the embedder or of a shared
 * object. The library shows it to the miniport as a PCI device: configuration space, BARs, ports
 * and interrupts (docs/devices.md). Without a model a device is BARs of plain memory.
 *
 * Give it to vidmm_adapter_start as device_model of vidmm_adapter_options. A shared object exports
 *	const struct vidmm_device_model *vidmm_device_model(void);
 * which returns a structure that stays valid while the object is loaded.
 *
 * Threads. Functions of one device are never called at the same time: the library holds the
 * device's lock (rank 75 of docs/locking.md). The functions for registers, ports and configuration
 * space run on the thread of the miniport that made the access, at its IRQL, which may be that of
 * its interrupt routine. timer runs on a thread of the library, the others on the thread that
 * starts, stops or changes the power of the adapter. All must return soon: they must not block, and
 * must not call vidmm, but for the services that `create` got. Services may be called from every
 * function of the model and from threads of the embedder (on a sim host: those that may call
 * vidmm), between the return of create and the call of destroy, unless their comment says
 * otherwise. A function that crashes takes the process with it.
 */
#ifndef VIDMM_DEVICE_H
#define VIDMM_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a model that was compiled for an earlier one can no longer be used. */
#define VIDMM_DEVICE_VERSION      1u
#define VIDMM_DEVICE_BARS         6u
#define VIDMM_DEVICE_TIMERS       16u
#define VIDMM_DEVICE_MESSAGES_MAX 32u
/* The longest name, without its terminator. */
#define VIDMM_DEVICE_NAME_MAX     31u
/* No time: schedule cancels the timer. */
#define VIDMM_DEVICE_NEVER        UINT64_MAX

enum vidmm_device_bar_kind {
	VIDMM_BAR_NONE = 0,
	/*
	 * Registers: each access of the miniport calls bar_read or bar_write. The miniport must use
	 * READ_REGISTER_* and WRITE_REGISTER_* (ntddk_register.h).
	 */
	VIDMM_BAR_REGISTERS = 1,
	/* Memory: the miniport reads and writes it without a call of the model. */
	VIDMM_BAR_MEMORY = 2,
	/* I/O ports: as registers, by READ_PORT_* and WRITE_PORT_*. */
	VIDMM_BAR_PORTS = 3
};

/* ---- flags of a BAR ---- */
/*
 * The BAR is 64 bits wide and takes the next register of the configuration space, too: bar[i + 1]
 * is VIDMM_BAR_NONE. Its address may be above 4 GiB. Not for ports.
 */
#define VIDMM_BAR_64BIT        0x1u
#define VIDMM_BAR_PREFETCHABLE 0x2u /* the bit of the BAR's register; not for ports */

struct vidmm_device_bar {
	uint32_t kind; /* enum vidmm_device_bar_kind */
	uint32_t flags;
	/*
	 * A power of two: ports 4 to 256; registers and memory from 4096 on, below 2^40, and with a
	 * register of 32 bits up to 256 MiB. 0 for VIDMM_BAR_NONE.
	 */
	uint64_t size_bytes;
};

/*
 * What the library does for a device. handle is the first argument of each. All may be called at
 * any IRQL.
 */
struct vidmm_device_services {
	uint32_t struct_size;
	uint32_t version; /* VIDMM_DEVICE_VERSION */
	void *handle;
	/*
	 * Without messages (interrupt_messages 0) asserts the interrupt line:
	 * DxgkDdiInterruptRoutine is called until the model lowers it, on a thread of the library.
	 * `message` is 0. With messages sends one: the routine is called once with its number. A
	 * message that is sent again before its call is not called twice. In D1 to D3 ignored, with
	 * a finding. A message that the device does not have: a finding, ignored.
	 */
	void (*raise_interrupt)(void *handle, uint32_t message);
	void (*lower_interrupt)(void *handle, uint32_t message); /* of a message: does nothing */
	/*
	 * Reads or writes system memory, or memory BARs, by physical address, as
	 * MmGetPhysicalAddress, MDLs and TranslatedResourceList give them. If any byte is not such
	 * memory, nothing is transferred, a finding has the range, and the result is not
	 * 0: STATUS_INVALID_PARAMETER. Outside D0: STATUS_INVALID_DEVICE_STATE. 0 bytes: success.
	 * 2, 4 or 8 bytes at a multiple of their number are transferred in one step: a driver that
	 * reads such a word atomically sees all that was written before.
	 */
	int32_t (*dma_read)(void *handle, uint64_t physical, void *buffer, uint64_t length);
	int32_t (*dma_write)(void *handle, uint64_t physical, const void *buffer, uint64_t length);
	/* Returns the memory behind a memory BAR, NULL for other BARs; also inside create. */
	void *(*bar_memory)(void *handle, uint32_t bar);
	uint64_t (*now_ns)(void *handle); /* the host's clock; virtual on sim */
	/*
	 * The timer's function is called once, at when_ns or soon after; a time that has passed
	 * means now. Replaces the time of this timer, if it had one. VIDMM_DEVICE_NEVER: it is not
	 * called. A timer of VIDMM_DEVICE_TIMERS or more: a finding, ignored.
	 */
	void (*schedule)(void *handle, uint32_t timer, uint64_t when_ns);
	/*
	 * Reports a fact as a reason of the event stream, with the model's name. Up to 255 bytes.
	 */
	void (*log)(void *handle, const char *text);
	/*
	 * Reports a mistake of the driver as a finding with the model's name: a doorbell
	 * without a ring, a bad descriptor. Up to 255 bytes.
	 */
	void (*driver_error)(void *handle, const char *text);
};

/*
 * struct_size and version come first in every version. An adapter refuses a model that breaks a
 * condition with STATUS_INVALID_PARAMETER and a reason.
 */
struct vidmm_device_model {
	uint32_t struct_size; /* sizeof(struct vidmm_device_model) */
	uint32_t version;     /* VIDMM_DEVICE_VERSION */
	/* 1 to VIDMM_DEVICE_NAME_MAX of a-z, 0-9, - and _, the first a letter */
	const char *name;
	/* The ids of the configuration space. vendor_id: not 0 and not 0xFFFF. */
	uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
	uint32_t class_code; /* base class, subclass and interface: 0x030000 */
	uint8_t revision_id;
	/*
	 * The bytes of the configuration space: 256 or 4096. Those below 0x40 are the library's,
	 * but the capabilities pointer at 0x34; it writes ids, BARs, command and interrupt there.
	 * config_image: the initial content, config_bytes long; NULL: zero. Bytes below 0x40 other
	 * than 0x34 are not read. A capability list must end, and lie behind 0x40.
	 */
	uint32_t config_bytes;
	const uint8_t *config_image;
	struct vidmm_device_bar bar[VIDMM_DEVICE_BARS];
	/*
	 * 0: one interrupt line, level-triggered. 1 to VIDMM_DEVICE_MESSAGES_MAX: that many message
	 * interrupts (MSI, MSI-X), which the miniport gets as resources in the order of their
	 * numbers.
	 */
	uint32_t interrupt_messages;
	uint32_t reserved; /* 0 */

	/*
	 * Creates a device in the state after a reset, in D0. `services` stays valid until destroy.
	 * Only bar_memory and log may be called inside. Not 0: the adapter does not start with this
	 * status (an NTSTATUS below 0).
	 */
	int32_t (*create)(void *context, const struct vidmm_device_services *services,
			  void **device);
	void *context; /* for create */
	void (*destroy)(void *device);
	/*
	 * Power-on reset, at the stop of the adapter. The library has lowered the interrupts and
	 * cancelled the timers.
	 */
	void (*reset)(void *device);
	/*
	 * The device changes to D0 (1) ... D3 (4), values of DEVICE_POWER_STATE: from D0 after
	 * DxgkDdiSetPowerState, to D0 before it. NULL: keeps its registers.
	 */
	void (*set_power)(void *device, uint32_t state);
	/*
	 * Configuration space from 0x40 on: naturally aligned accesses of 1, 2 or 4 bytes. NULL:
	 * the bytes keep what was written, the first value is that of config_image.
	 */
	uint32_t (*config_read)(void *device, uint32_t offset, uint32_t width);
	void (*config_write)(void *device, uint32_t offset, uint32_t width, uint32_t value);
	/*
	 * Registers and ports: naturally aligned accesses of 1, 2, 4 or 8 bytes (ports up to 4)
	 * inside the BAR. Needed if the device has such a BAR.
	 */
	uint64_t (*bar_read)(void *device, uint32_t bar, uint64_t offset, uint32_t width);
	void (*bar_write)(void *device, uint32_t bar, uint64_t offset, uint32_t width,
			  uint64_t value);
	/* A time of `schedule` has come. NULL: the model schedules nothing. */
	void (*timer)(void *device, uint32_t timer);
};

/* What a shared object exports under the name "vidmm_device_model". */
typedef const struct vidmm_device_model *vidmm_device_model_fn(void);

#ifdef __cplusplus
}
#endif

#endif
