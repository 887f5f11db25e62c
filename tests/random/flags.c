/* SPDX-License-Identifier: MIT */
#include "flags.h"

#include <string.h>
#include <wddm_versions.h>

#define HAS(bit) ((c->flags & (bit)) != 0)

bool flags_is_wddm2(uint32_t version)
{
	return version >= DXGKDDI_INTERFACE_VERSION_WDDM2_0;
}

uint32_t flags_known(uint32_t version)
{
	if (!flags_is_wddm2(version))
		return 0x3FFFu | (version >= DXGKDDI_INTERFACE_VERSION_WDDM1_3 ? HISTORY : 0u);
	return 0x7Fu | PINNED | HISTORY | PHYSICAL | NOTIFY | HARDWARE_PROTECTED | ON_DEMAND |
	       (version >= DXGKDDI_INTERFACE_VERSION_WDDM2_1 ? NO_LARGE_PAGES | IN_VPR : 0u) |
	       (version >= DXGKDDI_INTERFACE_VERSION_WDDM2_9 ? MAP_VISIBLE : 0u);
}

static void breaks(char rules[128], const char *rule, bool broken)
{
	if (!broken)
		return;
	if (*rules)
		strcat(rules, " ");
	strcat(rules, rule);
}

static void judge_common(const struct flags_case *c, char rules[128])
{
	breaks(rules, "ALF-04", HAS(PERMANENT) && !HAS(CPU_VISIBLE));
	breaks(rules, "ALF-05", HAS(CACHED) && !HAS(CPU_VISIBLE));
	breaks(rules, "ALF-06", c->primary && HAS(KEPT | CACHED | PROTECTED));
	breaks(rules, "ALF-07", HAS(PROTECTED) && HAS(KEPT));
	breaks(rules, "ALF-09", HAS(EXISTING) && HAS(PERMANENT | EXISTING_KERNEL | PROTECTED));
	breaks(rules, "ALF-10", HAS(EXISTING_KERNEL) && HAS(PERMANENT | EXISTING | PROTECTED));
	breaks(rules, "ALF-11", HAS(EXISTING) && !c->memory);
	breaks(rules, "ALF-12", HAS(EXISTING_KERNEL) && !c->kernel_memory);
	breaks(rules, "ALF-24",
	       HAS(HISTORY) && (!HAS(CPU_VISIBLE) || (c->coherent && !HAS(CACHED)) ||
				HAS(~(uint32_t)(HISTORY | CPU_VISIBLE | CACHED))));
	breaks(rules, "ALF-31", c->primary && c->hidden);
}

enum flags_verdict flags_judge(const struct flags_case *c, char rules[128])
{
	bool wddm2 = flags_is_wddm2(c->version);

	*rules = '\0';
	breaks(rules, "ALF-02", HAS(~flags_known(c->version)));
	judge_common(c, rules);
	if (wddm2) {
		breaks(rules, "ALF-25", HAS(NOTIFY) && !HAS(PHYSICAL));
		breaks(rules, "ALF-26", HAS(IN_VPR) && !c->vpr);
		breaks(rules, "ALF-29", HAS(MAP_VISIBLE) && !c->map_aperture2);
		breaks(rules,
		       "SEG-25", /* content of a protected range is never outside of it (ALF-26) */
		       HAS(CPU_VISIBLE | ON_DEMAND) && c->hidden && !c->aperture && !HAS(IN_VPR));
	} else {
		breaks(rules, "ALF-21", HAS(ALTERNATE) && !c->primary);
		breaks(rules, "ALF-22", HAS(ALTERNATE) && !c->ranges);
		breaks(rules, "ALF-23", HAS(LINK_MIRRORED) && HAS(LINK_INSTANCED));
	}
	if (c->version >= DXGKDDI_INTERFACE_VERSION_WDDM3_0 && c->flags2)
		breaks(rules, c->flags2 & ~1u ? "ALF-02" : "ALF-30", true);
	if (*rules)
		return FLAGS_BAD;
	if ((c->memory || c->kernel_memory) && !HAS(EXISTING | EXISTING_KERNEL))
		return FLAGS_NOT_BUILT;
	return FLAGS_GOOD;
}
