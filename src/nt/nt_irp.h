/* SPDX-License-Identifier: MIT */
/* Device objects and I/O request packets: what nt_io_device.c, nt_irp.c, nt_irp_build.c share. */
#ifndef VMM_NT_NT_IRP_H
#define VMM_NT_NT_IRP_H

#include "nt/nt_internal.h"

#define IRP_TAG 0x20707249u /* "Irp " */

enum nt_irp_kind {
	NT_IRP_ALLOCATED,    /* IoAllocateIrp: the driver frees it */
	NT_IRP_ASYNCHRONOUS, /* the same */
	NT_IRP_THREADED,     /* its completion frees it */
};

struct nt_irp {
	struct vmm_list link; /* guarded by objects */
	enum nt_irp_kind kind;
	bool sent VMM_GUARDED_BY(nt_objects_class); /* a driver has it */
	/* size of UserBuffer, to which the system buffer is copied at the end */
	ULONG output_bytes;
	uint32_t location_count;
	IRP irp;
	/* One more than StackCount, so that the current location of a new packet exists. */
	IO_STACK_LOCATION locations[];
};

enum nt_device_kind { NT_DEVICE_NONE, NT_DEVICE_PHYSICAL, NT_DEVICE_OWN, NT_DEVICE_VOLUME };

/*
 * Finds a device; the pointer is compared before it is used. *object, NULL for the volume, has one
 * more reference, which nt_device_put ends.
 */
enum nt_device_kind nt_device_get(struct vmm_nt *nt, const DEVICE_OBJECT *device,
				  struct nt_object **object);
void nt_device_put(struct vmm_nt *nt, struct nt_object *object);
/* Makes a packet and adds it to the world; NULL: no memory or no such stack size. */
struct nt_irp *nt_irp_create(struct vmm_nt *nt, enum nt_irp_kind kind, int stack_size);
/* Frees a threaded packet with its buffer and MDL. */
void nt_irp_discard(struct vmm_nt *nt, struct nt_irp *self);

#endif
