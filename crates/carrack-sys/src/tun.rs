//! Network devices whose other end is a descriptor (TUN): what the host sends comes out by `read`,
//! what is written it receives.
//!
//! The program has no use for them. They serve tests and the benchmark, which stand an emulated link between two hosts.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Before each packet, both ways, stands a `virtio_net_hdr` of so many bytes: how it is to be cut, and what
/// its checksum still needs.
pub const HEADER_BYTES: usize = 10;

/// Makes a device in the network namespace of the calling thread. It is gone when the descriptor is closed, whose reads
/// and writes do not block.
///
/// With `offload`, packets of up to 64 KiB are handed over uncut, with the size into which a real device would cut
/// them. In either case the checksums of TCP are left to the device: of what is handed on from one to another, nobody
/// computes or checks them.
pub fn open(name: &str, offload: bool) -> io::Result<OwnedFd> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let device = OwnedFd::from(device);
    attach(&device, name)?;
    let segments = libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    set_offload(&device, libc::TUN_F_CSUM | if offload { segments } else { 0 })?;
    Ok(device)
}

#[allow(unsafe_code)]
fn attach(device: &OwnedFd, name: &str) -> io::Result<()> {
    // SAFETY: ifreq is integers, addresses and a pointer that TUNSETIFF does not look at: zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One less than its length: the last stays zero.
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the descriptor is open for the call; TUNSETIFF reads one ifreq, which is initialised, and writes it back.
    done(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &mut request) })
}

#[allow(unsafe_code)]
fn set_offload(device: &OwnedFd, features: libc::c_uint) -> io::Result<()> {
    // SAFETY: the descriptor is open for the call; TUNSETOFFLOAD takes its bits as the argument itself and
    // touches no memory of ours.
    done(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(features)) })
}

/// Sets the speed that a device of the calling thread's network namespace claims to have, in megabits per second.
///
/// # Errors
/// What the system says.
#[allow(unsafe_code)]
pub fn set_speed(name: &str, megabits: u16) -> io::Result<()> {
    /// linux/sockios.h, linux/ethtool.h: 44 bytes, the speed in two behind the third number, then the duplex.
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const SET_SETTINGS: u32 = 2;
    const FULL_DUPLEX: u8 = 1;
    let mut settings = [0u32; 11];
    settings[0] = SET_SETTINGS;
    let speed = megabits.to_ne_bytes();
    settings[3] = u32::from_ne_bytes([speed[0], speed[1], FULL_DUPLEX, 0]);
    // SAFETY: ifreq is integers and addresses only: zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = settings.as_mut_ptr().cast();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: the request names a structure that is ours for the call and has the bytes that this question's has.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) })
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_lives_as_long_as_its_descriptor() {
        if crate::host::user_id() != 0 || !std::path::Path::new("/dev/net/tun").exists() {
            println!("skipped: TUN devices need root and /dev/net/tun");
            return;
        }
        let name = format!("tun{}", std::process::id());
        let there = || std::fs::read_to_string("/proc/net/dev").unwrap().contains(&format!("{name}:"));
        for offload in [true, false] {
            let device = open(&name, offload).unwrap();
            assert!(there());
            set_speed(&name, 1000).unwrap();
            assert!(open(&name, offload).is_err(), "it is taken");
            drop(device);
            assert!(!there());
        }
        assert!(open("", true).is_err() && open("a-name-that-is-too-long", true).is_err());
    }
}
