//! The kernels of a code object, and their arguments.

use hip_code_object::kernel::kernels;

use crate::assert_fit_for_a_log;

/// More than any GPU takes.
const MOST: usize = 64 * 1024;

/// A code object.
pub fn check(data: &[u8]) {
    let kernels = match kernels(data) {
        Ok(kernels) => kernels,
        Err(refused) => return assert_fit_for_a_log(&refused.to_string()),
    };
    for kernel in kernels {
        let mut expected = vec![0; kernel.arguments_size];
        assert!(expected.len() <= MOST);
        // An argument that overlaps an earlier one overwrites it.
        for (number, argument) in kernel.arguments.iter().enumerate() {
            expected[argument.offset..argument.offset + argument.size].fill(number as u8 + 1);
        }
        let mut out = b"before".to_vec();
        kernel.lay_out(&mut out, |number, bytes| {
            assert_eq!(bytes.len(), kernel.arguments[number].size);
            bytes.fill(number as u8 + 1);
        });
        assert_eq!(out, [b"before".as_slice(), &expected].concat());
    }
}
