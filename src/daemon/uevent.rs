//! What the kernel says of its devices: one message, a string of `KEY=value` each ended by a zero byte, behind a first
//! one `ACTION@DEVPATH` (kobject_uevent_env in the kernel's lib/kobject_uevent.c). udevd's own messages, which go to
//! another group, begin with `libudev`.

/// More than the kernel sends: its buffer of variables has 2,048 bytes (UEVENT_BUFFER_SIZE), a path comes before them.
pub const LIMIT: usize = 8192;

/// Of which subsystems an event may change what containers can be given. `kfd` is that of /dev/kfd alone.
const SUBSYSTEMS: [&str; 5] = ["drm", "kfd", "module", "pci", "platform"];

/// Who sent a message, as the kernel tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// The netlink port: 0 is the kernel's, and no process can have it (netlink(7)).
    pub port: u32,
    /// The groups that it was sent to: 1 is the kernel's own events.
    pub groups: u32,
    /// The uid that the kernel vouches for; `None` where it told none.
    pub uid: Option<u32>,
}

impl Sender {
    /// Whether it is the kernel's. A process with the right capability may send to the group as well.
    pub fn is_kernel(self) -> bool {
        self.port == 0 && self.groups == 1 && self.uid == Some(0)
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `add`, `remove`, `change`, `bind`, `unbind`, …
    pub action: String,
    /// Beneath /sys.
    pub device: String,
    pub subsystem: String,
}

impl Event {
    /// Reads a message; `None` where it is not one of the kernel's form. Bytes that are no UTF-8 are no name that
    /// matters here.
    pub fn parse(message: &[u8]) -> Option<Self> {
        // Every string ends: what does not was cut.
        let body = message.strip_suffix(&[0])?;
        let mut strings = body.split(|byte| *byte == 0);
        let head = std::str::from_utf8(strings.next()?).ok()?;
        let (action, device) = head.split_once('@')?;
        let is_action = !action.is_empty() && action.bytes().all(|byte| byte.is_ascii_lowercase());
        if !is_action || !device.starts_with('/') {
            return None;
        }
        let mut subsystem = None;
        for string in strings {
            let (key, value) = string.split_at(string.iter().position(|byte| *byte == b'=')?);
            let value = value.get(1..)?;
            match key {
                b"SUBSYSTEM" => subsystem = Some(std::str::from_utf8(value).ok()?.to_owned()),
                // The head says the same: a message that contradicts itself is not the kernel's.
                b"ACTION" if value != action.as_bytes() => return None,
                b"DEVPATH" if value != device.as_bytes() => return None,
                _ => {}
            }
        }
        Some(Self { action: action.to_owned(), device: device.to_owned(), subsystem: subsystem? })
    }

    /// Whether it may change what containers can be given.
    pub fn matters(&self) -> bool {
        SUBSYSTEMS.contains(&self.subsystem.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(strings: &[&str]) -> Vec<u8> {
        strings.iter().flat_map(|string| [string.as_bytes(), &[0]].concat()).collect()
    }

    /// As Linux 6.1 sent it when vgem was loaded.
    const VGEM: [&str; 10] = [
        "add@/devices/platform/vgem/drm/renderD128",
        "ACTION=add",
        "DEVPATH=/devices/platform/vgem/drm/renderD128",
        "SUBSYSTEM=drm",
        "MAJOR=226",
        "MINOR=128",
        "DEVNAME=dri/renderD128",
        "DEVTYPE=drm_minor",
        "SEQNUM=1201",
        "EMPTY=",
    ];

    #[test]
    fn an_event_of_the_kernel_is_read() {
        let event = Event::parse(&message(&VGEM)).unwrap();
        assert_eq!((event.action.as_str(), event.subsystem.as_str()), ("add", "drm"));
        assert_eq!(event.device, "/devices/platform/vgem/drm/renderD128");
        assert!(event.matters());
    }

    #[test]
    fn only_subsystems_that_gpus_come_from_matter() {
        for (subsystem, matters) in [
            ("drm", true),
            ("kfd", true),
            ("module", true),
            ("pci", true),
            ("platform", true),
            ("net", false),
            ("block", false),
            ("drm_dp_aux_dev", false),
            ("", false),
        ] {
            let subsystem = format!("SUBSYSTEM={subsystem}");
            let event = Event::parse(&message(&["change@/devices/x", &subsystem])).unwrap();
            assert_eq!(event.matters(), matters, "{subsystem}");
        }
    }

    #[test]
    fn what_is_not_of_the_kernels_form_is_nothing() {
        let whole = message(&VGEM);
        let cut = &whole[..whole.len() - 3];
        for (why, bytes) in [
            ("empty", &b""[..]),
            ("a zero byte alone", b"\0"),
            ("cut in the middle", cut),
            ("no head", b"ACTION=add\0SUBSYSTEM=drm\0"),
            ("no action", b"@/devices/x\0SUBSYSTEM=drm\0"),
            ("an action of other letters", b"ADD@/devices/x\0SUBSYSTEM=drm\0"),
            ("a device outside /sys", b"add@devices/x\0SUBSYSTEM=drm\0"),
            ("no subsystem", b"add@/devices/x\0ACTION=add\0"),
            ("a string without =", b"add@/devices/x\0SUBSYSTEM=drm\0MAJOR\0"),
            ("an empty string", b"add@/devices/x\0\0SUBSYSTEM=drm\0"),
            ("another action inside", b"add@/devices/x\0ACTION=remove\0SUBSYSTEM=drm\0"),
            ("another device inside", b"add@/devices/x\0DEVPATH=/devices/y\0SUBSYSTEM=drm\0"),
            ("no UTF-8", b"add@/devices/\xff\0SUBSYSTEM=drm\0"),
            ("a subsystem that is no UTF-8", b"add@/devices/x\0SUBSYSTEM=dr\xff\0"),
            ("udevd's", b"libudev\0\xfe\xed\xca\xfe\0"),
        ] {
            assert_eq!(Event::parse(bytes), None, "{why}");
        }
    }

    #[test]
    fn only_what_the_kernel_vouches_for_is_the_kernels() {
        let kernel = Sender { port: 0, groups: 1, uid: Some(0) };
        for (sender, is_kernel) in [
            (kernel, true),
            (Sender { port: 4711, ..kernel }, false),
            (Sender { groups: 2, ..kernel }, false),
            (Sender { groups: 0, ..kernel }, false),
            (Sender { uid: Some(1000), ..kernel }, false),
            (Sender { uid: None, ..kernel }, false),
        ] {
            assert_eq!(sender.is_kernel(), is_kernel, "{sender:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = Event::parse(&bytes);
        }
    }
}
