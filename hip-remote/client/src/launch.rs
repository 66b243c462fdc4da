//! Launching kernels.

use std::cell::RefCell;

use hip_protocol::calls::Launch;

use crate::configuration::Dim3;
use crate::error::{HipError, Outcome};
use crate::loaded::Function;
use crate::program;
use crate::thread::Seat;

/// The most threads of a block on any AMD GPU that HIP supports.
const MOST_THREADS: u64 = 1024;

/// Where a launch's arguments are.
#[derive(Clone, Copy)]
pub enum Arguments<'a> {
    /// An array of pointers, one for each parameter of the kernel (`kernelParams`).
    Pointers(usize),
    /// As the kernel reads them (`extra`).
    LaidOut(&'a [u8]),
}

pub struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared: usize,
    pub stream: u64,
}

thread_local! {
    /// The bytes of the thread's last arguments, whose memory the next launch uses again.
    static LAID_OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Launches a kernel. It fails here for what can be seen without the GPU; other failures come at synchronisation.
///
/// # Errors
/// The shape is none that a GPU runs, or arguments are missing.
pub fn launch(seat: &Seat, function: &Function, shape: &Shape, arguments: Arguments<'_>) -> Outcome {
    let (grid, block) = (shape.grid.array(), shape.block.array());
    let threads: u64 = block.iter().map(|size| u64::from(*size)).fold(1, u64::saturating_mul);
    let fits = |(blocks, size): (&u32, &u32)| {
        *blocks > 0 && u64::from(*blocks) * u64::from(*size) <= u64::from(u32::MAX)
    };
    if threads == 0 || threads > MOST_THREADS || !grid.iter().zip(&block).all(fits) {
        return Err(HipError::INVALID_CONFIGURATION);
    }
    let most = u64::from(function.kernel.max_threads_per_block);
    if most > 0 && threads > most {
        // clr says so where a block is larger than the kernel's __launch_bounds__.
        return Err(HipError::LAUNCH_FAILURE);
    }
    if shape.shared > function.most_shared {
        // As clr's ihipLaunchKernel_validate.
        return Err(HipError::INVALID_VALUE);
    }
    let shared = u32::try_from(shape.shared).map_err(|_| HipError::INVALID_VALUE)?;
    let call = Launch { function: function.handle, grid, block, shared, stream: shape.stream };
    let connection = &seat.session().connection;
    match arguments {
        Arguments::LaidOut(bytes) => {
            let bytes = bytes.get(..function.kernel.arguments_size).ok_or(HipError::INVALID_VALUE)?;
            connection.send(&seat.desk, &call, bytes)
        }
        Arguments::Pointers(array) => {
            let send = |bytes: &RefCell<Vec<u8>>| {
                let mut bytes = bytes.try_borrow_mut().map_err(|_| HipError::UNKNOWN)?;
                bytes.clear();
                // SAFETY: HIP asks its caller for one pointer for each parameter of the kernel.
                unsafe { gather(function, array, &mut bytes) }?;
                connection.send(&seat.desk, &call, &bytes)
            };
            // A destructor of the thread's own data may launch when this data is gone.
            LAID_OUT.try_with(send).unwrap_or_else(|_| send(&RefCell::default()))
        }
    }
}

/// Collects the arguments that an array of pointers names.
///
/// # Safety
/// The array has a pointer for each parameter of the kernel, and each leads to as many bytes as the parameter has.
unsafe fn gather(function: &Function, array: usize, out: &mut Vec<u8>) -> Outcome {
    if array == 0 && !function.kernel.arguments.is_empty() {
        return Err(HipError::INVALID_VALUE);
    }
    let mut missing = false;
    function.kernel.lay_out(out, |number, to| {
        // SAFETY: as the caller promises.
        let from = unsafe { (array as *const usize).add(number).read_unaligned() };
        if from == 0 {
            missing = true;
        } else {
            // SAFETY: as above.
            to.copy_from_slice(unsafe { program::bytes(from, to.len()) });
        }
    });
    if missing { Err(HipError::INVALID_VALUE) } else { Ok(()) }
}
