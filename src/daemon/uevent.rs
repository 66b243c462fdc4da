//! The kernel's events: a netlink socket in the group of the kernel's own (netlink(7), NETLINK_KOBJECT_UEVENT). In a
//! container whose network namespace belongs to a user namespace none arrives.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType,
    UnixCredentials, bind, recvmsg, setsockopt, socket, sockopt,
};

use super::watch::Heard;

/// The group of the kernel's own events; udevd's are in the next.
const KERNEL: u32 = 1;

/// Longer than any message: the kernel's buffer of variables has 2,048 bytes (UEVENT_BUFFER_SIZE), and a path comes
/// before them.
const LIMIT: usize = 8192;

/// Messages that one call reads.
const AT_ONCE: usize = 512;

/// Subsystems whose events may change what containers can be given. `kfd` is that of /dev/kfd alone.
const SUBSYSTEMS: [&[u8]; 5] = [b"drm", b"kfd", b"module", b"pci", b"platform"];

#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Netlink {
    pub fn open() -> Result<Self, Errno> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkKObjectUEvent;
        let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, protocol)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL))?;
        Ok(Self { socket })
    }

    /// Reads what has come, and does not wait for more.
    pub fn read(&self) -> Result<Heard, Errno> {
        let mut heard = Heard::default();
        for _ in 0..AT_ONCE {
            match self.matters() {
                Ok(matters) => heard.events += u64::from(matters),
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                // netlink(7): the kernel dropped messages.
                Err(Errno::ENOBUFS) => heard.lost += 1,
                Err(errno) => return Err(errno),
            }
        }
        Ok(heard)
    }

    /// Reads one message: whether it is the kernel's and may change what containers can be given.
    fn matters(&self) -> Result<bool, Errno> {
        let mut bytes = [0; LIMIT];
        let mut credentials = nix::cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let fd = self.socket.as_raw_fd();
        let message = recvmsg::<NetlinkAddr>(fd, &mut parts, Some(&mut credentials), MsgFlags::MSG_DONTWAIT)?;
        let uid = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmCredentials(credentials) => Some(credentials.uid()),
            _ => None,
        });
        let is_kernels = message.address.is_some_and(|from| is_kernels(from.pid(), from.groups(), uid));
        let (is_cut, length) = (message.flags.contains(MsgFlags::MSG_TRUNC), message.bytes);
        // No uevent of the kernel is longer than the buffer: this one counts as lost.
        if is_kernels && is_cut {
            return Err(Errno::ENOBUFS);
        }
        Ok(is_kernels && bytes.get(..length).is_some_and(may_change_gpus))
    }
}

/// Whether the kernel sent a message. A process with the right capability may send to the group as well. `port`: the
/// netlink port; 0 is the kernel's, and no process can have it (netlink(7)). `uid`: what the kernel vouches for.
fn is_kernels(port: u32, groups: u32, uid: Option<u32>) -> bool {
    port == 0 && groups == KERNEL && uid == Some(0)
}

/// Whether an event may change what containers can be given. The kernel writes `ACTION@DEVPATH` and then `KEY=value`
/// strings, and ends each by a zero byte (kobject_uevent_env in the kernel's lib/kobject_uevent.c).
fn may_change_gpus(message: &[u8]) -> bool {
    let mut subsystems =
        message.split(|byte| *byte == 0).filter_map(|string| string.strip_prefix(b"SUBSYSTEM="));
    subsystems.any(|subsystem| SUBSYSTEMS.contains(&subsystem))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A uevent as Linux 6.1 sent it when vgem was loaded.
    const VGEM: &[u8] = b"add@/devices/platform/vgem/drm/renderD128\0ACTION=add\0\
        DEVPATH=/devices/platform/vgem/drm/renderD128\0SUBSYSTEM=drm\0MAJOR=226\0MINOR=128\0\
        DEVNAME=dri/renderD128\0DEVTYPE=drm_minor\0SEQNUM=1201\0EMPTY=\0";

    #[test]
    fn only_events_of_subsystems_that_gpus_come_from_matter() {
        assert!(may_change_gpus(VGEM));
        for (of_subsystem, matters) in [
            (&b"SUBSYSTEM=drm\0"[..], true),
            (b"SUBSYSTEM=kfd\0", true),
            (b"SUBSYSTEM=module\0", true),
            (b"SUBSYSTEM=pci\0", true),
            (b"SUBSYSTEM=platform\0", true),
            (b"SUBSYSTEM=net\0", false),
            (b"SUBSYSTEM=block\0", false),
            (b"SUBSYSTEM=drm_dp_aux_dev\0", false),
            (b"SUBSYSTEM=\0", false),
            (b"SUBSYSTEM=dr\xff\0", false),
            (b"", false),
        ] {
            let message = [b"change@/devices/x\0ACTION=change\0", of_subsystem, b"SEQNUM=1\0"].concat();
            assert_eq!(may_change_gpus(&message), matters, "{}", message.escape_ascii());
        }
        let udevds = b"libudev\0\xfe\xed\xca\xfe\0";
        assert!(![&b""[..], b"\0", udevds].into_iter().any(may_change_gpus), "messages of another form");
    }

    #[test]
    fn only_what_the_kernel_vouches_for_is_the_kernels() {
        for (port, groups, uid, expected) in [
            (0, 1, Some(0), true),
            (4711, 1, Some(0), false),
            (0, 2, Some(0), false),
            (0, 0, Some(0), false),
            (0, 1, Some(1000), false),
            (0, 1, None, false),
        ] {
            assert_eq!(is_kernels(port, groups, uid), expected, "{port} {groups} {uid:?}");
        }
    }
}
