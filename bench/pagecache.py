"""The page cache: makes a file cold, and says how much of one is in memory."""
import ctypes
import mmap
import os

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
SHARED, FAILED = 1, ctypes.c_void_p(-1).value


def evict(path):
    """Pages that are not yet on the disk cannot be dropped, so they are written first."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def cached_percent(path):
    """Of the pages of a file, those in memory; None where it cannot be told."""
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    if size == 0:
        return None
    pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    file = os.open(path, os.O_RDONLY)
    address = LIBC.mmap(None, size, mmap.PROT_READ, SHARED, file, 0)
    os.close(file)
    if address == FAILED:
        return None
    present = ctypes.create_string_buffer(pages)
    status = LIBC.mincore(address, size, present)
    LIBC.munmap(address, size)
    return 100 * sum(byte & 1 for byte in present.raw[:pages]) / pages if status == 0 else None
