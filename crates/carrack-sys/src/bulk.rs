//! Moving much at little cost: past the page cache, and between sockets and files without passing through the process.
//!
//! Each call that a system, a file system or a kind of descriptor may not have answers [`io::ErrorKind::Unsupported`],
//! before anything has been moved: the caller then does the same with an ordinary read or write.

#[cfg(all(target_os = "linux", not(carrack_portable)))]
use crate::retry;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// Writes all of `bytes` at `offset` through the page cache without leaving them there: writing to storage begins at
/// once, and what has been written is let go (`RWF_DONTCACHE`, Linux 6.14).
pub fn write_past_cache(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let at = position(offset.checked_add(done as u64))?;
        match system::write_past_cache(file, &bytes[done..], at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            // What was taken as a whole before is taken again without the flag.
            Err(error) if error.kind() == io::ErrorKind::Unsupported && done > 0 => {
                return crate::file::write_all_at(file, &bytes[done..], at);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads what is in the page cache at `offset`, without waiting for storage: `None` if that is nothing.
pub fn read_if_cached(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
    system::read_if_cached(file, buffer, position(Some(offset))?)
}

/// Pages of the first `bytes` of a file that are in the page cache, for those who may know: its owner, and who may
/// write to it (Linux 6.5).
pub fn cached_pages(file: &File, bytes: u64) -> io::Result<u64> {
    system::cached_pages(file, bytes)
}

/// How far the system reads ahead of who reads a file in order, in bytes; none where it does not say (Linux says it of
/// block devices and of the file systems that have a setting of their own).
pub fn read_ahead_bytes(file: &File) -> Option<u64> {
    system::read_ahead_bytes(file)
}

/// What is no offset of a file means its own position to some of the calls here.
fn position(offset: Option<u64>) -> io::Result<u64> {
    offset.filter(|&offset| i64::try_from(offset).is_ok()).ok_or_else(|| Errno::OVERFLOW.into())
}

/// Has storage begin to read a range that will be wanted soon.
pub fn fetch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    crate::file::advise(file, offset, len, crate::file::Advice::Fetch)
}

/// Has the system begin to write a range to storage, and does not wait for it. It says nothing of what is durable.
pub fn start_writing_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    system::start_writing_back(file, offset, len)
}

/// Sends up to `len` bytes of a file from `offset` over a socket: 0 when the file ends there.
pub fn send_file(socket: impl AsFd, file: &File, offset: u64, len: usize) -> io::Result<usize> {
    system::send_file(socket.as_fd(), file, offset, len)
}

/// Takes up to `scratch.len()` bytes from a TCP socket and throws them away uncopied: what `scratch` holds afterwards
/// means nothing. 0 when the other side has ended.
pub fn discard(socket: impl AsFd, scratch: &mut [u8]) -> io::Result<usize> {
    system::discard(socket.as_fd(), scratch)
}

/// A pipe through which bytes go from a socket to a file inside the kernel.
#[derive(Debug)]
pub struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    holds: usize,
}

impl Pipe {
    /// What is asked of the system, in bytes: the most that users who are not root may have, by default.
    const BYTES: usize = 1 << 20;

    /// An empty one.
    pub fn new() -> io::Result<Self> {
        let (read, write) = system::pipe(Self::BYTES)?;
        Ok(Self { read, write, holds: 0 })
    }

    /// Bytes in it.
    pub fn holds(&self) -> usize {
        self.holds
    }

    /// Waits for bytes on the socket and takes up to `len` of them: 0 when the other side has ended. The pipe must be
    /// empty, or it may wait for ever.
    pub fn take(&mut self, socket: impl AsFd, len: usize) -> io::Result<usize> {
        let taken = system::splice(socket.as_fd(), self.write.as_fd(), None, len)?;
        self.holds += taken;
        Ok(taken)
    }

    /// Writes all that it holds to a file at `offset`. After an error it still holds the rest.
    pub fn put(&mut self, file: &File, mut offset: u64) -> io::Result<()> {
        while self.holds > 0 {
            let put = system::splice(self.read.as_fd(), file.as_fd(), Some(offset), self.holds)?;
            if put == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.holds -= put;
            offset = position(offset.checked_add(put as u64))?;
        }
        Ok(())
    }
}

/// The answers that mean that this cannot be done, here or with these descriptors.
#[cfg(all(target_os = "linux", not(carrack_portable)))]
fn supported<T>(result: Result<T, Errno>) -> io::Result<T> {
    match result {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::SPIPE) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        other => Ok(other?),
    }
}

#[cfg(all(target_os = "linux", not(carrack_portable)))]
#[allow(unsafe_code)]
mod system {
    use super::*;
    use rustix::fd::{AsRawFd, BorrowedFd};
    use rustix::io::ReadWriteFlags;
    use rustix::net::RecvFlags;
    use rustix::pipe::{PipeFlags, SpliceFlags};
    use std::io::{IoSlice, IoSliceMut};

    /// Since Linux 6.14; not yet in rustix nor libc.
    const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

    pub fn write_past_cache(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        supported(retry(|| rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, DONTCACHE)))
    }

    pub fn read_if_cached(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let read =
            retry(|| rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut *buffer)], offset, ReadWriteFlags::NOWAIT));
        match read {
            Err(Errno::AGAIN) => Ok(None),
            other => supported(other).map(Some),
        }
    }

    pub fn cached_pages(file: &File, bytes: u64) -> io::Result<u64> {
        // Not yet in libc: from, and so many bytes, where 0 is all.
        let range = [0, bytes];
        const CACHESTAT: libc::c_long = 451;
        // Cached, dirty, being written, evicted, evicted of late.
        let mut pages = [0u64; 5];
        // SAFETY: the descriptor is borrowed for the call, which reads two numbers and writes
        // five, to memory that is ours.
        let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), pages.as_mut_ptr(), 0) };
        if done == 0 { Ok(pages[0]) } else { supported(Err(last_error())) }
    }

    fn last_error() -> Errno {
        Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
    }

    pub fn read_ahead_bytes(file: &File) -> Option<u64> {
        let device = rustix::fs::fstat(file).ok()?.st_dev;
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        // A disk, a part of one, or a file system that no single disk carries.
        let settings = [
            format!("/sys/dev/block/{major}:{minor}/queue/read_ahead_kb"),
            format!("/sys/dev/block/{major}:{minor}/../queue/read_ahead_kb"),
            format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        ];
        let said = settings.iter().find_map(|path| std::fs::read_to_string(path).ok())?;
        said.trim().parse::<u64>().ok()?.checked_mul(1024)
    }

    pub fn start_writing_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
        let range = (i64::try_from(offset), i64::try_from(len));
        let (Ok(offset), Ok(len)) = range else { return Err(Errno::OVERFLOW.into()) };
        // SAFETY: the descriptor is borrowed for the call, which takes no pointers.
        let done = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
        if done == 0 {
            return Ok(());
        }
        supported(Err(last_error()))
    }

    pub fn send_file(socket: BorrowedFd<'_>, file: &File, offset: u64, len: usize) -> io::Result<usize> {
        supported(retry(|| rustix::fs::sendfile(socket, file, Some(&mut { offset }), len)))
    }

    pub fn discard(socket: BorrowedFd<'_>, scratch: &mut [u8]) -> io::Result<usize> {
        supported(retry(|| rustix::net::recv(socket, &mut *scratch, RecvFlags::TRUNC).map(|(_, whole)| whole)))
    }

    pub fn pipe(bytes: usize) -> io::Result<(OwnedFd, OwnedFd)> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // A smaller one serves as well, with more calls.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, bytes);
        Ok((read, write))
    }

    pub fn splice(from: BorrowedFd<'_>, to: BorrowedFd<'_>, mut offset: Option<u64>, len: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::MORE;
        supported(retry(|| rustix::pipe::splice(from, None, to, offset.as_mut(), len, flags)))
    }
}

/// What a system without these answers.
#[cfg(any(test, not(target_os = "linux"), carrack_portable))]
#[cfg_attr(target_os = "linux", allow(dead_code))]
mod portable {
    use super::*;
    use rustix::fd::BorrowedFd;
    use std::io::ErrorKind::Unsupported;

    pub fn write_past_cache(_: &File, _: &[u8], _: u64) -> io::Result<usize> {
        Err(Unsupported.into())
    }

    pub fn read_if_cached(_: &File, _: &mut [u8], _: u64) -> io::Result<Option<usize>> {
        Err(Unsupported.into())
    }

    pub fn cached_pages(_: &File, _: u64) -> io::Result<u64> {
        Err(Unsupported.into())
    }

    pub fn read_ahead_bytes(_: &File) -> Option<u64> {
        None
    }

    pub fn start_writing_back(_: &File, _: u64, _: u64) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn send_file(_: BorrowedFd<'_>, _: &File, _: u64, _: usize) -> io::Result<usize> {
        Err(Unsupported.into())
    }

    pub fn discard(_: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<usize> {
        Err(Unsupported.into())
    }

    pub fn pipe(_: usize) -> io::Result<(OwnedFd, OwnedFd)> {
        Err(Unsupported.into())
    }

    pub fn splice(_: BorrowedFd<'_>, _: BorrowedFd<'_>, _: Option<u64>, _: usize) -> io::Result<usize> {
        Err(Unsupported.into())
    }
}

#[cfg(any(not(target_os = "linux"), carrack_portable))]
use portable as system;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{read_full_at, write_all_at};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    /// An answer, or none because this system cannot.
    fn possible<T>(result: io::Result<T>) -> Option<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => None,
            other => Some(other.unwrap()),
        }
    }

    #[test]
    fn bytes_written_past_the_cache_are_in_the_file() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
        if possible(write_past_cache(&file, &bytes, 4097)).is_none() {
            write_all_at(&file, &bytes, 4097).unwrap();
        }
        possible(start_writing_back(&file, 0, 1 << 20));
        let mut back = vec![0; bytes.len()];
        assert_eq!(read_full_at(&file, &mut back, 4097).unwrap(), bytes.len());
        assert!(back == bytes);
        assert!(write_past_cache(&file, b"x", u64::MAX).is_err());
    }

    #[test]
    fn cached_pages_are_read_without_waiting() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, &[7; 8192], 0).unwrap();
        let mut buffer = [0; 4096];
        if let Some(read) = possible(read_if_cached(&file, &mut buffer, 4096)) {
            assert_eq!((read, buffer), (Some(4096), [7; 4096]));
        }
        fetch(&file, 0, 8192).unwrap();
    }

    #[test]
    fn pages_of_a_file_in_the_cache_are_counted() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(possible(cached_pages(&file, 1 << 20)).unwrap_or(0), 0);
        write_all_at(&file, &[7; 1 << 20], 0).unwrap();
        if let Some(pages) = possible(cached_pages(&file, 1 << 20)) {
            assert!((1..=256).contains(&pages), "{pages}");
        }
    }

    #[test]
    fn read_ahead_is_a_number_of_kilobytes_or_unknown() {
        let here = File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
        for file in [here, File::open("/proc/self/stat").unwrap(), tempfile::tempfile().unwrap()] {
            let ahead = read_ahead_bytes(&file).unwrap_or(0);
            assert!(ahead.is_multiple_of(1024) && ahead <= 1 << 30, "{ahead}");
        }
    }

    #[cfg(not(carrack_portable))]
    #[test]
    fn file_goes_over_a_socket_into_a_file() {
        let (near, far) = connected();
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let bytes: Vec<u8> = (0..400_000u32).map(|n| (n >> 3) as u8).collect();
        write_all_at(&from, &bytes, 10).unwrap();
        let sender = std::thread::spawn(move || {
            let mut sent = 0;
            while let Some(count) = possible(send_file(&near, &from, 10 + sent as u64, 400_000 - sent)) {
                sent += count;
                if count == 0 || sent == 400_000 {
                    break;
                }
            }
            assert_eq!(possible(send_file(&near, &from, 500_000, 10)).unwrap_or(0), 0);
            (&near).write_all(&vec![0; 400_000 - sent]).unwrap();
            sent
        });
        let mut pipe = Pipe::new().unwrap();
        let mut got = 0;
        while got < 400_000 {
            let taken = pipe.take(&far, 400_000 - got).unwrap();
            assert_eq!((pipe.holds(), taken > 0), (taken, true));
            pipe.put(&to, got as u64).unwrap();
            got += taken;
        }
        let sent = sender.join().unwrap();
        let mut back = vec![1; 400_000];
        assert_eq!(read_full_at(&to, &mut back, 0).unwrap(), 400_000);
        assert!(back[..sent] == bytes[..sent]);
        assert_eq!(pipe.take(&far, 1).unwrap(), 0);
    }

    #[cfg(not(carrack_portable))]
    #[test]
    fn error_of_the_file_leaves_the_bytes_in_the_pipe() {
        let (near, far) = connected();
        (&near).write_all(b"nowhere").unwrap();
        let mut pipe = Pipe::new().unwrap();
        assert_eq!(pipe.take(&far, 7).unwrap(), 7);
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(pipe.put(&full, 0).is_err());
        assert_eq!(pipe.holds(), 7);
    }

    #[test]
    fn discarded_bytes_are_gone_and_later_ones_are_not() {
        let (near, far) = connected();
        (&near).write_all(b"away, kept").unwrap();
        drop(near);
        let mut scratch = [0; 6];
        let gone = possible(discard(&far, &mut scratch)).unwrap_or_else(|| (&far).read(&mut scratch).unwrap());
        let mut rest = Vec::new();
        (&far).read_to_end(&mut rest).unwrap();
        assert_eq!(rest, &b"away, kept"[gone..]);
        assert_eq!(possible(discard(&far, &mut scratch)).unwrap_or(0), 0);
    }
}
