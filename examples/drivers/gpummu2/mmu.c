/* SPDX-License-Identifier: MIT */
/*
 * The MMU of the GPU: walks the page tables at each access. It has no TLB, so an entry counts as
 * soon as it is written, and FLUSH_TLB has nothing to do.
 */
#include "driver.h"

/* The memory manager's form of an entry becomes the GPU's. FALSE: the GPU has no such entry. */
BOOLEAN EncodePte(CONST ADAPTER *Adapter, CONST DXGK_PTE *Pte, UINT Level, ULONGLONG *Entry)
{
	ULONGLONG Address = Pte->PageAddress << PAGE_SHIFT;

	*Entry = 0;
	if (!Pte->Valid)
		return TRUE;
	if (Pte->LargePage || Pte->Zero || Address & ~PTE_ADDRESS)
		return FALSE;
	if (Pte->Segment == SEGMENT_VRAM && Address > Adapter->VramBytes - PAGE_SIZE)
		return FALSE;
	if (Pte->Segment != SEGMENT_VRAM && (Pte->Segment || Level))
		return FALSE; /* page tables are in video memory */
	*Entry = Address | PTE_VALID;
	if (!Pte->Segment)
		*Entry |= PTE_SYSTEM;
	if (Pte->ReadOnly)
		*Entry |= PTE_READ_ONLY;
	return TRUE;
}

/* The entry of level 0, or 0 at the level where the walk ended. */
static ULONGLONG Walk(CONST CONTEXT *Context, ULONGLONG Address, UINT *Level)
{
	CONST ADAPTER *Adapter = Context->Adapter;
	ULONGLONG Table = Context->Root, Entry;

	for (*Level = TABLE_LEVELS - 1;; --*Level) {
		ULONGLONG Index = Address >> (PAGE_SHIFT + *Level * TABLE_BITS);

		if (!Context->HasRoot || Index >> ((TABLE_LEVELS - *Level) * TABLE_BITS))
			return 0;
		Entry = *(volatile ULONGLONG *)(Adapter->Vram + Table +
						Index % TABLE_ENTRIES * sizeof(Entry));
		if (!(Entry & PTE_VALID))
			return 0;
		if (!*Level)
			return Entry;
		Table = Entry & PTE_ADDRESS;
	}
}

PUCHAR Translate(CONST CONTEXT *Context, ULONGLONG Address, ULONGLONG *Bytes, BOOLEAN IsWrite,
		 FAULT *Fault)
{
	UINT Level;
	ULONGLONG Entry = Walk(Context, Address, &Level);
	PHYSICAL_ADDRESS Physical;
	PUCHAR Page = NULL;

	Physical.QuadPart = (LONGLONG)(Entry & PTE_ADDRESS);
	if (Entry && !(IsWrite && (Entry & PTE_READ_ONLY)))
		/* A real GPU would put the address of system memory on the bus. */
		Page = Entry & PTE_SYSTEM ? MmGetVirtualForPhysical(Physical)
					  : Context->Adapter->Vram + Physical.QuadPart;
	if (!Page) {
		Fault->Address = Address;
		Fault->Level = Level;
		Fault->IsWrite = IsWrite;
		Fault->IsInstruction = FALSE;
		return NULL;
	}
	*Bytes = min(*Bytes, (ULONGLONG)PAGE_SIZE - BYTE_OFFSET(Address));
	return Page + BYTE_OFFSET(Address);
}
