//! Opens a device node and asks its driver who it is: `ask kfd|drm PATH`.
//!
//! Prints `kfd MAJOR.MINOR` or `drm NAME`, else `open: N` or `ioctl: N` with the errno, and ends with 1. A program
//! of its own, because a shell cannot make an ioctl; static, because it runs in containers that hold little else.

use std::fs::OpenOptions;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

/// `_IOR('K', 0x01, struct kfd_ioctl_get_version_args)`: include/uapi/linux/kfd_ioctl.h.
const AMDKFD_IOC_GET_VERSION: u64 = 0x8008_4b01;
/// `_IOWR('d', 0x00, struct drm_version)`: include/uapi/drm/drm.h.
const DRM_IOCTL_VERSION: u64 = 0xc040_6400;

#[repr(C)]
#[derive(Default)]
struct KfdVersion {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct DrmVersion {
    numbers: [i32; 3],
    name_length: usize,
    name: *mut u8,
    date_length: usize,
    date: *mut u8,
    description_length: usize,
    description: *mut u8,
}

unsafe extern "C" {
    // musl and glibc disagree about the type of `request`; both pass it in one register.
    fn ioctl(fd: i32, request: u64, argument: *mut std::ffi::c_void) -> i32;
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, driver, path] = arguments.as_slice() else { return ExitCode::from(2) };
    match ask(driver, path) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err((step, error)) => {
            println!("{step}: {}", error.raw_os_error().unwrap_or(-1));
            ExitCode::FAILURE
        }
    }
}

fn ask(driver: &str, path: &str) -> Result<String, (&'static str, Error)> {
    let node = OpenOptions::new().read(true).write(true).open(path).map_err(|error| ("open", error))?;
    let call = |request, argument| {
        // SAFETY: the argument points to a structure of the layout that the request's number stands for.
        if unsafe { ioctl(node.as_raw_fd(), request, argument) } < 0 {
            return Err(("ioctl", Error::last_os_error()));
        }
        Ok(())
    };
    if driver == "kfd" {
        let mut version = KfdVersion::default();
        call(AMDKFD_IOC_GET_VERSION, (&raw mut version).cast())?;
        return Ok(format!("kfd {}.{}", version.major, version.minor));
    }
    let mut name = [0u8; 64];
    let none = std::ptr::null_mut();
    let mut version = DrmVersion {
        numbers: [0; 3],
        name_length: name.len(),
        name: name.as_mut_ptr(),
        date_length: 0,
        date: none,
        description_length: 0,
        description: none,
    };
    call(DRM_IOCTL_VERSION, (&raw mut version).cast())?;
    let length = version.name_length.min(name.len());
    Ok(format!("drm {}", String::from_utf8_lossy(&name[..length])))
}
