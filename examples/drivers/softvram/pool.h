/* SPDX-License-Identifier: MIT */
/*
 * new and delete over nonpaged pool. There are no exceptions: new returns NULL, which noexcept
 * tells the compiler. The memory is zero.
 */
#pragma once

extern "C" {
#include <ntddk.h>
}

const ULONG PoolTag = 0x4D525653; /* SVRM */

void *operator new(size_t Bytes) noexcept;
void *operator new[](size_t Bytes) noexcept;
void operator delete(void *Memory) noexcept;
void operator delete(void *Memory, size_t Bytes) noexcept;
void operator delete[](void *Memory) noexcept;
void operator delete[](void *Memory, size_t Bytes) noexcept;
