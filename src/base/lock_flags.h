/* SPDX-License-Identifier: MIT */
/* The bits of D3DDDICB_LOCKFLAGS.Value, for code that includes no DDI header. */
#ifndef VMM_BASE_LOCK_FLAGS_H
#define VMM_BASE_LOCK_FLAGS_H

/* LOCK-01 */
#define VMM_LOCK_READ_ONLY             0x001u
#define VMM_LOCK_WRITE_ONLY            0x002u
#define VMM_LOCK_DONOT_WAIT            0x004u
#define VMM_LOCK_IGNORE_SYNC           0x008u
#define VMM_LOCK_ENTIRE                0x010u
#define VMM_LOCK_DONOT_EVICT           0x020u
#define VMM_LOCK_ACQUIRE_APERTURE      0x040u
#define VMM_LOCK_DISCARD               0x080u
#define VMM_LOCK_NO_EXISTING_REFERENCE 0x100u
#define VMM_LOCK_USE_ALTERNATE_VA      0x200u
#define VMM_LOCK_IGNORE_READ_SYNC      0x400u
#define VMM_LOCK_RESERVED              0xFFFFF800u

/* A list of pages may have so many entries; far more than drivers and clients use. */
#define VMM_LOCK_PAGES_MAX (1u << 20)

#endif
