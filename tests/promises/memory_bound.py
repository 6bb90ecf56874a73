"""P5's number: how far resident memory may go beyond maxmemory.

maxmemory covers what grows with data and clients. Code, libraries, stacks, the allocator's slack and
the kernel's rounding stand beside it; the allowance is what they were measured to take.
"""

from harness import MB, memory, reset_memory_peak

MAXMEMORY_BYTES = 96 * MB
MAXMEMORY = "96mb"
ALLOWED_BYTES = MAXMEMORY_BYTES * 16 // 10 + 64 * MB


def check_memory(server, what):
    """The peak since the last check stays within the bound."""
    now, peak = memory(server)
    print(f"{what}: {now / MB:.0f} MB resident, {peak / MB:.0f} MB at most")
    assert peak <= ALLOWED_BYTES, (
        f"{what}: {peak / MB:.0f} MB with a maxmemory of {MAXMEMORY}, {ALLOWED_BYTES / MB:.0f} allowed"
    )
    reset_memory_peak(server)
