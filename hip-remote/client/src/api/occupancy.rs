//! How many blocks of a kernel a GPU holds.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use hip_protocol::calls::{Occupancy, OccupancyBlock};

use crate::border::hip;
use crate::error::{HipError, Outcome};
use crate::loaded::Function;
use crate::modules;
use crate::program::put;
use crate::thread::{Seat, seated};

/// `hipOccupancyDefault`, the only flag that clr takes.
const DEFAULT: c_uint = 0;

/// A kernel as the program names it.
#[derive(Clone, Copy)]
enum Named {
    ByHost(usize),
    ByHandle(usize),
}

impl Named {
    fn find(self, seat: &Seat) -> Outcome<Arc<Function>> {
        match self {
            Self::ByHost(host) => modules::kernel_of_host(seat, host, seat.device()),
            Self::ByHandle(handle) => {
                let function = seat.session().tables().modules.function(handle as u64);
                function.ok_or(HipError::INVALID_DEVICE_FUNCTION)
            }
        }
    }
}

fn blocks(to: *mut c_int, kernel: Named, block: c_int, shared: usize, flags: c_uint) -> Outcome {
    if to.is_null() || block <= 0 || flags != DEFAULT {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        let call = Occupancy { function: kernel.find(seat)?.handle, block, shared: shared as u64, flags };
        let (reply, _) = seat.session().connection.call(&seat.desk, &call, &[])?;
        // SAFETY: the program wants the number there.
        unsafe { put(to, reply.blocks) }
    })
}

fn block_size(
    grid: *mut c_int,
    block: *mut c_int,
    kernel: Named,
    shared: usize,
    limit: c_int,
    flags: c_uint,
) -> Outcome {
    if grid.is_null() || block.is_null() || flags != DEFAULT {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        let call =
            OccupancyBlock { function: kernel.find(seat)?.handle, shared: shared as u64, limit, flags };
        let (reply, _) = seat.session().connection.call(&seat.desk, &call, &[])?;
        // SAFETY: the program wants the sizes there.
        unsafe {
            put(grid, reply.grid)?;
            put(block, reply.block)
        }
    })
}

hip! {
    fn hipOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut c_int, host: *const c_void, block: c_int, shared: usize) {
        blocks(to, Named::ByHost(host as usize), block, shared, DEFAULT)
    }

    fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        to: *mut c_int, host: *const c_void, block: c_int, shared: usize, flags: c_uint,
    ) {
        blocks(to, Named::ByHost(host as usize), block, shared, flags)
    }

    fn hipOccupancyMaxPotentialBlockSize(
        grid: *mut c_int, block: *mut c_int, host: *const c_void, shared: usize, limit: c_int,
    ) {
        block_size(grid, block, Named::ByHost(host as usize), shared, limit, DEFAULT)
    }

    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut c_int, function: usize, block: c_int, shared: usize) {
        blocks(to, Named::ByHandle(function), block, shared, DEFAULT)
    }

    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        to: *mut c_int, function: usize, block: c_int, shared: usize, flags: c_uint,
    ) {
        blocks(to, Named::ByHandle(function), block, shared, flags)
    }

    fn hipModuleOccupancyMaxPotentialBlockSize(
        grid: *mut c_int, block: *mut c_int, function: usize, shared: usize, limit: c_int,
    ) {
        block_size(grid, block, Named::ByHandle(function), shared, limit, DEFAULT)
    }

    fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int, block: *mut c_int, function: usize, shared: usize, limit: c_int, flags: c_uint,
    ) {
        block_size(grid, block, Named::ByHandle(function), shared, limit, flags)
    }
}
