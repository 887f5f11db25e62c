/* SPDX-License-Identifier: MIT */
/* main() of the programs that refuse random calls. */
#include "refusal.h"

int main(int count, char **arguments)
{
	return refusal_main(count, arguments);
}
