# SPDX-License-Identifier: Apache-2.0
# The shared region: open and repair, locks, slots, ledger, reading from outside.
SRCS_region := text.c lock.c open.c slot.c ledger.c read.c
