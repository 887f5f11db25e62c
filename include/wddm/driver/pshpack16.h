/* SPDX-License-Identifier: MIT */
/* Members of the structures that follow have an alignment of 16 bytes at most, until poppack.h. */
#pragma pack(push, 16)
