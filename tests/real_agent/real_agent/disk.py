"""The disk: a plain file that behaves like a block device.

Two things differ between the two, and both matter to an agent: opening a
block device for writing does not empty it, and it has an end (ENOSPC).
Partitions have no device nodes here; they are found by reading the table.
"""

import dataclasses
import errno
import io
import os
import struct
import uuid

SECTOR = 512
_GPT_PROTECTIVE = 0xEE


@dataclasses.dataclass(frozen=True)
class Partition:
    number: int
    start: int  # bytes
    size: int  # bytes
    uuid: str  # of a GPT entry; empty in an MBR


class _BoundedFile(io.FileIO):
    """A file that cannot grow: where a device ends, so does it."""

    def __init__(self, path, size):
        super().__init__(path, "r+")
        self._size = size

    def write(self, data):
        data = memoryview(data).cast("B")
        room = self._size - self.tell()
        if data.nbytes and room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
        return super().write(data[:max(room, 0)])


class Disk:
    def __init__(self, path, size):
        self.path = path
        self.size = size

    def create(self):
        """Make the file (sparse) if there is none; keep what it holds."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(handle, self.size)
        finally:
            os.close(handle)

    def open(self):
        """The device, opened for reading and writing."""
        return io.BufferedRandom(_BoundedFile(self.path, self.size))

    def number_of(self, device):
        """Which partition `device` means, or None if it is not one of ours.

        The agent builds such names as DISK + number, or as /dev/ + what lsblk
        calls the partition.
        """
        for stem in (self.path, "/dev/" + os.path.basename(self.path)):
            rest = device.removeprefix(stem)
            if rest != device and rest.isascii() and rest.isdigit():
                return int(rest)
        return None

    def partitions(self):
        """The partitions on the disk now, by number (primary ones, or GPT)."""
        with open(self.path, "rb") as file:
            mbr = file.read(SECTOR)
            if mbr[510:512] != b"\x55\xaa":
                return {}
            found = {}
            for number in range(1, 5):
                entry = mbr[430 + 16 * number:446 + 16 * number]
                kind, (start, sectors) = entry[4], struct.unpack("<II", entry[8:16])
                if kind == _GPT_PROTECTIVE:
                    return _gpt(file)
                if kind and sectors:
                    found[number] = Partition(number, start * SECTOR, sectors * SECTOR, "")
            return found

    def write_partition(self, number, source):
        """Copy the file `source` to the beginning of a partition."""
        part = self.partitions()[number]
        if os.path.getsize(source) > part.size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{self.path}{number}")
        with open(source, "rb") as data, self.open() as device:
            device.seek(part.start)
            while chunk := data.read(1 << 20):
                device.write(chunk)


def _gpt(file):
    file.seek(SECTOR)
    header = file.read(92)
    if header[:8] != b"EFI PART":
        return {}
    table, count, width = struct.unpack("<QII", header[72:88])
    found = {}
    for number in range(1, min(count, 128) + 1):
        file.seek(table * SECTOR + (number - 1) * width)
        entry = file.read(48)
        first, last = struct.unpack("<QQ", entry[32:48])
        if any(entry[:16]):
            found[number] = Partition(number, first * SECTOR, (last - first + 1) * SECTOR,
                                      str(uuid.UUID(bytes_le=entry[16:32])))
    return found
