/* SPDX-License-Identifier: MIT */
/* Members of the structures that follow have an alignment of 8 bytes at most, until poppack.h. */
#pragma pack(push, 8)
