# SPDX-License-Identifier: MIT
# Builds a miniport with make, one object for each source, anew when the source changes:
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

%.c.o: %.c
	$(VIDMM_CC) -c $(DRIVER_FLAGS) -o $@ $<

%.cpp.o: %.cpp
	$(VIDMM_CC) -c $(DRIVER_FLAGS) -o $@ $<

clean-driver:
	rm -f $(DRIVER) $(OBJECTS)

.PHONY: clean-driver
