//! The kernel's events as they come: a netlink socket in the group of the kernel's own (netlink(7),
//! NETLINK_KOBJECT_UEVENT). In a container whose network namespace belongs to a user namespace none arrives.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType,
    UnixCredentials, bind, recvmsg, setsockopt, socket, sockopt,
};

use super::uevent::{Event, LIMIT, Sender};

/// The group of the kernel's own events; udevd's are in the next.
const KERNEL: u32 = 1;

/// So many messages are read before whatever else waits has its turn.
const AT_ONCE: usize = 512;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Events that may change what containers can be given.
    pub events: u64,
    /// How often the kernel said that there were more than its buffer holds, or that could not be read.
    pub lost: u64,
}

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
            match self.one() {
                Ok(Some(event)) => heard.events += u64::from(event.matters()),
                Ok(None) => {}
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                // netlink(7): messages were dropped.
                Err(Errno::ENOBUFS) => heard.lost += 1,
                Err(errno) => return Err(errno),
            }
        }
        Ok(heard)
    }

    /// `None`: a message that is not the kernel's, or none that can be read.
    fn one(&self) -> Result<Option<Event>, Errno> {
        let mut bytes = [0; LIMIT];
        let mut credentials = nix::cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let fd = self.socket.as_raw_fd();
        let message = recvmsg::<NetlinkAddr>(fd, &mut parts, Some(&mut credentials), MsgFlags::MSG_DONTWAIT)?;
        let uid = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmCredentials(credentials) => Some(credentials.uid()),
            _ => None,
        });
        let sender = message.address.map(|from| Sender { port: from.pid(), groups: from.groups(), uid });
        let (is_cut, length) = (message.flags.contains(MsgFlags::MSG_TRUNC), message.bytes);
        if !sender.is_some_and(Sender::is_kernel) {
            return Ok(None);
        }
        // Longer than the kernel makes any: what it said is lost.
        if is_cut {
            return Err(Errno::ENOBUFS);
        }
        Ok(bytes.get(..length).and_then(Event::parse))
    }
}
