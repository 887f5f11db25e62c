# SPDX-License-Identifier: MIT
# Builds a miniport with make, one object for each source, anew when the source or a header that it
# includes changes:
#
#	DRIVER := mydriver.so
#	SOURCES := entry.c render.cpp
#	DRIVER_FLAGS := -I inc -DMY_OPTION=1
#	include $(shell vidmm-cc --kit)/vidmm.mk
#
# Set before the include: VIDMM_CC (another vidmm-cc, or with options such as --compiler gcc).
VIDMM_CC ?= vidmm-cc
OBJECTS := $(addsuffix .o,$(SOURCES))

$(DRIVER): $(OBJECTS)
	$(VIDMM_CC) --driver $@ $^

# -MMD writes the headers of each object into OBJECT.d; -MP lets one of them be deleted.
DEPENDENCIES := $(addsuffix .d,$(OBJECTS))
VIDMM_COMPILE = $(VIDMM_CC) -c $(DRIVER_FLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $<

%.c.o: %.c
	$(VIDMM_COMPILE)

%.cpp.o: %.cpp
	$(VIDMM_COMPILE)

-include $(DEPENDENCIES)

clean-driver:
	rm -f $(DRIVER) $(OBJECTS) $(DEPENDENCIES)

.PHONY: clean-driver
