/* SPDX-License-Identifier: MIT */
/* Members of the structures that follow have an alignment of 1 byte at most, until poppack.h. */
#pragma pack(push, 1)
