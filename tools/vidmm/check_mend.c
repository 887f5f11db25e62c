/* SPDX-License-Identifier: MIT */
/* What to change so that a rule is kept, for the rules whose text does not say it. */
#include <stddef.h>
#include <string.h>

#include "check.h"

static const struct mend {
	const char *rule, *mend, *severity;
} mends[] = {
	{"Q-491",
	 "write the commands of the operation at pDmaBuffer and advance pDmaBuffer behind them; if "
	 "they do not fit, return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER and set MultipassOffset",
	 "error"},
	{"Q-492",
	 "write the DMA commands at pDmaBuffer and advance pDmaBuffer behind them before "
	 "DxgkDdiRender returns; refuse commands that are not valid",
	 "warning"},
	{"DMA-28",
	 "advance pDmaBuffer, pPatchLocationListOut and the private data by what was written, and "
	 "return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER if there is not enough space",
	 "error"},
	{"NT-23", "compare with the size in the arguments before each write", "error"},
	{"PAT-10",
	 "write a patch location for each allocation that the commands use, also if its address is "
	 "already right: an allocation that moved is patched by these alone",
	 "error"},
	{"TDR-19",
	 "before the submission wait for the paging fence that MakeResident, MapGpuVirtualAddress "
	 "and UpdateGpuVirtualAddress returned (RES-03), and free an address or evict only after "
	 "the last use",
	 "error"},
	{"LOCK-30",
	 "unlock as often as was locked before the allocation or the device is destroyed",
	 "warning"},
	{"RES-01", "call Evict as often as MakeResident for each allocation", "warning"},
};

static const struct mend *find(const char *rule)
{
	for (size_t i = 0; i < sizeof(mends) / sizeof(mends[0]); i++)
		if (strcmp(mends[i].rule, rule) == 0)
			return &mends[i];
	return NULL;
}

const char *check_mend(const char *rule)
{
	const struct mend *mend = find(rule);

	return mend ? mend->mend : NULL;
}

const char *check_severity(const char *rule)
{
	const struct mend *mend = find(rule);

	if (strcmp(rule, CHECK_BUG_CHECK) == 0)
		return "fatal";
	return mend ? mend->severity : "error";
}
