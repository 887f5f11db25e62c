/* SPDX-License-Identifier: MIT */
/* The smallest client: the installed headers and library, and nothing of this tree. */
#include <stdio.h>
#include <string.h>

#include <d3dkmddi.h>
#include <vidmm/vidmm.h>

int main(void)
{
	struct vidmm_host_options options = {
		.struct_size = sizeof(options), .kind = VIDMM_HOST_SIM, .seed = 1};
	struct vidmm_host *host = NULL;
	char version[32];

	snprintf(version, sizeof(version), "%d.%d.%d", VIDMM_VERSION_MAJOR, VIDMM_VERSION_MINOR,
		 VIDMM_VERSION_PATCH);
	if (strcmp(version, vidmm_version()) != 0)
		return 1;
	if (vidmm_host_create(&options, &host) < 0)
		return 2;
	vidmm_host_destroy(host);
	puts(vidmm_version());
	return 0;
}
